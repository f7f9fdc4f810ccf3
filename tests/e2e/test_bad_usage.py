"""Wrong usage: one line with the mend, exit code 2, nothing started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from launcher import SCRIPTS, Launch

Start = Callable[..., Launch]
COUNT = str(SCRIPTS / "count.py")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--nproc-per-node=0", COUNT], "--nproc-per-node 0: must be 1 to 1024"),
        (["--nproc-per-node=x", COUNT], "must be 1 to 1024, gpu, cpu or auto"),
        (["--nnodes=2", COUNT], "several machines are not supported yet"),
        (["--nosuch", COUNT], "unknown option --nosuch"),
        (["nosuch.py"], "script nosuch.py is not there"),
        ([], "nothing to run"),
        (["--grace=soon", COUNT], "write 30, 1.5s, 250ms, 5m or 2h"),
        (["--redirects=7", COUNT], "write 0, 1, 2 or 3"),
        (["--faults=nosuch.json", COUNT], "can't be read"),
        (["--bind=0.0.0.0", COUNT], "--secret-file (mode 0600) or HOLDFAST_SECRET"),
        (["--train-timeout=4h", "--group-timeout=1h", COUNT], "timeout"),
    ],
)
def test_one_line_says_what_is_wrong(launch: Start, words: list[str], line: str) -> None:
    job = launch(*words, env={"HOLDFAST_SECRET": ""})
    assert job.wait() == 2, job.output()
    assert line in job.output()
    assert len(job.output().strip().splitlines()) == 1


def test_a_fault_plan_names_the_entry(launch: Start, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"faults": [{"kind": "sigkill", "step": 1, "rank": 9}]}')
    job = launch("--nproc-per-node=2", "--faults=plan.json", COUNT)
    assert job.wait() == 2
    assert "plan.json: fault 1: rank: a rank must be a whole number from 0 to 1" in job.output()
