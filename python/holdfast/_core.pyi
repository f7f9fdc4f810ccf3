"""The core: this rank's seat in the run, in C++ (python/core.cc). Calls that block free the GIL."""

from collections.abc import Callable
from typing import Any

from holdfast.elements import TensorPlace
from holdfast.member import Place, Plan, SavedTensor

class Member:
    """Speaks with the agent. Reads the HOLDFAST_* environment; RuntimeError where there is no agent."""

    def __init__(self) -> None: ...
    def park(self) -> dict[str, str]:
        """Blocks until this spare is given a rank: the environment to add."""

    def attach(self) -> Place: ...
    def mark(self, mark: int, step: int) -> None: ...
    def phase(self, phase: int, step: int) -> None: ...
    def ready(self, applied: int) -> Plan: ...
    def broken(self, epoch: int) -> bool: ...
    def group_begin(self, epoch: int) -> None: ...
    def group_made(self, epoch: int) -> None: ...
    def failed(self, text: str) -> None: ...
    def restored(self, epoch: int, step: int) -> None: ...
    def group_error(self, epoch: int, text: str) -> bool: ...
    def kv_set(self, epoch: int, key: str, value: bytes) -> None: ...
    def kv_get(self, epoch: int, key: str, timeout_s: float) -> bytes: ...
    def kv_add(self, epoch: int, key: str, value: int) -> int: ...
    def kv_check(self, epoch: int, keys: list[str]) -> bool: ...
    def kv_delete(self, epoch: int, key: str) -> bool: ...
    def boundary(self, step: int) -> int: ...
    def save(self, step: int, structure: str, tensors: list[SavedTensor]) -> bool: ...
    def writing(self) -> bool: ...
    def drain(self) -> None: ...
    def finished(self, step: int) -> bool: ...
    def fault(self, step: int) -> str: ...
    def spin(self) -> None: ...
    def set_probe(self, probe: Callable[[], tuple[int, str]]) -> None: ...
    def close(self) -> None: ...

class Block:
    """Memory that tensors were loaded into; it has the buffer protocol and lives as long as a view of it."""

    def __init__(self, size: int) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Counter:
    """Bytes that have been read or written."""

    def value(self) -> int: ...

class Stream:
    """Tensors of a file in order, read ahead on a thread of its own. ValueError, FileNotFoundError, OSError."""

    def __init__(self, path: str, names: list[str] | None, window_bytes: int, checksums: bool, key: bytes | None) -> None: ...
    def metadata(self) -> dict[str, str]: ...
    def next(self) -> tuple[TensorPlace, Block] | None:
        """Its place counts from the block's start; None after the last and once stopped."""

    def stop(self) -> None: ...

def load_tensors(
    path: str,
    names: list[str] | None,
    key: bytes | None = None,
    checksums: bool = True,
    done: Counter | None = None,
) -> tuple[dict[str, str], list[TensorPlace], Block]:
    """Metadata and tensors, each byte checked; places count from the block's start. ValueError names a bad file."""

def load_slices(
    path: str, slices: list[tuple[str, list[tuple[int, int]]]], key: bytes | None, checksums: bool, done: Counter | None
) -> tuple[dict[str, str], list[TensorPlace], Block]:
    """As load_tensors: by name a range for each dimension, no name twice, in the order asked for."""

def load_into(
    path: str, tensors: list[SavedTensor], key: bytes | None, checksums: bool, done: Counter | None
) -> None:
    """Fills the buffers of tensors, no name twice."""

def keep_memory(bytes_max: int) -> None: ...
def kept_memory() -> int: ...

def tensor_header(path: str, key: bytes | None = None) -> tuple[dict[str, str], list[TensorPlace], int, bool]:
    """Metadata, tensors, where in the (unsealed) file their places count from, and whether there are checksums."""

def verify_tensors(path: str, key: bytes | None) -> bool:
    """Reads every byte. False: the file has no checksums, its shape alone was checked."""

def archive_kind(path: str) -> str:
    """"safetensors", "torch", "tensorizer" or "dcp". ValueError for what is not read."""

def load_archive(
    path: str, names: list[str] | None, key: bytes | None
) -> tuple[list[TensorPlace], dict[str, str], Block]:
    """Tensors of a file of any kind, what is tied to which of them, and their memory. ValueError names a bad file."""

def verify_archive(path: str, key: bytes | None) -> bool:
    """Reads every tensor. False: the file has no checksums."""

def save_tensors(
    path: str,
    tensors: list[SavedTensor],
    metadata: dict[str, str],
    key: bytes | None = None,
    level: int = 0,
    done: Counter | None = None,
) -> None:
    """`key`: encrypts; `level`: compresses, unless it is 0."""

def is_sealed(path: str) -> bool: ...
def parse_key(given: bytes, may_be_raw: bool) -> bytes:
    """The 32 bytes of a key that is given in hexadecimal digits, in base64 or raw. ValueError."""

def key_id(key: bytes) -> str: ...

COMPRESSION_LEVEL_MAX: int

def is_remote(path: str) -> bool:
    """Whether it is a URL that `load_tensors` reads over the net."""

def shown_location(path: str) -> str:
    """Without the credentials that a URL may hold: for messages."""

def model_files(path: str) -> list[tuple[str, dict[str, str], list[TensorPlace]]]:
    """Path, metadata and tensors of each file of a model; `path` is its folder, its index, or its one file."""

def verify_model(path: str) -> bool:
    """False: a file has no checksums. ValueError names a bad file."""

class ModelSave:
    """A model being saved into a folder, file by file. `kinds`: name, dtype and shape of each tensor."""

    def __init__(
        self,
        folder: str,
        kinds: list[tuple[str, str, list[int]]],
        aliases: dict[str, str],
        metadata: dict[str, str],
        bytes_max: str,
    ) -> None: ...
    def plan(self) -> list[list[int]]:
        """Which tensors go into each file, by their place in `kinds`."""

    def write(self, file: int, tensors: list[SavedTensor]) -> None: ...
    def commit(self) -> None: ...
    def close(self) -> None:
        """What was written and not committed is removed."""

ShardRecord = tuple[str, int, int, list[tuple[str, str, int, int]]]

def write_shard(
    directory: str, writer: int, writers: int, tensors: list[SavedTensor], metadata: dict[str, str]
) -> ShardRecord:
    """Name, size and CRC32C of the header of the file it wrote, and the older files that it needs: none. ValueError for a
    checkpoint that is committed."""

class IncrementalWriter:
    """Writes shards without what the last committed one holds already."""

    def write(
        self, directory: str, writer: int, writers: int, tensors: list[SavedTensor], metadata: dict[str, str]
    ) -> ShardRecord:
        """As write_shard; the older files that it needs, too: checkpoint, file, size, CRC32C of its header."""

    def committed(self) -> None:
        """The next one may share with the last that was written."""

    def go_on_from(self, checkpoint: OpenCheckpoint) -> None: ...
    def forget(self) -> None:
        """The next one is written whole."""

def shard_places(kinds: list[tuple[str, str, list[int]]]) -> list[tuple[int, int]]:
    """First byte of each tensor (name, dtype, shape), and one past its last, in the data of a shard of them."""

def copy_memory(copies: list[tuple[int, int, int]], threads: int) -> None:
    """Of each the address to copy to, the one to copy from, and the bytes; none may overlap."""

class CheckpointFolder:
    """Checkpoints of a run, below `path` (also s3://bucket/prefix), of which `keep` stay (docs/format-checkpoint.md)."""

    def __init__(self, path: str, keep: int) -> None: ...
    def highest_epoch(self) -> int: ...
    def open_epoch(self, at_least: int) -> int:
        """A new one, above all that were here: commits of older epochs are refused from now on."""

    def path_of(self, step: int, epoch: int) -> str: ...
    def commit(
        self, run_id: str, step: int, epoch: int, world_size: int, structure: str, shards: list[ShardRecord]
    ) -> list[tuple[str, str]]:
        """Committed checkpoints that do not verify, as far as retention read any back, and why."""

    def discard(self, step: int, epoch: int) -> None: ...
    def all(self) -> list[tuple[int, int, str]]:
        """Epoch, step, and why it can't be loaded ("" where it may), newest first."""

def verify_checkpoint(directory: str, part: int, parts: int) -> None:
    """Reads every byte of each `parts`th file from `part` on. ValueError for a damaged one, FileNotFoundError."""

class OpenCheckpoint:
    """ValueError for one that is damaged, FileNotFoundError."""

    def __init__(self, directory: str) -> None: ...
    @property
    def step(self) -> int: ...
    @property
    def structure(self) -> str: ...
    def tensors(self) -> dict[str, tuple[str, list[int]]]:
        """Dtype and shape of each whole tensor."""

    def read(self, boxes: list[tuple[str, list[int], list[int], Any]]) -> tuple[int, int]:
        """Fills memory with boxes of tensors: name, first element, shape, memory. Bytes read, and those of them whose
        checksums were checked."""

def write_manifest(directory: str, world_size: int, structure: str, shards: list[ShardRecord]) -> None:
    """Commits the shards in a directory that is one checkpoint by itself. ValueError where it holds one already."""

def fork_twice() -> int:
    """0 in a new process that leads its own session and falls to the next subreaper; here its pid. RuntimeError."""

class StepHooks:
    """What is hooked into every step (holdfast.hooks): `mark(mark, step)` is called for each mark, `before_optimizer()`
    before the first optimizer of a step touches anything."""

    BEGAN: int  # an optimizer has begun in this step
    PENDING: int  # a backward pass since the last optimizer step
    READY: int  # `ready` was called in this step
    began: bool  # an optimizer has begun since the last boundary to which `Undo` leads back; not to be set
    gradients_pending: bool

    def __init__(self, mark: Callable[[int, int], None], before_optimizer: Callable[[], None]) -> None: ...
    def begin(self, step: int, /) -> None: ...
    def end(self) -> int:
        """BEGAN, PENDING and READY, as they apply. A step without PENDING ends at a boundary."""

    def boundary(self) -> None:
        """The state was put in place: whatever had begun is gone."""

    def ready(self, parameter: Any, /) -> None: ...
    def before_step(self, optimizer: Any, args: Any, kwargs: Any, /) -> None: ...
    def after_step(self, optimizer: Any, args: Any, kwargs: Any, /) -> None: ...

class GlooWaits:
    """Frees threads that wait in gloo for a message under way (python/gloo_waits.h). A member does this by itself."""

    @staticmethod
    def install() -> bool: ...
    @staticmethod
    def group_begin() -> None: ...
    @staticmethod
    def group_broken() -> None: ...
