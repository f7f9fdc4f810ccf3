"""The examples are what the documents say they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_five_lines_make_a_hand_written_loop_survive() -> None:
    found = subprocess.run(
        ["diff", "-w", EXAMPLES / "plain.py", EXAMPLES / "with_holdfast.py"], capture_output=True, text=True
    )
    added = [line for line in found.stdout.splitlines() if line.startswith(">")]
    taken = [line for line in found.stdout.splitlines() if line.startswith("<")]
    assert found.returncode == 1
    assert len(added) <= 5, added
    assert len(taken) <= 2, taken  # each replaced by one of those added


def test_importing_holdfast_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['numpy'] = None\n"
        "import holdfast; print(holdfast.__version__, holdfast.Stopped.__name__)"
    )
    root = str(EXAMPLES.parent / "python")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert found.stdout == "0.1.0 Stopped\n", found.stderr
