"""What a GPU is asked, asked of a CPU: the same parts in the same processes, with models a twentieth as large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.bench.test_execution import told
from workbench.base.errors import RecipeError, WorkbenchError
from workbench.bench import execution, gpu, optimizer_steps, rounds
from workbench.bench.gpu import PARTS, Part, Setting
from workbench.bench.harness import run
from workbench.store.folder import read_object


def on_cpu(learnable: list[str], out: Path) -> list[str]:
    """Options of a start on a CPU with a tiny text."""
    data = [change for change in learnable if change.startswith("data=")]
    changes = [*data, "data.sequence_length=16", "data.batch_size=4", "execution.compile=false", "execution.threads=1"]
    shown = [part for change in changes for part in ("--set", change)]
    return ["--device", "cpu", "--scale", "0.05", "--steps", "2", "--minutes", "600", "--out", str(out), *shown]


@pytest.mark.extended
@pytest.mark.process
def test_parts_run_fail_and_go_on(
    learnable: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gpu.json"
    # Its process knows no such part, and dies.
    monkeypatch.setitem(PARTS, "broken", Part(10, gpu.lans))
    asked = ["broken", "tiny_128", *on_cpu(learnable, out)]
    assert run("gpu", asked) == 1, "a part is missing"
    found = read_object(out)
    assert {"hardware", "date", "revision", "versions"} <= set(found)
    states = {name: part["state"] for name, part in found["parts"].items()}
    assert states == {"broken": "failed", "tiny_128": "done"}
    assert "KeyError" in found["parts"]["broken"]["error"]
    speed = found["parts"]["tiny_128"]["result"]
    assert speed["mfu"] is None, "no data sheet of this processor"
    assert speed["share_of_product"] == pytest.approx(speed["flops_per_second"] / speed["product_flops"])
    assert len(speed["answers"]) == gpu.ROUNDS
    assert "tiny_128" in capsys.readouterr().out
    # The second start has nothing left to do.
    del PARTS["broken"]
    found["parts"].pop("broken")
    out.write_text(json.dumps(found), encoding="utf-8")
    assert run("gpu", asked[1:]) == 0
    assert capsys.readouterr().err.count("done before") == 1


@pytest.mark.process
def test_a_part_that_takes_too_long_is_ended(learnable: list[str], tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    assert run("gpu", ["data", *on_cpu(learnable, out), "--minutes", "0"]) == 1
    part = read_object(out)["parts"]["data"]
    assert part["state"] == "out of time"


def test_all_other_parts_here(learnable: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data = tuple(change for change in learnable if change.startswith("data="))
    setting = Setting("cpu", 0.05, 2, data)
    assert gpu.data(setting, 1.0)["vocabulary"] == 256
    base, large = (setting.recipe("bert_base", *shape) for shape in ((12, 768, 64, 512), (24, 1024, 32, 512)))
    assert [(each.architecture.layers, each.architecture.width) for each in (base, large)] == [(1, 64), (1, 64)]
    full = Setting("cpu", 1.0, 2, ()).recipe("bert_base", 24, 1024, 32, 512)
    assert (full.architecture.layers, full.architecture.heads, full.architecture.width) == (24, 16, 1024)
    assert (full.data.most_rows, full.data.longest, full.execution.micro_batch_size) == (32, 512, None)
    assert full.execution.precision == "bf16"
    monkeypatch.setattr(rounds, "take_rounds", told({}, {}))
    asked: list[Any] = []
    monkeypatch.setattr(optimizer_steps, "measure", lambda recipe, kinds, **rest: asked.append((recipe, kinds)) or {})
    gpu.lans(Setting("cpu", 1.0, 2, ()), 1.0)
    ((recipe, kinds),) = asked
    assert (recipe.architecture.layers, recipe.architecture.width, kinds) == (24, 1024, ["lans", "lamb"])
    found = gpu.ablation(setting, 100.0)
    assert found["waterfall"]["tokens_per_second"]["steps"]
    assert sum(part.seconds for part in PARTS.values()) <= 600


def test_a_device_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(RecipeError, match="no CUDA device"):
        run("gpu", ["--out", str(tmp_path / "gpu.json")])
    assert not (tmp_path / "gpu.json").exists()


def test_an_unknown_part_names_the_legal_ones(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match=r"'lan'.*did you mean 'lans'"):
        run("gpu", ["lan", "--out", str(tmp_path / "gpu.json")])


def test_no_time_left_is_told(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "take_rounds", told({}, {}))
    result = execution.measure(tiny, rounds=1, steps=1, warmup=2, seconds=-1.0)
    assert len(result["contenders"]) == rounds.AT_ONCE, "one group always runs"
    assert any("no time left" in why for why in result["skipped"].values())
