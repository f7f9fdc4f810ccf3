"""The step loop of one process, its seat in the run played by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import holdfast
from holdfast import errors, group, marks
from holdfast.run import Run
from holdfast.session import Session


class Seat:
    """Agrees to everything; notes what it is told. `breaks`: at these calls of `broken` the group is broken."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, int]] = []
        self.phases: list[int] = []
        self.readies: list[int] = []
        self.saved: list[int] = []
        self.order: list[str] = []
        self.actions: dict[int, int] = {}
        self.is_broken = False
        self.recovers = True
        self.errors: list[str] = []
        self.finishes: list[bool] = []
        self.faults: dict[int, str] = {}
        self.start = 0

    def mark(self, mark: int, step: int) -> None:
        self.marks.append((mark, step))

    def phase(self, phase: int, step: int) -> None:
        self.phases.append(phase)

    def ready(self, applied: int) -> dict[str, Any]:
        self.readies.append(applied)
        self.is_broken = False
        step = self.start if len(self.readies) == 1 else max(applied, 0)
        return {"epoch": 0, "step": step, "copies": [], "checkpoint": ""}

    def restored(self, epoch: int, step: int) -> None:
        self.order.append("restored")

    def broken(self, epoch: int) -> bool:
        return self.is_broken

    def group_error(self, epoch: int, text: str) -> bool:
        self.errors.append(text)
        return self.recovers

    def boundary(self, step: int) -> int:
        return self.actions.get(step, 0)

    def writing(self) -> bool:
        return False

    def save(self, step: int, structure: str, tensors: list[Any]) -> bool:
        self.saved.append(step)
        self.order.append(f"save {step}")
        return True

    def drain(self) -> None:
        self.order.append("drain")

    def finished(self, step: int) -> bool:
        return self.finishes.pop(0) if self.finishes else True

    def fault(self, step: int) -> str:
        return self.faults.get(step, "")

    def spin(self) -> None:
        raise KeyboardInterrupt


class Lost(RuntimeError):
    def __init__(self) -> None:
        super().__init__("[gloo] Connection closed by peer")


@pytest.fixture
def seat() -> Seat:
    return Seat()


@pytest.fixture
def new_run(seat: Seat, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    monkeypatch.setattr(group, "_models", [])

    def make(every: int = 0, **things: Any) -> Run:
        place: Any = {"rank": 0, "local_rank": 0, "world_size": 1, "epoch": 0, "replacement": False, "run_id": "r"}
        place |= {"seed_hint": 1, "checkpoint_every_steps": every, "checkpoint_every_s": 0.0}
        run = Run(Session(seat, place, "gloo", group.DEFAULT_TIMEOUT, 0, True))  # type: ignore[arg-type]
        run.track(**things)
        torch.manual_seed(0)  # the script's seed
        return run

    return make


@pytest.fixture
def model() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(2, 1)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.rand(4, 2)).sum().backward()
    optimizer.step()


NewRun = Callable[..., Run]


def test_steps_are_numbers_that_count_up(new_run: NewRun) -> None:
    seen = []
    for step in new_run().steps(3):
        with step:
            seen.append((int(step), step.number, step % 2, f"{step}"))
    assert seen == [(0, 0, 0, "0"), (1, 1, 1, "1"), (2, 2, 0, "2")]


def test_the_loop_begins_where_the_state_is(new_run: NewRun, seat: Seat) -> None:
    seat.start = 2
    assert [int(step) for step in steps(new_run().steps(4))] == [2, 3]


def steps(loop: Iterator[Any]) -> Iterator[Any]:
    for step in loop:
        with step:
            yield step


def test_a_step_leaves_its_marks(new_run: NewRun, seat: Seat, model: torch.nn.Linear) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in new_run(model=model, optimizer=optimizer).steps(2):
        with step:
            train(model, optimizer)
    m = marks
    first = [m.STEP_BEGIN, m.COLLECTED, m.APPLIED, m.STEP_END]  # which gradient comes last is not known yet
    later = [m.STEP_BEGIN, m.GRADS_READY, m.COLLECTED, m.APPLIED, m.STEP_END]
    assert [mark for mark, step in seat.marks if step == 0 and mark in later] == first
    assert [mark for mark, step in seat.marks if step == 1 and mark in later] == later
    assert seat.marks[-1] == (m.FINISHED, 2)


def test_each_step_has_its_numbers(new_run: NewRun) -> None:
    def draws() -> list[float]:
        return [torch.rand(1).item() for _ in steps(new_run().steps(3))]

    first = draws()
    assert draws() == first
    assert len(set(first)) == 3


def test_an_error_of_the_group_runs_the_step_again(new_run: NewRun, seat: Seat, model: torch.nn.Linear) -> None:
    optimizer = torch.optim.AdamW(model.parameters())
    clean = [tensor.clone() for tensor in trained(new_run, torch.nn.Linear(2, 1)).parameters()]
    failed = []
    for step in new_run(model=model, optimizer=optimizer).steps(3):
        with step:
            optimizer.zero_grad()
            model(torch.rand(4, 2)).sum().backward()
            if step == 1 and not failed:
                failed.append(1)
                raise Lost
            optimizer.step()
        assert step.completed or step == 1
    assert seat.readies[-2:] == [0, 1]
    assert seat.errors == ["Lost: [gloo] Connection closed by peer"]
    assert [torch.equal(a, b) for a, b in zip(clean, model.parameters(), strict=True)] == [True, True]


def trained(new_run: NewRun, fresh: torch.nn.Linear) -> torch.nn.Linear:
    torch.manual_seed(0)
    fresh.reset_parameters()
    optimizer = torch.optim.AdamW(fresh.parameters())
    for step in new_run(model=fresh, optimizer=optimizer).steps(3):
        with step:
            train(fresh, optimizer)
    return fresh


def test_any_error_in_a_broken_group_is_taken_for_its_consequence(new_run: NewRun, seat: Seat) -> None:
    tries = 0
    for step in new_run().steps(1):
        with step:
            tries += 1
            if tries == 1:
                seat.is_broken = True
                raise IndexError("what the sum left behind")
    assert tries == 2


def test_an_error_of_the_script_is_the_script_s(new_run: NewRun, seat: Seat) -> None:
    for error in (ValueError("no"), RuntimeError("shapes cannot be multiplied"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            for step in new_run().steps(1):
                with step:
                    raise error
    assert seat.errors == []


def test_an_error_that_the_agent_does_not_take_for_a_fault_is_raised(new_run: NewRun, seat: Seat) -> None:
    seat.recovers = False
    with pytest.raises(Lost):
        for step in new_run().steps(1):
            with step:
                raise Lost


def test_a_break_between_steps_costs_no_state(new_run: NewRun, seat: Seat, model: torch.nn.Linear) -> None:
    optimizer = torch.optim.AdamW(model.parameters())
    for step in new_run(model=model, optimizer=optimizer).steps(3):
        with step:
            train(model, optimizer)
        seat.is_broken = step == 1
    assert seat.readies == [0, 2]


def test_a_fault_at_the_end_brings_the_loop_back(new_run: NewRun, seat: Seat) -> None:
    seat.finishes = [False]
    assert [int(step) for step in steps(new_run().steps(2))] == [0, 1]
    assert seat.readies == [0, 2]


def test_a_checkpoint_is_taken_where_it_is_agreed(new_run: NewRun, seat: Seat) -> None:
    seat.actions = {1: 1}
    list(steps(new_run().steps(4)))
    assert seat.saved == [2]


def test_a_checkpoint_is_taken_every_few_steps(new_run: NewRun, seat: Seat) -> None:
    list(steps(new_run(every=2).steps(5)))
    assert seat.saved == [2, 4]


def test_the_script_can_ask_for_a_checkpoint(new_run: NewRun, seat: Seat) -> None:
    run = new_run()
    for step in run.steps(4):
        with step:
            if step == 1:
                run.checkpoint()
        if step == 2:
            run.checkpoint()
    assert seat.saved == [2, 3]


def test_behaviour_10_a_stop_waits_for_its_checkpoint(new_run: NewRun, seat: Seat) -> None:
    seat.actions = {1: 2}
    with pytest.raises(holdfast.Stopped) as stopped:
        list(steps(new_run().steps(9)))
    assert stopped.value.code == 0 and stopped.value.step == 2
    assert seat.order[-3:] == ["drain", "save 2", "drain"]


def test_gradients_under_way_are_begun_again(new_run: NewRun, seat: Seat, model: torch.nn.Linear) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for step in new_run(model=model, optimizer=optimizer).steps(6):
        with step:
            seen.append(int(step))
            model(torch.ones(1, 2)).sum().backward()
            if step % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
            if step == 4 and seen.count(4) == 1:
                raise Lost
    assert seen == [0, 1, 2, 3, 4, 3, 4, 5]


def test_a_late_collective_makes_the_loop_keep_a_copy(
    new_run: NewRun, seat: Seat, model: torch.nn.Linear, monkeypatch: pytest.MonkeyPatch
) -> None:
    collectives = [0]
    monkeypatch.setattr(group, "sequence_counter", lambda: lambda: collectives[0])
    optimizer = torch.optim.AdamW(model.parameters())
    clean = [tensor.clone() for tensor in trained(new_run, torch.nn.Linear(2, 1)).parameters()]
    tries = 0
    for step in new_run(model=model, optimizer=optimizer).steps(3):
        with step:
            train(model, optimizer)
            collectives[0] += 1
            if step == 1:
                tries += 1
                if tries == 1:
                    raise Lost
    assert seat.readies[-1] == 1
    assert [torch.equal(a, b) for a, b in zip(clean, model.parameters(), strict=True)] == [True, True]


def test_without_a_copy_such_a_state_is_not_used(new_run: NewRun, seat: Seat, model: torch.nn.Linear) -> None:
    optimizer = torch.optim.AdamW(model.parameters())
    failed = []
    for step in new_run(model=model, optimizer=optimizer).steps(1):
        with step:
            train(model, optimizer)
            if not failed:
                failed.append(1)
                raise Lost
    assert seat.readies == [0, -1]


def test_a_scheduled_fault_is_acted_out(new_run: NewRun, seat: Seat) -> None:
    seat.faults = {1: "spin"}
    with pytest.raises(KeyboardInterrupt):
        list(steps(new_run().steps(3)))
    assert (marks.STEP_BEGIN, 1) in seat.marks


def test_an_evaluation_that_breaks_is_left_out(new_run: NewRun, seat: Seat) -> None:
    run, evaluated = new_run(), []
    for step in run.steps(2):
        with step:
            pass
        with run.phase("evaluate"):
            if step == 0:
                raise Lost
            evaluated.append(int(step))
    assert evaluated == [1]
    assert seat.readies == [0, 1]
    assert seat.phases.count(marks.EVALUATE) == 2


def test_an_evaluation_in_a_step_runs_again_with_it(new_run: NewRun, seat: Seat) -> None:
    run, evaluated = new_run(), []
    for step in run.steps(1):
        with step, run.phase("evaluate"):
            evaluated.append(int(step))
            if len(evaluated) == 1:
                raise Lost
    assert evaluated == [0, 0]


def test_a_mistaken_loop_is_told(new_run: NewRun) -> None:
    with pytest.raises(RuntimeError, match="with step"):
        for _ in new_run().steps(2):
            pass
    with pytest.raises(ValueError, match="unknown phase"), new_run().phase("lunch"):
        pass
    run = new_run()
    run.steps(1)
    with pytest.raises(RuntimeError, match="one step loop"):
        run.steps(1)
    with pytest.raises(RuntimeError, match="before the step loop"):
        run.track()
    with pytest.raises(RuntimeError, match="step loop"):
        new_run().checkpoint()
    with pytest.raises(RuntimeError, match="can't be entered"):
        for step in new_run().steps(2):
            with step, step:
                pass


def test_batches_come_with_their_steps(new_run: NewRun) -> None:
    loader = torch.utils.data.DataLoader(list(range(6)), batch_size=2)
    seen = []
    for step, batch in new_run().steps(loader, epochs=2):
        with step:
            seen.append((int(step), step.epoch, batch.tolist()))
            assert step.batch is batch
    assert seen == [(0, 0, [0, 1]), (1, 0, [2, 3]), (2, 0, [4, 5]), (3, 1, [0, 1]), (4, 1, [2, 3]), (5, 1, [4, 5])]


def test_a_batch_is_served_again(new_run: NewRun) -> None:
    loader = torch.utils.data.DataLoader(list(range(6)), batch_size=2, shuffle=True)
    seen = []
    for step, batch in new_run().steps(loader):
        with step:
            seen.append((int(step), batch.tolist()))
            if len(seen) == 2:
                raise Lost
    assert [number for number, _ in seen] == [0, 1, 1, 2]
    assert seen[1] == seen[2]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711", True),
        ("gloo: the process group is broken, a peer is gone", True),
        ("NCCL communicator was aborted on rank 1.", True),
        ("Timed out waiting 1800000ms for recv operation to complete", True),
        ("store of epoch 3 is closed", True),
        ("store: key 0//cpu//0/1 did not come in time", True),
        ("mat1 and mat2 shapes cannot be multiplied (4x6 and 5x3)", False),
        ("CUDA out of memory", False),
    ],
)
def test_errors_of_the_group_are_known_by_their_words(text: str, is_one: bool) -> None:
    assert errors.is_group_error(RuntimeError(text)) is is_one
    assert not errors.is_group_error(ValueError(text))
    assert errors.is_group_error(torch.distributed.DistBackendError(text))


