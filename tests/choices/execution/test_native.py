"""The native engine: what it makes of its knobs, combinations it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from tests.choices.objectives.test_token_prediction import START, batch_of, model_of
from workbench.base.errors import RecipeError
from workbench.choices.execution import Mode
from workbench.choices.execution.native import Native, NativeEngine
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.recipes.recipe import Recipe


@pytest.mark.parametrize(
    ("precision", "way_out"), [("tf32", "bf16 or fp32"), ("fp16", "bf16 or fp32"), ("fp8", "bf16")]
)
def test_precisions_of_a_gpu_are_refused_on_a_cpu(precision: str, way_out: str) -> None:
    with pytest.raises(
        RecipeError, match=rf"execution\.precision: {precision} needs a CUDA device \(.*\); use {way_out} on a"
    ):
        Recipe(execution={"kind": "native", "device": "cpu", "precision": precision})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device, where they are legal")
@pytest.mark.parametrize("precision", ["tf32", "fp16", "fp8"])
def test_precisions_of_a_gpu_are_refused_where_auto_means_a_cpu(precision: str) -> None:
    with pytest.raises(RecipeError, match=rf"execution\.precision: {precision} needs a CUDA device.*use bf16"):
        Recipe(execution={"kind": "native", "precision": precision}).engine()


def native(**knobs: object) -> NativeEngine:
    recipe = Recipe(execution={"kind": "native", "device": "cpu", **knobs})
    return recipe.execution.engine(recipe)


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_products_have_the_precision_and_weights_keep_theirs(precision: str, dtype: torch.dtype) -> None:
    engine, one = native(precision=precision), torch.ones(2, 2)
    with engine.autocast():
        assert (one @ one).dtype == dtype == engine.dtype
        assert one.dtype == torch.float32


def test_attention_is_the_one_asked_for_or_a_measured_one() -> None:
    assert native(attention="sdpa").attention == "sdpa"
    assert native(attention="sdpa").benchmarks() == []
    measured = native(attention="auto", precision="fp32", compile=False)
    assert measured.attention in measured.attentions == ("plain", "sdpa")
    assert [benchmark.name for benchmark in measured.benchmarks()] == ["attention"]


def test_a_mode_is_what_the_knobs_say() -> None:
    assert native(precision="fp32", threads=3).mode == Mode("cpu", 3, "fp32", compiled=True)


def test_only_what_is_asked_for_is_compiled() -> None:
    compiled: list[str] = []

    class Model(torch.nn.Module):
        def compile(self, **_: object) -> None:
            compiled.append("model")

    for engine in (native(compile=False), native()):
        engine.compile(Model())  # type: ignore[arg-type]
    assert compiled == ["model"]


def test_the_loss_scale_of_half_precision_is_in_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU, whose scaler is the same: gradients are scaled until they are finished, and overflow moves nothing."""
    monkeypatch.setattr(Native, "resolve_device", lambda self: torch.device("cpu"))
    recipe = Recipe(execution={"kind": "native", "precision": "fp16"})
    engine, weight = recipe.execution.engine(recipe), torch.nn.Parameter(torch.tensor([2.0]))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    assert engine.loss_scale == 2.0**16
    engine.backward((weight * 3).sum() / 2)
    assert weight.grad is not None
    assert weight.grad.item() == 1.5 * 2.0**16
    engine.finish(optimizer)
    assert weight.grad.item() == 1.5
    engine.step(optimizer)
    assert weight.item() == 0.5
    assert weight.grad is None
    engine.backward((weight * math.inf).sum())
    engine.finish(optimizer)
    engine.step(optimizer)
    assert weight.item() == 0.5
    again = recipe.execution.engine(recipe)
    again.restore(json.loads(json.dumps(engine.state())))
    assert again.loss_scale == engine.loss_scale == 2.0**15
    assert native().state() == {}
    native().restore({})
    native().restore(engine.state())  # a fork in another precision


def test_layouts_reach_the_model_and_the_record() -> None:
    # In a precision that no processor emulates.
    plain = native(attention="plain", precision="fp32")
    other = native(attention="plain", precision="fp32", head="all", padding="kept")
    shapes = []
    for engine in (plain, other):
        model = engine.place(model_of("masked"))
        assert isinstance(model, TokenPrediction)
        seen, batch = model.inputs(batch_of(), START)
        shapes.append((len(seen.labels_N), len(batch.tokens_BT)))
    # Two of 16 positions of three rows, in each of which two documents of 8 tokens stand.
    assert shapes == [(3 * 2, 3), (6 * 16, 6)]
    assert {"compiled": "blocks", "head": "all", "padding": "kept"}.items() <= other.described().items()
    assert plain.assumptions() == []
    assert "execution.padding 'kept' is priced as 'removed'" in other.assumptions()[0]


def test_without_a_compiler_a_run_trains_eagerly_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = native(compile=True)
    assert not engine.compiled
    assert "no C++ compiler 'g++'" in engine.findings["warning"]
    assert any("no C++ compiler" in line for line in engine.assumptions())
    # One that is named is found wherever it lies.
    compiler = tmp_path / "c++-99"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert native(compile=True).compiled
    assert "compiler" not in native(compile=True).findings.get("warning", "")
