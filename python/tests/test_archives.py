"""Files that the packages torch and tensorizer write, loaded here: every type, bit for bit; bad ones with one clear
line. S5, S6, S10, S12, S13, S16, S18, S19, S20, S21, S22, S23."""

from __future__ import annotations

import ctypes
import os
import pickle
import struct
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorizer import DecryptionParams, EncryptionParams, TensorDeserializer, TensorSerializer

import holdfast
from holdfast.elements import _NAME_OF

BINARY = Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast"
TYPES = [*_NAME_OF, torch.complex128, torch.complex32]
NOT_IN_TENSORIZER = (torch.float4_e2m1fn_x2,)  # it fails on writing them
INDEX_BYTES = 262_144  # tensorizer reserves so many for its index
FIRST_RECORD = 73 + INDEX_BYTES


def random_tensor(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    count = torch.Size(shape).numel()
    return torch.randint(0, 256, (count * dtype.itemsize,), dtype=torch.uint8).view(dtype).reshape(shape)


def bits(tensor: torch.Tensor) -> bytes:
    plain = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return ctypes.string_at(plain.data_ptr(), plain.numel() * plain.itemsize)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and bits(one) == bits(other)


def write_tensorizer(path: Path, tensors: dict[str, Any], **options: Any) -> None:
    serializer = TensorSerializer(str(path), **options)
    serializer.write_state_dict(tensors)
    serializer.close()


def saved(tmp_path: Path, value: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(value, tmp_path / "t.pt")
    return tmp_path / "t.pt"


@pytest.mark.parametrize("dtype", TYPES)
def test_torch_files_of_every_type_load_bit_for_bit(tmp_path: Path, dtype: torch.dtype) -> None:
    tensors = {"matrix": random_tensor(dtype, 3, 4), "none": random_tensor(dtype, 0, 2)}
    if dtype not in NOT_IN_TENSORIZER:
        tensors |= {"scalar": random_tensor(dtype), "turned": random_tensor(dtype, 5, 3, 2).permute(2, 0, 1)}
    loaded = holdfast.load(saved(tmp_path, tensors))
    assert set(loaded) == set(tensors)
    assert all(same(loaded[name], tensor) for name, tensor in tensors.items())
    assert holdfast.verify(tmp_path / "t.pt") is True


@pytest.mark.parametrize("dtype", [each for each in TYPES if each not in NOT_IN_TENSORIZER])
@pytest.mark.parametrize("key", [None, "a text", b"k" * 32], ids=["plain", "text", "key"])
def test_tensorizer_files_of_every_type_load_bit_for_bit(
    tmp_path: Path, dtype: torch.dtype, key: str | bytes | None
) -> None:
    tensors = {"matrix": random_tensor(dtype, 3, 4), "scalar": random_tensor(dtype)}
    options: dict[str, Any] = {}
    if key is None:
        tensors["none"] = random_tensor(dtype, 0, 2)  # it can't encrypt nothing
    elif isinstance(key, str):
        options["encryption"] = EncryptionParams.from_string(key, opslimit=1, memlimit=8192)
    else:
        options["encryption"] = EncryptionParams(key)
    expected = {name: tensor.clone() for name, tensor in tensors.items()}
    write_tensorizer(tmp_path / "t.tz", tensors, **options)
    loaded = holdfast.load(tmp_path / "t.tz", key=key)
    assert set(loaded) == set(expected)
    assert all(same(loaded[name], tensor) for name, tensor in expected.items())
    assert holdfast.verify(tmp_path / "t.tz", key=key) is True


def test_tied_weights_share_memory_again_and_views_are_what_they_show(tmp_path: Path) -> None:
    huge = torch.arange(100_000, dtype=torch.float32)
    weight = torch.randn(30, 10)
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    pairs = [torch.randn(6, dtype=torch.complex64) for _ in range(2)]
    tensors = {"a": weight, "b": weight, "part": weight[3:], "few": huge[10:13], "image": image}
    tensors |= {"conj": pairs[0].conj(), "negative": pairs[1].conj().imag, "wide": torch.randn(1).expand(50, 4)}
    loaded = holdfast.load(saved(tmp_path, tensors))
    assert all(same(loaded[name], tensor) for name, tensor in tensors.items())
    assert loaded["a"].data_ptr() == loaded["b"].data_ptr() != loaded["part"].data_ptr()
    only = holdfast.load(tmp_path / "t.pt", names=["b", "few"])
    assert list(only) == ["b", "few"] and same(only["b"], weight)


def test_names_are_paths_and_what_is_no_tensor_is_left_out(tmp_path: Path) -> None:
    one = torch.ones(1)
    state = {"model": OrderedDict(w=one), "optimizer": {"state": {0: {"m": one + 1}}, "lr": [0.1, (one + 2, None)]}}
    loaded = holdfast.load(saved(tmp_path, {**state, "step": 5, "note": "x", "raw": b"xy", "big": 2**70}))
    assert {name: tensor.item() for name, tensor in loaded.items()} == {
        "model.w": 1,
        "optimizer.state.0.m": 2,
        "optimizer.lr.1.0": 3,
    }
    assert list(holdfast.load(saved(tmp_path, one))) == ["tensor"]
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    loaded = holdfast.load(saved(tmp_path, module.state_dict()))
    assert list(loaded) == list(module.state_dict())
    assert set(holdfast.load(saved(tmp_path, dict(module.named_parameters())))) == set(dict(module.named_parameters()))
    with pytest.raises(ValueError, match=r"t.pt: .*what it calls step is no tensor"):
        holdfast.load(saved(tmp_path, {"step": 5}), names=["step"])
    with pytest.raises(ValueError, match="t.pt: .*holds no tensor zed"):
        holdfast.load(tmp_path / "t.pt", names=["zed"])


def test_tensorizer_names_of_nested_state_dicts_and_modules(tmp_path: Path) -> None:
    write_tensorizer(tmp_path / "t.tz", {"x": {"y": torch.ones(2)}, "l": [torch.zeros(1), torch.ones(1)]})
    assert list(holdfast.load(tmp_path / "t.tz")) == ["x.y", "l.0", "l.1"]
    module = torch.nn.Sequential(torch.nn.Linear(20, 20), torch.nn.BatchNorm1d(20))
    serializer = TensorSerializer(str(tmp_path / "m.tz"))
    serializer.write_module(module)
    serializer.close()
    loaded = holdfast.load(tmp_path / "m.tz")
    assert all(same(loaded[name], tensor) for name, tensor in module.state_dict().items())


def test_tensorizer_files_of_versions_1_to_4_and_an_encrypted_one_of_many_chunks(tmp_path: Path) -> None:
    plain = {"a": torch.arange(5)}
    write_tensorizer(tmp_path / "1", plain)
    write_tensorizer(tmp_path / "2", {**plain, "b": torch.ones(3, dtype=torch.bfloat16)})
    big = torch.randn(1_500_000)
    params = EncryptionParams.from_string("open sesame", opslimit=1, memlimit=8192)
    write_tensorizer(tmp_path / "3", {**plain, "b": big.clone()}, encryption=params)
    write_tensorizer(tmp_path / "4", {**plain, "b": torch.empty(3, 4, device="meta")})
    versions = [struct.unpack_from("<I", (tmp_path / name).read_bytes(), 5)[0] for name in "1234"]
    assert versions == [1, 2, 3, 4]
    assert same(holdfast.load(tmp_path / "3", key="open sesame")["b"], big)
    assert torch.equal(holdfast.load(tmp_path / "4")["b"], torch.zeros(3, 4))  # as tensorizer has it
    for name in "124":
        assert same(holdfast.load(tmp_path / name)["a"], plain["a"])
    with TensorDeserializer(str(tmp_path / "3"), encryption=DecryptionParams.from_string("open sesame")) as theirs:
        assert same(theirs["b"].data, big)
    for wrong, says in ((None, "encrypted; give"), ("other", "key does not fit"), (b"k" * 32, "key does not fit")):
        with pytest.raises(ValueError, match=f"3: .*{says}"):
            holdfast.load(tmp_path / "3", key=wrong)
    with pytest.raises(ValueError, match="not encrypted"):
        holdfast.load(tmp_path / "1", key="open sesame")


def test_only_safetensors_files_are_mapped(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='t.pt: only a safetensors file can be mapped; load it with mode="copy"'):
        holdfast.load(saved(tmp_path, {"a": torch.ones(1)}), mode="map")


class Runs:
    """Unpickles by calling what it is given."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.made = (function, arguments)

    def __reduce__(self) -> Any:
        return self.made


def with_pickle(tmp_path: Path, data: bytes) -> Path:
    """A file of torch.save around any pickle."""
    with zipfile.ZipFile(tmp_path / "t.pt", "w") as archive:
        archive.writestr("t/data.pkl", data)
        archive.writestr("t/version", "3\n")
    return tmp_path / "t.pt"


def test_a_pickle_that_would_run_code_is_refused_by_the_name_it_would_call(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    command = f"touch {touched}"
    program = f"open({str(touched)!r}, 'w')"
    for value, name in (
        ({"a": 1, "b": Runs(os.system, command)}, "posix.system"),
        (Runs(eval, program), "eval"),
        (OrderedDict(x=[Runs(exec, Runs(str, program))]), "exec"),
        (Runs(getattr, Runs(__import__, "os"), "system"), "getattr"),
    ):
        for protocol in (2, 3, 4, 5):
            with pytest.raises(ValueError, match=rf"t.pt: .*data.pkl: pickle: byte \d+: names \S*{name},") as error:
                holdfast.load(with_pickle(tmp_path, pickle.dumps(value, protocol)))
            assert "\n" not in str(error.value)
    assert not touched.exists()


@pytest.mark.parametrize(
    "data, says",
    [
        (b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", "names posix.system"),
        (b"\x80\x04\x8c\x05torch\x8c\x0e_utils.os.open\x93.", "names torch._utils.os.open"),
        (b"\x80\x04K\x01K\x02\x93.", "name is no text"),
        (b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", "names builtins.eval"),
        (b"\x80\x02ctorch\nload\n.", "names torch.load"),
        (b"\x80\x02(cposix\nsystem\no.", "names posix.system"),
        (b"\x80\x02\x82\x01.", "opcode 130"),
        (b"\x80\x02]q\x00h\x00a.", "holds itself"),
        (b"\x80\x02]q\x000" + b"](h\x00h\x00eq\x000" * 60 + b"h\x00.", "over and over"),
        (b"\x80\x02" + b"]" * 2000 + b"a" * 1999 + b".", "deeper"),
        (b"\x80\x02r\xff\xff\xff\xff.", "more values than there are"),
        (b"\x80\x02Nr\xff\xff\xff\xff.", "more is remembered"),
        (b"\x80\x02X\xff\xff\xff\xff.", "ends beyond"),
        (b"\x80\x02}.x", "1 more follow"),
        (b"\x80\x02", "cut off"),
        (b"I1\n.", "not a pickle"),
    ],
)
def test_hostile_pickles_are_one_line(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=f"t.pt: .*({says})") as error:
        holdfast.load(with_pickle(tmp_path, data))
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


def test_what_is_no_plain_tensor_is_named(tmp_path: Path) -> None:
    values = [torch.eye(2).to_sparse(), torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), print]
    for value in values:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = saved(tmp_path, {"layer": value})
        with pytest.raises(ValueError, match="t.pt: .*names (torch|__builtin__)"):
            holdfast.load(path)
    meta = saved(tmp_path, {"m": torch.empty(2, device="meta"), "a": torch.ones(2)})
    with pytest.raises(ValueError, match="tensor m: it was saved without its elements"):
        holdfast.load(meta)
    assert same(holdfast.load(meta, names=["a"])["a"], torch.ones(2))
    torch.save({"a": torch.ones(2)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="old.pt: .*before version 1.6.*write it anew"):
        holdfast.load(tmp_path / "old.pt")
    with zipfile.ZipFile(tmp_path / "z.pt", "w") as archive:
        archive.writestr("readme", "x")
    with pytest.raises(ValueError, match="z.pt: .*none of torch.save"):
        holdfast.load(tmp_path / "z.pt")
    for keys in ({"a.b": torch.ones(1), "a": {"b": torch.ones(1)}}, {(1, 2): torch.ones(1)}, {"\ud800": torch.ones(1)}):
        with pytest.raises(ValueError, match="t.pt: .*(two tensors are called a.b|neither text nor integer|not UTF-8)"):
            holdfast.load(saved(tmp_path, keys))
    with pytest.raises(ValueError, match="t.pt: .*70000 bytes, at most 65535"):
        holdfast.load(saved(tmp_path, {"n" * 70_000: torch.ones(1)}))


def outcome(path: Path, key: str | None) -> dict[str, torch.Tensor] | str:
    try:
        return holdfast.load(path, key=key)
    except ValueError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        return str(error)


def small_files(tmp_path: Path) -> list[tuple[Path, dict[str, torch.Tensor], str | None]]:
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(5, dtype=torch.bfloat16)}
    write_tensorizer(tmp_path / "t.tz", tensors)
    params = EncryptionParams.from_string("s", opslimit=1, memlimit=8192)
    write_tensorizer(tmp_path / "e.tz", {name: each.clone() for name, each in tensors.items()}, encryption=params)
    paths = ((saved(tmp_path, tensors), None), (tmp_path / "t.tz", None), (tmp_path / "e.tz", "s"))
    return [(path, tensors, key) for path, key in paths]


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    for path, _, key in small_files(tmp_path):
        whole = path.read_bytes()
        step = 1 if len(whole) < 10_000 else 3
        ends = [*range(0, min(len(whole), 400), 7), *range(FIRST_RECORD - 20, len(whole), step), len(whole) - 16]
        for end in ends if len(whole) > 10_000 else range(0, len(whole)):
            path.write_bytes(whole[:end])
            assert isinstance(outcome(path, key), str), f"{path} cut at {end}"


def test_a_flipped_bit_anywhere_is_refused_or_changes_no_tensor(tmp_path: Path) -> None:
    for path, tensors, key in small_files(tmp_path):
        whole = path.read_bytes()
        places = range(len(whole)) if len(whole) < 10_000 else [*range(200), *range(FIRST_RECORD, len(whole))]
        refused = 0
        for place in places:
            damaged = bytearray(whole)
            damaged[place] ^= 1 << place % 8
            path.write_bytes(damaged)
            found = outcome(path, key)
            if isinstance(found, str):
                refused += 1
                continue
            assert set(found) == set(tensors), f"{path} at {place}"
            assert all(same(found[name], tensor) for name, tensor in tensors.items()), f"{path} at {place}"
        assert refused > len(places) / 3


def test_hostile_tensorizer_headers_are_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.tz"
    write_tensorizer(path, {"w": torch.ones(4)})
    whole = path.read_bytes()
    entry = 73 + 2 + 1 + 1 + 1 + 3 + 1 + 4  # up to the places in the only entry of the index
    assert struct.unpack_from("<Q", whole, entry)[0] == FIRST_RECORD
    for at, form, value, says in (
        (FIRST_RECORD, "<Q", 3, "another size"),
        (FIRST_RECORD, "<Q", 2**62, "another size"),
        (FIRST_RECORD + 11, "<H", 0xFFFF, "cut off"),
        (57, "<Q", 2**40, "1099511627776 tensors"),
        (57, "<Q", 0, "more than its 0 tensors"),
        (57, "<Q", 2, "begins at byte 0"),
        (65, "<Q", 2**62, "claims 4611686018427387904 bytes"),
        (entry, "<Q", 2**50, "begins at byte"),
        (entry + 8, "<Q", 2**50, "outside the file"),
        (entry + 16, "<Q", 2**63, "needs 16 bytes|outside the file"),
        (entry - 4, "<I", 2**32 - 1, "needs"),
        (5, "<I", 9, "version 9"),
        (5, "<I", 3, "encrypted; give"),
        (9, "<B", 1, "flags"),
        (len(whole) - 8, "<Q", 1, "no end mark"),
    ):
        damaged = bytearray(whole)
        struct.pack_into(form, damaged, at, value)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"t.tz: .*({says})"):
            holdfast.load(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(ValueError, match="the file has"):
        holdfast.load(path)


def test_dimensions_beyond_32_bits_are_exact(tmp_path: Path) -> None:
    write_tensorizer(tmp_path / "t.tz", {"w": torch.empty(2**33 + 1, 0), "a": torch.ones(2)})
    assert struct.unpack_from("<I", (tmp_path / "t.tz").read_bytes(), 5)[0] == 5
    loaded = holdfast.load(tmp_path / "t.tz")
    assert loaded["w"].shape == (2**33 + 1, 0) and same(loaded["a"], torch.ones(2))


def test_views_that_would_fill_memory_are_refused(tmp_path: Path) -> None:
    tensors = {"w": torch.ones(1).expand(2**30, 2**8)}
    with pytest.raises(ValueError, match="t.pt: tensor w: .*the file has only"):
        holdfast.load(saved(tmp_path, tensors))
