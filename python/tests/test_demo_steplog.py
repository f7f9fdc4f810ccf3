"""The ranks' own step logs: whole lines, what is missing, what differs."""

from pathlib import Path

from holdfast.demo.steplog import Line, StepLog, parse_line, read_logs, steps_differing, steps_missing


def test_lines_come_back_with_every_bit_of_the_loss(tmp_path: Path) -> None:
    log = StepLog(str(tmp_path), rank=1)
    log.ended(0, 0.1)
    log.ended(1, 1 / 3)
    log.close()
    logs = read_logs(tmp_path, ranks=2)
    assert logs[0] == []
    assert [(line.step, float.fromhex(line.loss)) for line in logs[1]] == [(0, 0.1), (1, 1 / 3)]
    assert logs[1][0].at_ns < logs[1][1].at_ns


def test_a_replacement_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for step in (4, 5):
        log = StepLog(str(tmp_path), rank=0)
        log.ended(step, 1.0)
        log.close()
    assert [line.step for line in read_logs(tmp_path, 1)[0]] == [4, 5]


def test_cut_and_foreign_lines_are_passed_over() -> None:
    assert parse_line("7 12 0x1p+0") == Line(7, 12, "0x1p+0")
    for text in ("", "7 12", "7 12 loss", "x 12 0x1p+0"):
        assert parse_line(text) is None


def test_a_step_is_missing_only_if_no_rank_ended_it() -> None:
    logs = {0: [Line(0, 0, "0x1p+0"), Line(2, 1, "0x1p+0")], 1: [Line(1, 0, "0x1p+0")]}
    assert steps_missing(logs, 3) == []
    assert steps_missing(logs, 5) == [3, 4]


def test_a_step_computed_again_must_give_the_same_loss() -> None:
    reference = {0: [Line(0, 0, "0x1p+0"), Line(1, 0, "0x1p+1")]}
    same = {0: [Line(0, 9, "0x1p+0"), Line(0, 10, "0x1p+0"), Line(1, 11, "0x1p+1")]}
    other = {0: [Line(0, 9, "0x1p+0"), Line(1, 10, "0x1p+2"), Line(1, 11, "0x1p+1")]}
    assert steps_differing(same, reference) == []
    assert steps_differing(other, reference) == [(0, 1)]
