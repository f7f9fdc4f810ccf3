"""Four writing ranks, killed at moments of every kind: no committed step is lost, nothing corrupt loads, nothing stays.
HOLDFAST_KILL_POINTS says how often (40)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

JOB = Path(__file__).parent / "jobs" / "kill_job.py"


def test_s30_killed_at_any_moment_four_ranks_lose_no_committed_step(tmp_path: Path) -> None:
    points = int(os.environ.get("HOLDFAST_KILL_POINTS", "40"))
    job = [sys.executable, str(JOB), str(tmp_path / "checkpoints"), str(points), "1"]
    done = subprocess.run(job, capture_output=True, text=True, timeout=60 + 5 * points)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["commits"] > points // 2 and result["starts"] > points
    assert (result["lost"], result["corrupt"], result["leftovers"]) == (0, 0, [])
