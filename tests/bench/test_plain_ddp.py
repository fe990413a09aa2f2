"""The benchmark beside torch's DDP: a toy of it, with real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.bench.harness import run


@pytest.mark.process
@pytest.mark.extended
def test_a_toy_of_it_takes_turns(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.dumps({"kind": "files", "paths": [str(corpus)], "tokenizer": {"vocabulary_size": 256},
                       "sequence_length": 32, "batch_size": 8})  # fmt: skip
    small = ["--set", f"data={data}", "--set", "architecture.layers=1", "--set", "architecture.width=32"]
    small += ["--set", "execution.compile=false", "--rounds", "2", "--steps", "4"]
    assert run("plain_ddp", [*small, "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("plain_ddp-*.json")
    found = json.loads(path.read_text())
    assert found["undisturbed"] == pytest.approx(found["step_ms"]["ours"] / found["step_ms"]["plain"])
    assert found["by_round"]["min"] > 0
    assert "ours beside plain DDP" in capsys.readouterr().out
