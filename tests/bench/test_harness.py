"""A spec becomes a command: its options, its result file with scores and verdicts, its tables; toys of benchmarks."""

from __future__ import annotations

import importlib
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from workbench.base.errors import WorkbenchError
from workbench.bench import harness
from workbench.bench.command import main
from workbench.bench.harness import recipe_of, rounds_of, run, scores
from workbench.bench.result import verdict
from workbench.bench.rounds import waterfall
from workbench.bench.table import BENCHMARKS, Benchmark, Rows

RESULTS = Path(__file__).parents[2] / "docs" / "results"
NAMES = {spec.saved_as or name: name for name, spec in BENCHMARKS.items()}


def printed(name: str, result: dict[str, Any]) -> str:
    """Return what is shown of a result."""
    console = Console(width=250, record=True, file=io.StringIO())
    harness.show(BENCHMARKS[name], result, console)
    return console.export_text()


def without_a_value(name: str, result: dict[str, Any]) -> list[str]:
    """Columns of scores of a spec that no row of a result fills: a name that the benchmark does not give."""
    found, module = [], importlib.import_module(f"workbench.bench.{name}")
    result = {**result, **getattr(module, "shown", dict)(result)}
    for rows in BENCHMARKS[name].tables:
        given = [row for _, _, row in harness._rows(rows, result)]
        for column in (harness.Column.of(rows, text) for text in rows.columns.split()):
            if column.better and all(harness._at(row, column.path) is None for row in given):
                found.append(f"{rows.path}: {column.path}")
    return found


def test_every_score_of_forecasts_at_scale_is_one_that_its_result_has() -> None:
    found = json.loads((RESULTS / "scale-2026-11-28.json").read_text(encoding="utf-8"))
    assert without_a_value("scale", found) == []
    assert list(scores(BENCHMARKS["scale"], found)) == ["others, median", "one, median"]


@pytest.mark.process  # git, for the revision
def test_a_spec_measures_saves_and_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(options: Any) -> dict[str, Any]:
        speed = {"a": {"speed_ms": {"median": 2.0, "min": 1.5, "max": 2.5}, "memory_bytes": 3 * 2**20, "held": True}}
        told = {"seed": recipe_of(options).seed, **rounds_of(options), "only": options.only, "deep": options.deep}
        readings = {"x": [1.0], "y": [4.0]}
        found = waterfall(readings, [("", "x"), ("hats", "y")])
        return {"arms": speed, "waterfall": found, "verdicts": [verdict("held", 0.5, ">=", 0.75, "share")], **told}

    toy = Benchmark(
        "A toy.", "seconds", (Rows("arms", "-speed_ms memory_bytes held missing"),), {"waterfall": "Hats"},
        preset="fast", rounds=3, steps=2, warmup=1, options={"--only": ([1], "these"), "--deep": (False, "deeper")},
        saved_as="toys",
    )  # fmt: skip
    monkeypatch.setitem(BENCHMARKS, "toy", toy)
    monkeypatch.setitem(sys.modules, "workbench.bench.toy", SimpleNamespace(measured=measured, __doc__="A toy."))
    assert run("toy", ["--set", "seed=5", "--rounds", "4", "--only", "7", "8", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("toys-*.json")
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert [saved[key] for key in ("seed", "rounds", "steps", "warmup", "only")] == [5, 4, 2, 1, [7, 8]]
    assert {"hardware", "versions", "revision", "date"} <= saved.keys()
    assert (saved["schema"], saved["deep"]) == (2, False)
    score = saved["scores"]["a, speed, ms"]
    assert [score[key] for key in ("value", "unit", "count", "better")] == [2.0, "ms", 4, "lower"]
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    for words in ("2 (1.5 to 2.5)", "memory, MiB", "4.00x", "50.0%", "target missed"):
        assert words in out
    assert "missing" not in out
    assert run("toy", ["--show", str(path)]) == 0
    assert "2 (1.5 to 2.5)" in capsys.readouterr().out
    assert main(["--show", str(path)]) == 0, "the file names its benchmark"
    assert "2 (1.5 to 2.5)" in capsys.readouterr().out
    with pytest.raises(WorkbenchError, match="no result of `bench peers`"):
        run("peers", ["--show", str(path)])
    for argv in (["peers"], []):
        with pytest.raises(WorkbenchError, match=r"there is no result file .*nosuch\.json"):
            main([*argv, "--show", str(tmp_path / "nosuch.json")])
    (other := tmp_path / "other.json").write_text('{"benchmark": "nobody"}', encoding="utf-8")
    with pytest.raises(WorkbenchError, match=r"other\.json' holds no result of a benchmark"):
        main(["--show", str(other)])


def test_every_published_result_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown = 0
    for path in RESULTS.glob("*.json"):
        if name := NAMES.get(json.loads(path.read_text(encoding="utf-8")).get("benchmark", "")):
            assert run(name, ["--show", str(path)]) == 0
            assert capsys.readouterr().out.count("\u2502") > 5, path.name
            shown += 1
    assert shown >= 25


def test_lists_have_scores_by_their_rows() -> None:
    plans = {"auto": {"fast": {"plan": {"time": 1.1}, "time": {"median": 0.9, "min": 0.8, "max": 1.0}}}}
    assert {name: each.value for name, each in scores(BENCHMARKS["plans"], {"plans": plans}).items()} == {
        "auto, fast, time": 0.9
    }
    pairs = [{"ours": "a", "theirs": "b", "median": 2.0, "min": 1.0, "max": 3.0}]
    assert list(scores(BENCHMARKS["peers"], {"ratios": pairs})) == ["a, b, ratios"]


SIZES = {
    "adasum": "--tokens 4096 --times 2 --rates 1e-3 2e-3 --seeds 1",
    "optimizer_steps": "--preset fast --layers 1 --optimizers lion --threads 1 --rounds 2",
    "parallel_memory": "--steps 2",
    "presets": "fast",
    "processes": "--rounds 1 --steps 6 --warmup 2 --set architecture.width=32 --set execution.compile=false",
    "sampled_words": "--vocabulary 256 --rounds 1 --steps 1 --train 2 --set execution.compile=false",
    "scale": "",
    "telemetry": "--rounds 2 --steps 10 --preset fast --set execution.compile=false",
}
"""Options of toys; all the others have tests of their own."""


@pytest.mark.extended
@pytest.mark.process
@pytest.mark.parametrize("name", SIZES)
def test_a_toy_of_it_says_what_it_measured(
    name: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = {"kind": "trained", "vocabulary_size": 256}
    data = {"kind": "files", "paths": [str(corpus)], "tokenizer": tokenizer, "sequence_length": 32, "batch_size": 8}
    small = [f"data={json.dumps(data)}", "architecture.layers=1", "execution.device=cpu"]
    small += ["budget=3 steps"] if name == "presets" else []
    changes = (
        [part for change in small for part in ("--set", change)] if name not in ("optimizer_steps", "scale") else []
    )
    out = tmp_path / "presets.json" if name == "presets" else tmp_path
    assert run(name, [*SIZES[name].split(), *changes, "--out", str(out)]) == 0
    (path,) = tmp_path.glob("*.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["scores"]
    assert without_a_value(name, found) == []
    assert "saved" in capsys.readouterr().out
    if name == "processes":
        assert found["arms"]["two"]["sent_mib"]["median"] == pytest.approx(4 * found["parameters"] / 2**20, rel=0.01)
        assert found["arms"]["one"]["sent_mib"]["median"] == 0
    if name == "parallel_memory":
        assert [each["error"] for each in found["arms"].values()] == pytest.approx([0] * 5, abs=0.1)
    if name == "presets":
        assert all(each["steps"] == 3 and each["loss"] > 2 for each in found["runs"].values())
