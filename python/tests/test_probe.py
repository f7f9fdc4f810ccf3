"""What a rank says when it is asked where it is."""

import pytest

from holdfast import group, probe


def test_collectives_count_from_where_the_state_was_put_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = 0
    monkeypatch.setattr(group, "sequence_number", lambda: begun)
    monkeypatch.setattr(probe, "_begun_before", 0)
    begun = 2  # sent a state to a replacement: the other ranks did not
    probe.settle()
    assert probe.look()[0] == 0
    begun = 5
    assert probe.look()[0] == 3


def test_the_stack_ends_where_the_main_thread_is() -> None:
    assert "in look" in probe.look()[1].splitlines()[-2]
