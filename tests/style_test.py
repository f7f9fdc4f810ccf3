"""Tests of tools/style: this tree keeps it, and each breach is found."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def load(path: Path) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    spec = importlib.util.spec_from_loader(path.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


style = load(ROOT / "tools" / "style")


def test_this_tree_keeps_the_style() -> None:
    assert style.check(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        pytest.param("src/a/a.h", "#pragma once\n", "does not open", id="no opening, C++"),
        pytest.param("python/a.py", "import os\n", "does not open", id="no opening, Python"),
        pytest.param("tools/a", "#!/bin/bash\nset -e\n", "does not open", id="no opening, script"),
        pytest.param("src/a/b.cc", "// B.\n" + "\n" * 500, "501 lines", id="long file"),
        pytest.param("src/a/c.cc", "// C.\n// FIXME: later\n", "note to self", id="note to self"),
        pytest.param("src/a/d_test.cc", "// D.\nGTEST_SKIP();\n", "skipped", id="skipped test"),
        pytest.param("python/e.py", '"""E."""\n' + "e" * 121 + "\n", "121 columns", id="wide line"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, name: str, text: str, found: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    breaches = style.check(tmp_path)
    assert len(breaches) == 1
    assert name in breaches[0]
    assert found in breaches[0]


def test_a_source_is_introduced_by_its_header(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.h").write_text("// A.\n")
    for name in ("a.cc", "a_test.cc"):
        (tmp_path / "src" / name).write_text('#include "a.h"\n')
    assert style.check(tmp_path) == []
