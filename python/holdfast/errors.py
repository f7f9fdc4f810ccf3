"""Errors of ours, which errors mean a broken group, and the file that tells the launcher of a script's error."""

from __future__ import annotations

import json
import os
import re
import time
import traceback
from types import TracebackType


class Stopped(SystemExit):
    """Raised out of the step loop when the run was told to stop. Every rank stops after the same step, its checkpoint
    on disk. Not an `Exception`: a script that does nothing about it ends with exit code 0."""

    def __init__(self, step: int) -> None:
        super().__init__(0)
        self.step = step


class CheckpointError(RuntimeError):
    """A checkpoint that was written in the background was not committed; the ones before it still load."""


class GroupBroken(RuntimeError):
    """The group was found broken before anything was built upon its results."""


# What gloo, NCCL and c10d write when a peer is gone, a socket was shut or a wait ran out.
_GROUP_WORDS = re.compile(
    r"gloo|nccl|c10d|process ?group|tcpstore|closed by peer|reset by peer|connection refused|broken pipe"
    r"|socket|timed? ?out|in time|epoch \d* ?is closed|\bstore: ",
    re.IGNORECASE,
)


def is_group_error(error: BaseException) -> bool:
    """Whether `error` looks like a failed collective rather than a mistake of the script."""
    import torch.distributed as dist

    if isinstance(error, GroupBroken | dist.DistError):  # DistBackendError, DistNetworkError, DistStoreError
        return True
    return isinstance(error, RuntimeError | TimeoutError) and _GROUP_WORDS.search(str(error)) is not None


def write_error_file(error: BaseException) -> None:
    """Tells the launcher of `error` in the file named by TORCHELASTIC_ERROR_FILE, in torchelastic's shape."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or os.path.exists(path):  # the script's own @record was first
        return
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    extra = {"py_callstack": text, "timestamp": str(int(time.time()))}
    message = {"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}}
    try:
        with open(path + ".tmp", "w") as file:
            json.dump(message, file)
        os.rename(path + ".tmp", path)
    except OSError as failure:
        print(f"holdfast: write the error file {path}: {failure}", flush=True)


def without_our_frames(error: BaseException, ours: frozenset[str]) -> TracebackType | None:
    """The traceback from the first frame on whose file is not one of `ours`."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace if trace is not None else error.__traceback__
