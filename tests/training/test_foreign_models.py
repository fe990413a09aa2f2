"""Models of transformers train like our own: every depth method, telemetry, resume, compilation, a pretrained start."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.costs import quick_ones
from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, train
from workbench.choices.choice import registry
from workbench.models.export import main
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import read_evaluations
from workbench.telemetry.streams import read_telemetry
from workbench.training.loop import Training
from workbench.training.restored import restore

Live = Callable[[Recipe], LiveRun]
SMALL = {"kind": "transformers", "layers": 4, "width": 32, "heads": 2}


def recipe_of(tiny: Recipe, model: str, **changes: Any) -> Recipe:
    causal = model in ("gpt2", "llama")
    return tiny.with_(architecture={**SMALL, "model": model}, objective="causal" if causal else "masked", **changes)


# One that grows and freezes, and one that is refused; that every other resumes is shown of our own models.
QUICK = ("multi_stage", "grow_width")


@pytest.mark.parametrize(
    "depth", [each if each in QUICK else pytest.param(each, marks=pytest.mark.extended) for each in registry("depth")]
)
def test_every_depth_method_trains_and_resumes_bit_exactly(tiny: Recipe, live: Live, depth: str) -> None:
    recipe = recipe_of(tiny, "bert").with_(budget="6 steps")
    fields = {**recipe.to_dict(), "depth": {"kind": depth}, "execution": {**recipe.to_dict()["execution"],
              "micro_batch_size": 8, "layers_every": 1}}  # fmt: skip
    if Recipe.check(fields):
        # Refused before launch, with the reason: a method that must know how a block is made.
        assert "transformers cannot be widened" in Recipe.check(fields)[0].message
        return
    recipe = Recipe(**fields)
    straight, halved = live(recipe), live(recipe)
    whole = train(straight)
    train(halved, stop_at=3)
    assert_same(whole, train(halved, resume=True))
    record = read_telemetry(straight.folder.telemetry).layers[-1]
    ran = [share > 0 for share in record["ran"]]
    assert [value is not None for value in record["activation_rms"]] <= ran
    assert any(value is not None for value in record["grad_norm"])


@pytest.mark.parametrize("depth", ["stacking", "multi_stage"])
@pytest.mark.parametrize("state", ["reset", "copy"])
def test_modernbert_grows_though_its_first_layer_has_a_norm_less(
    tiny: Recipe, build: Callable[..., Training], depth: str, state: str
) -> None:
    """Copies are by name: the norm that the first layer lacks stays as fresh, everything else is the source's."""
    recipe = recipe_of(tiny, "modernbert").with_(depth={"kind": depth, "shares": (1, 1), "state": state})
    training = build(recipe.with_(budget="10 steps"))
    blocks = training.model.backbone.blocks
    start = next(step for step in range(10) if recipe.depth.stage(4, dataclasses.replace(training.progress, step=step)))
    for _ in range(start):
        training.step()
    source = {name: weight.clone() for name, weight in blocks[0].state_dict().items()}
    assert training.growth.advance(training.recipe, training.progress) is (state == "reset" and depth == "stacking")
    copy = dict(blocks[2].state_dict())
    assert set(copy) - set(source) == {"attn_norm.weight"}
    assert torch.equal(copy.pop("attn_norm.weight"), torch.ones(32))
    assert all(torch.equal(copy[name], weight) for name, weight in source.items())
    assert bool(training.optimizer.state.get(blocks[2].attn.Wo.weight)) == (state == "copy")
    training.step()


@pytest.mark.parametrize("model", quick_ones(["modernbert", "gpt2", "llama"], "gpt2"))
def test_it_learns_and_says_what_its_layers_do(tiny: Recipe, live: Live, model: str) -> None:
    run = live(recipe_of(tiny, model).with_(budget="30 steps", **{"optimizer.lr": 1e-2}))
    train(run)
    result = read_evaluations(run.folder)
    # Fresh weights know nothing: ln 256 nats.
    assert result["heldout"][-1]["loss"] < math.log(256) - 0.5
    # The last one: the first is of a step at rate 0.
    record = [each for each in read_telemetry(run.folder.telemetry).layers if "attention_entropy" in each][-1]
    for name in ("attention_entropy", "activation_rms", "grad_norm", "update_ratio"):
        assert all(value is not None and value > 0 for value in record[name]), name


@pytest.mark.extended
@pytest.mark.process
def test_compiled_training_computes_the_same(tiny: Recipe, build: Callable[..., Training]) -> None:
    ended = []
    for compiled in (False, True):
        training = build(recipe_of(tiny, "llama").with_(depth="progressive_drop", **{"architecture.layers": 2}))
        if compiled:
            # Every graph is traced and differentiated as in a run; writing C++ for it takes minutes and is not ours.
            training.model.compile(backend="aot_eager")
        for _ in range(4):
            training.step()
        ended.append(torch.cat([parameter.detach().flatten() for parameter in training.model.parameters()]))
    torch.testing.assert_close(ended[1], ended[0], rtol=1e-3, atol=1e-4)
    torch._dynamo.reset()


def test_an_exported_model_is_where_the_next_run_begins(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    first = live(recipe_of(tiny, "bert"))
    train(first, stop_at=2)
    folder = tmp_path / "model"
    assert main([str(first.folder.path), str(folder)]) == 0
    _, made, _ = restore(first.folder)
    data = {"tokenizer": {"kind": "pretrained", "name": str(folder)}}
    architecture = {"kind": "transformers", "model": str(folder), "pretrained": True}
    recipe = Recipe(**{**tiny.to_dict(), "architecture": architecture}
                    | {"data": {**tiny.to_dict()["data"], **data}})  # fmt: skip
    assert (recipe.architecture.layers, recipe.architecture.width) == (4, 32)
    second = live(recipe)
    train(second, stop_at=1)
    _, again, saved = restore(second.folder)
    # One small step away from where the first run ended, and nowhere near fresh weights.
    for (name, ours), theirs in zip(again.model.named_parameters(), made.model.parameters(), strict=True):
        assert (ours - theirs).abs().max() <= 1.1 * recipe.optimizer.lr + 1e-6, name
    assert saved.step == 1
