"""`holdfast demo` on a stand-in launcher that acts out a run: what it prints, writes and exits with."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.demo.launch import Job, command, find_launcher
from holdfast.demo.orchestrate import main
from holdfast.demo.schedule import Fault

KEYS = {
    "weights_identical",
    "hash_fault_free",
    "hash_faulted",
    "steps_lost",
    "steps_redone",
    "wall_s",
    "ettr",
    "goodput",
    "faults",
}

# The first lines are a shell script to the shell and a text to Python: a path in "#!" must hold no space.
LAUNCHER = """#!/bin/sh
''':'
exec "{python}" "$0" "$@"
'''
import json, pathlib, sys
words = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--") and "=" in word)
flaw = "{flaw}"
faults = json.loads(pathlib.Path(words["faults"]).read_text())["faults"] if "faults" in words else []
names = dict(sigkill="killed", sigstop="stopped", sleep="hung", gil="gil_held", kill_in_recovery="killed",
             slow="slow", flip_checkpoint="checkpoint_damaged", disk_full="checkpoint_failed", writer_crash="crashed")
if flaw == "misnamed":
    names["gil"] = "hung"
if flaw == "no_report":
    print("it hurts")
    sys.exit(1)
records, injected = [], []
for fault in faults:
    injected.append(dict(kind=fault["kind"], faults=[]))
    if flaw == "missed" and fault["kind"] == "slow":
        continue
    injected[-1]["faults"] = [len(records)]
    ranks = fault["ranks"] if "ranks" in fault else [fault["rank"]]
    records.append(dict(step=fault["step"], verdict=names[fault["kind"]], culprit=ranks, detect_s=0.01,
                        next_step_s=0.1))
out, steps = pathlib.Path(words["out"]), int(words["steps"])
for rank in range(int(words["nproc-per-node"])):
    loss = "0x1p+1" if flaw == "bits" and faults else "0x1p+0"
    gap = steps - 1 if flaw == "lost" and faults else steps
    (out / f"steps-{{rank}}.log").write_text("".join(f"{{i}} {{i * 50000000}} {{loss}}\\n" for i in range(gap)))
    weights = "b" if flaw == "weights" and faults or flaw == "ranks_differ" and rank == 1 else "a"
    (out / f"final-{{rank}}.json").write_text(json.dumps(dict(rank=rank, weights=weights * 64)))
report = dict(exit_code=0, wall_s=4.0, steps=steps, steps_lost=0, steps_redone=0, ettr=0.9,
              goodput=dict(start=1.0, train=3.0), faults=records, injected=injected)
pathlib.Path(words["report"]).write_text(json.dumps(report))
"""


def demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str, flaw: str = ""
) -> tuple[int, dict[str, Any]]:
    launcher = tmp_path / "launcher"
    launcher.write_text(LAUNCHER.format(python=sys.executable, flaw=flaw))
    launcher.chmod(0o755)
    monkeypatch.setenv("HOLDFAST_BINARY", str(launcher))
    code = main([f"--json={tmp_path / 'out.json'}", f"--keep={tmp_path / 'kept'}", *words])
    path = tmp_path / "out.json"
    return code, json.loads(path.read_text()) if path.exists() else {}


def test_a_good_run_exits_0_with_the_promised_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = demo(tmp_path, monkeypatch)
    assert code == 0
    assert set(out) == KEYS
    assert out["weights_identical"] and len(out["faults"]) == 11
    assert set(out["faults"][0]) == {"kind", "found", "named", "culprit", "detect_s", "next_step_s"}
    printed = capsys.readouterr().out
    assert "final weights identical: yes" in printed and "ETTR 0.900" in printed


@pytest.mark.parametrize(
    ("flaw", "complaint"),
    [
        ("misnamed", "named hung of"),
        ("missed", "missed"),
        ("bits", "losses differ"),
        ("lost", "no rank ever ended steps [239]"),
        ("weights", "the final weights are not"),
    ],
)
def test_whatever_is_wrong_is_said_and_exits_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flaw: str, complaint: str
) -> None:
    code, _ = demo(tmp_path, monkeypatch, flaw=flaw)
    assert code == 1
    assert complaint in capsys.readouterr().out


def test_a_launcher_that_fails_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = demo(tmp_path, monkeypatch, flaw="no_report")
    assert (code, out) == (1, {})
    assert "it hurts" in capsys.readouterr().err


def test_where_the_fault_free_run_is_wrong_there_is_nothing_to_compare_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = demo(tmp_path, monkeypatch, flaw="ranks_differ")
    assert (code, out) == (1, {})
    assert "WRONG: fault-free run: the ranks' final weights differ" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["fault-free"]


def test_many_seeds_share_one_fault_free_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = demo(tmp_path, monkeypatch, "--seed=5", "--seeds=3")
    assert code == 0
    assert set(out) == KEYS | {"seeds"} and len(out["seeds"]) == 3 and len(out["faults"]) == 33
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["fault-free", "seed-5", "seed-6", "seed-7"]


def test_a_plan_of_ones_own_replaces_the_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"faults": [{"kind": "sigstop", "step": 5, "rank": 1}]}))
    code, out = demo(tmp_path, monkeypatch, f"--faults={plan}", "--steps=20")
    assert code == 0
    assert [(fault["kind"], fault["culprit"]) for fault in out["faults"]] == [("sigstop", [1])]


@pytest.mark.parametrize("words", [["--ranks=1"], ["--steps=241"], ["--steps=40"], ["--seeds=0"]])
def test_what_cannot_be_done_exits_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert words[0].split("=")[0] in capsys.readouterr().err


def test_a_missing_plan_file_exits_1_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = demo(tmp_path, monkeypatch, f"--faults={tmp_path / 'none.json'}")
    assert code == 1
    assert "none.json" in capsys.readouterr().err


def test_the_command_line_names_a_plan_only_where_there_is_one(tmp_path: Path) -> None:
    job = Job(ranks=4, steps=240)
    plain = command("holdfast", job, tmp_path, [])
    planned = command("holdfast", job, tmp_path, [Fault("gil", 20, (1,))])
    assert not any(word.startswith("--faults") for word in plain)
    assert f"--faults={tmp_path / 'faults.json'}" in planned


def test_the_launcher_named_by_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_BINARY", "/somewhere/holdfast")
    assert find_launcher() == "/somewhere/holdfast"
