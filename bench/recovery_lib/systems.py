"""How each system is started: its command line, its environment, and the one that has to be installed first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NVRX = "nvidia-resiliency-ext==0.4.1"
CKPT_EVERY_STEPS = 5
RESTARTS = 100  # more than any run needs: the benchmark counts them itself
SYSTEMS = ("holdfast", "torchrun", "ft_launcher")


@dataclass(frozen=True)
class Setting:
    """Where things are, and what one launch is to do."""

    root: Path
    folder: Path
    case: str
    ranks: int
    group_timeout_s: float = 0.0

    def script(self, name: str) -> str:
        return str(self.root / "bench" / "recovery_lib" / name)

    def trainer_options(self) -> list[str]:
        return [f"--case={self.case}", f"--out={self.folder}"]


def environment(root: Path, temporary: Path) -> dict[str, str]:
    """The same for every system."""
    paths = [str(root / "bench"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(temporary),
    }


def _elastic(setting: Setting) -> list[str]:
    """What torchrun and ft_launcher are both told."""
    words = ["--nnodes=1", f"--nproc-per-node={setting.ranks}", f"--max-restarts={RESTARTS}"]
    words += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--rdzv-id=recovery"]
    return words


def _peer_trainer(setting: Setting) -> list[str]:
    words = [setting.script("peer_trainer.py"), *setting.trainer_options()]
    words += [f"--ckpt-every-steps={CKPT_EVERY_STEPS}", f"--group-timeout-s={setting.group_timeout_s}"]
    return words


def torchrun(setting: Setting) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", *_elastic(setting), *_peer_trainer(setting)]


def ft_launcher(setting: Setting) -> list[str]:
    """Heartbeats may be 10 s apart, and are looked at every second instead of every five: the peer at its quickest."""
    words = [str(ft_launcher_path(setting.root)), *_elastic(setting)]
    words += ["--ft-rank-heartbeat-timeout=10", "--ft-initial-rank-heartbeat-timeout=120"]
    words += ["--ft-workload-check-interval=1", "--ft-enable-nic-monitor=False"]
    return [*words, *_peer_trainer(setting), "--heartbeats"]


def holdfast(setting: Setting) -> list[str]:
    words = [os.environ.get("HOLDFAST_BINARY") or str(setting.root / "build" / "bin" / "holdfast"), "run"]
    words += ["--standalone", f"--nproc-per-node={setting.ranks}", f"--report={setting.folder / 'report.json'}"]
    words += [f"--ckpt-dir={setting.folder / 'checkpoints'}", f"--ckpt-every-steps={CKPT_EVERY_STEPS}"]
    return [*words, setting.script("holdfast_trainer.py"), *setting.trainer_options()]


COMMANDS: dict[str, Callable[[Setting], list[str]]] = {
    "holdfast": holdfast,
    "torchrun": torchrun,
    "ft_launcher": ft_launcher,
}


def ft_launcher_path(root: Path) -> Path:
    """In this Python's environment (`make bench` puts it there), else in the benchmark's own."""
    beside = Path(sys.executable).parent / "ft_launcher"
    return beside if beside.exists() else root / "build" / "bench-venv" / "bin" / "ft_launcher"


def install_ft_launcher(root: Path, say: Callable[[str], None]) -> None:
    """Makes build/bench-venv: ft_launcher beside the packages of this Python, so that torch is there once."""
    place = ft_launcher_path(root).parent.parent
    done = place / "installed"
    if place == Path(sys.executable).parent.parent or (done.exists() and done.read_text() == NVRX):
        return
    say(f"installing {NVRX} into {place} (about 10 MB, once)")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
    python = str(place / "bin" / "python")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    inner = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    outer = subprocess.run([sys.executable, "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    # addsitedir, not a bare path: the outer packages may bring .pth files of their own (an editable install does)
    Path(inner, "outer.pth").write_text(f"import site; site.addsitedir({outer!r})\n")
    subprocess.run([python, "-m", "pip", "install", "--quiet", NVRX], check=True)
    done.write_text(NVRX)
