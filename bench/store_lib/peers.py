"""Sets up what the benchmark needs beside Holdfast: the peers in an environment of their own, the program of limits."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LIST = "tools/requirements-bench-store.txt"


def install(root: Path, say: Callable[[str], None]) -> Path:
    """Makes build/bench-store-venv, beside the packages of this Python so that torch is there once. Its Python."""
    place = root / "build" / "bench-store-venv"
    python = place / "bin" / "python"
    wanted = hashlib.sha256((root / LIST).read_bytes()).hexdigest()
    done = place / "installed"
    if done.exists() and done.read_text() == wanted:
        return python
    say(f"installing the peers into {place} (about 60 MB, once)")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    inner = subprocess.run([str(python), "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    outer = subprocess.run([sys.executable, "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    # addsitedir, not a bare path: the outer packages may bring .pth files of their own (an editable install does)
    Path(inner, "outer.pth").write_text(f"import site; site.addsitedir({outer!r})\n")
    words = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--ignore-installed", "-r", str(root / LIST)]
    subprocess.run(words, check=True)
    done.write_text(wanted)
    return python


def build_limits(root: Path) -> Path:
    """Compiles limits.cc where it is newer than its program."""
    source = Path(__file__).parent / "limits.cc"
    program = root / "build" / "bench-store-limits"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        words = ["g++", "-O2", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-pthread", str(source), "-o", str(program)]
        subprocess.run(words, check=True)
    return program
