"""Tests of tools/rooms, which holds the dependency rule: this tree keeps it, and each way to break it is found."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def load(path: Path) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    spec = importlib.util.spec_from_loader(path.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


rooms = load(ROOT / "tools" / "rooms")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Four small rooms that keep the rule, below a folder with a space in its name."""
    return write(
        tmp_path / "a tree",
        {
            "src/base/CMakeLists.txt": "holdfast_room(base LINKS spdlog::spdlog)\n",
            "src/base/result.h": "#include <string>\n#include <sys/types.h>\n",
            "src/base/log.cc": "#include <spdlog/spdlog.h>\n",
            "src/world/CMakeLists.txt": "holdfast_room(world USES base)\n",
            "src/world/world.h": '#include "base/result.h"\n',
            "src/world/real_loop.h": "#include <asio/io_context.hpp>\n",
            "src/world/real_loop.cc": '#include "world/real_loop.h"\n',
            "src/world/fixture.h": "#include <gtest/gtest.h>\n",
            "src/world/world_test.cc": '#include "world/fixture.h"\n',
            "src/sim/CMakeLists.txt": "holdfast_room(sim USES world base)\n",
            "src/sim/sim_world.h": '#include "world/world.h"\n',
            "src/store/CMakeLists.txt": "# a comment\nholdfast_room(store USES world base TEST_USES sim)\n",
            "src/store/checkpoint.h": '#include "world/world.h"\n',
            "src/store/checkpoint_test.cc": '#include "sim/sim_world.h"\n#include "store/checkpoint.h"\n',
            "python/seat.h": '#include "world/world.h"\n',
            "python/core.cc": '#include <pybind11/pybind11.h>\n#include "seat.h"\n#include "store/checkpoint.h"\n',
        },
    )


def test_this_tree_keeps_the_rule() -> None:
    assert rooms.check(ROOT) == []


def test_a_tree_that_keeps_the_rule_passes(tree: Path) -> None:
    assert rooms.check(tree) == []


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        pytest.param("src/world/up.cc", '#include "store/checkpoint.h"', "world does not list store", id="upward"),
        pytest.param("src/sim/side.h", '#include "store/checkpoint.h"', "sim does not list store", id="sideways"),
        pytest.param("src/store/in.cc", '#include "sim/sim_world.h"', "store does not list sim", id="sim"),
        pytest.param("src/store/log.h", "#include <spdlog/spdlog.h>", "another project's", id="third party"),
        pytest.param("src/store/isal.h", "#include <isa-l.h>", "another project's", id="third party, no folder"),
        pytest.param("src/store/loop.cc", '#include "world/real_loop.h"', "src/world alone", id="private header"),
        pytest.param("src/store/deep.cc", '#include "store/deep.h"', "src/world alone", id="private header, deep"),
        pytest.param("src/world/in.cc", '#include "world/fixture.h"', "_test.cc alone", id="test's header"),
        pytest.param("src/store/near.cc", '#include "checkpoint.h"', "includes start there", id="not from src"),
        pytest.param("python/sim.cc", '#include "sim/sim_world.h"', "python does not list sim", id="python"),
        pytest.param("src/extra/extra.cc", "", "no CMakeLists.txt", id="room without a list"),
    ],
)
def test_a_file_that_breaks_the_rule_is_named(tree: Path, file: str, text: str, found: str) -> None:
    if file == "src/store/deep.cc":
        write(tree, {"src/store/deep.h": '#include "world/real_loop.h"\n'})
    write(tree, {file: text + "\n"})
    breaches = rooms.check(tree)
    assert len(breaches) == 1
    assert found in breaches[0]
    assert file.rsplit("/", 1)[0] in breaches[0]


@pytest.mark.parametrize(
    ("room", "text", "found"),
    [
        pytest.param("world", "holdfast_room(world USES base store)", "lists store", id="upward"),
        pytest.param("sim", "holdfast_room(sim USES store world base)", "lists store", id="sideways"),
        pytest.param("store", "holdfast_room(store USES sim world base)", "lists sim", id="sim"),
        pytest.param("store", "holdfast_room(shop USES world base)", "declares the room shop", id="wrong name"),
    ],
)
def test_a_list_that_breaks_the_rule_is_found(tree: Path, room: str, text: str, found: str) -> None:
    write(tree, {f"src/{room}/CMakeLists.txt": text})
    assert any(found in breach for breach in rooms.check(tree))


def test_an_empty_room_is_found(tree: Path) -> None:
    for file in ("src/store/checkpoint.h", "src/store/checkpoint_test.cc", "python/core.cc"):
        (tree / file).unlink()
    assert rooms.check(tree) == ["src/store is empty"]
