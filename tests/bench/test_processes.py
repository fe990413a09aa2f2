"""The benchmark of two processes: a toy of it, with real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.bench.processes import arms, main
from workbench.recipes import presets


def test_arms_differ_in_rows_alone() -> None:
    found = arms(presets.fast())
    assert {name: (recipe.data.batch_size, many) for name, (recipe, many) in found.items()} == {
        "one": (16, 1), "half": (8, 1), "two": (16, 2), "double": (32, 2),
    }  # fmt: skip
    assert {recipe.execution.threads for recipe, _ in found.values()} == {1}


@pytest.mark.process
@pytest.mark.extended
def test_a_toy_of_it_says_what_it_measured(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.dumps({"kind": "files", "paths": [str(corpus)], "tokenizer": {"vocabulary_size": 256},
                       "sequence_length": 32, "batch_size": 8})  # fmt: skip
    small = ["--set", f"data={data}", "--set", "architecture.layers=1", "--set", "architecture.width=32"]
    small += ["--set", "execution.compile=false", "--rounds", "1", "--steps", "6", "--warmup", "2"]
    assert main([*small, "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("processes-*.json")
    found = json.loads(path.read_text())
    assert found["arms"]["two"]["sent_mib"]["median"] == pytest.approx(4 * found["parameters"] / 2**20, rel=0.01)
    assert found["arms"]["one"]["sent_mib"]["median"] == 0
    assert "two processes:" in capsys.readouterr().out
