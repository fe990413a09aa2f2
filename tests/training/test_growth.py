"""Stages in a run: transitions once and in order, evaluation and checkpoints of a model that is still growing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
import torch

from tests.costs import quick_ones
from tests.training.conftest import LiveRun
from tests.training.test_resume import train
from workbench.choices.choice import registry
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.choices.progress import Progress
from workbench.recipes.changes import turnable
from workbench.recipes.recipe import Recipe
from workbench.telemetry.streams import TelemetryWriter, read_telemetry
from workbench.training.evaluate import evaluate
from workbench.training.growth import Growth
from workbench.training.loop import Training
from workbench.training.restored import restore
from workbench.training.warmup import _variants, compile_ahead

Build = Callable[..., Training]
GROWING = {"kind": "multi_stage", "shares": (1, 1), "joint": 0.2}


def test_two_boundaries_in_one_step_are_passed_one_by_one(tiny: Recipe, build: Build) -> None:
    """A run counted in seconds may stand still for minutes: copies of copies, as if each stage had begun."""
    recipe = tiny.with_(architecture={"layers": 4}, depth="stacking")
    training = build(recipe)
    training.step()
    training.growth.advance(recipe, Progress(19, 0, 0.0, recipe.budget))
    assert (training.assembled.stage, training.assembled.layers) == (2, 4)
    blocks = [block.feed_forward.up.weight for block in training.model.backbone.blocks]
    assert all(torch.equal(blocks[0], block) for block in blocks[1:])


def test_what_was_announced_is_known_after_a_resume_also_of_a_checkpoint_of_before(tiny: Recipe, build: Build) -> None:
    recipe = tiny.with_(architecture={"layers": 4}, depth="stacking")
    training = build(recipe)
    training.step()
    state = training.growth.state()
    shape = json.loads(json.dumps(state["shape"]))
    # Then the fields stood in a list, in this order.
    for saved in (shape, list(shape.values())):
        assert Growth(training.assembled, saved={"stage": 0, "shape": saved}).state() == state
    assert Growth(training.assembled, saved={"stage": 0, "shape": None}).state()["shape"] is None


@pytest.mark.parametrize("kind", quick_ones(registry("depth"), "stacking", "progressive_drop"))
def test_telemetry_has_one_value_for_every_layer_of_the_finished_model(
    kind: str, tiny: Recipe, build: Build, tmp_path: object
) -> None:
    recipe = tiny.with_(architecture={"layers": 4}, depth=kind, execution={"layers_every": 1})
    writer = TelemetryWriter(tmp_path)
    training = build(recipe, writer=writer)
    while not training.progress.done:
        training.step()
    writer.close()
    records = read_telemetry(tmp_path).layers
    assert len(records) == 20
    for record in records:
        exist = [state != 3 for state in record["state"]]
        for name, vector in record.items():
            if isinstance(vector, list):
                assert len(vector) == 4, name
                assert all(there or name == "state" or value is None
                           for there, value in zip(exist, vector, strict=True)), name  # fmt: skip
        for state, norm, ran in zip(record["state"], record["grad_norm"], record["ran"], strict=True):
            assert (norm is not None) == (state in (0, 4, 5)), "running, grown and copied layers have gradients"
            assert (ran is None) == (state == 3)


@pytest.mark.parametrize("kind", quick_ones(registry("depth"), "stacking", "progressive_drop"))
def test_flops_follow_the_plan(kind: str, tiny: Recipe, build: Build) -> None:
    """Never more than the finished model at full depth costs, and exactly that where a plan is full."""
    recipe = tiny.with_(architecture={"layers": 4}, depth=kind, objective="causal")
    training, whole = build(recipe), build(recipe.with_(depth="full"))
    whole.step()
    full = whole.recorder.useful_flops
    while not training.progress.done:
        before, plan = training.recorder.useful_flops, training.plan()
        training.step()
        cost = training.recorder.useful_flops - before
        finished = training.assembled.architecture == recipe.architecture
        if plan.runs == plan.trains == (True,) * 4 and finished:
            # Documents differ from batch to batch, and with them what attention has to look at.
            assert cost == pytest.approx(full, rel=0.04)
        else:
            assert cost < 0.95 * full


def test_evaluation_of_a_growing_model_runs_the_layers_that_exist(tiny: Recipe, live: Callable[..., LiveRun]) -> None:
    """While it trains, and of a saved checkpoint; the same number both times, with the blocks beyond left out."""
    run = live(tiny.with_(architecture={"layers": 4}, depth=GROWING))
    saved = train(run, stop_at=6)
    assert saved.meta["growth"]["stage"] == 0
    recipe, made, _ = restore(run.folder)
    assert (made.layers, len(made.model.backbone.blocks)) == (2, 4)
    heldout = HeldoutSet.load(run.folder.heldout, made.vocabulary)
    loss = evaluate(recipe, made, heldout)
    with torch.no_grad():
        for parameter in made.model.backbone.blocks[2:].parameters():
            parameter.fill_(math.nan)
    assert evaluate(recipe, made, heldout) == loss
    batch, seen = next(heldout.batches(32, 4))
    assert not torch.isfinite(made.model.heldout(batch, seen, LayerPlan.full(4))).all()
    train(run, resume=True)
    assert restore(run.folder)[1].layers == 4


def test_a_checkpoint_of_either_width_can_be_read(tiny: Recipe, live: Callable[..., LiveRun]) -> None:
    run = live(tiny.with_(architecture={"layers": 4}, depth="grow_width"))
    train(run, stop_at=5)
    assert restore(run.folder)[1].architecture.width == 16
    train(run, resume=True)
    recipe, made, _ = restore(run.folder)
    assert made.architecture == recipe.architecture
    assert evaluate(recipe, made, HeldoutSet.load(run.folder.heldout, made.vocabulary)).loss > 0


@pytest.mark.extended
@pytest.mark.parametrize("kind", quick_ones(registry("depth"), "stacking", "progressive_drop"))
def test_compiling_ahead_leaves_no_trace_whatever_is_to_come(kind: str, tiny: Recipe, build: Build) -> None:
    recipe = tiny.with_(architecture={"layers": 4}, depth=kind)
    warm, cold = build(recipe), build(recipe)
    compile_ahead(warm)
    while not warm.progress.done:
        warm.step()
        cold.step()
    for one, other in zip(warm.model.parameters(), cold.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_compiling_ahead_meets_every_stage_once(tiny: Recipe, build: Build) -> None:
    recipe = tiny.with_(
        architecture={"layers": 12}, depth={"kind": "multi_stage", "shares": (96, 1, 1, 1), "joint": 0.01}
    )
    plans = [plan for plan, _, _ in _variants(build(recipe.with_(budget="1000 steps")))]
    # Stages 2 to 4 differ in numbers of layers only, and equal layers in equal roles share graphs.
    assert [(plan.layers, plan.trains.count(False)) for plan in plans] == [(3, 0), (6, 3)]
    wide = build(tiny.with_(depth="grow_width", budget="1000 steps"))
    assert len(list(_variants(wide))) == 2
    assert wide.growth.model_of(wide.recipe, 1) is wide.growth.model_of(wide.recipe, 1) is not wide.model


def test_embedding_and_head_are_told_apart(tiny: Recipe, build: Build) -> None:
    model = build(tiny.with_(architecture={"head": "transform", "positions": "learned"})).model
    full = LayerPlan.full(3)
    for embedding in (True, False):
        for head in (True, False):
            plan = LayerPlan(full.runs, full.scale, full.trains, full.keep, 3, embedding=embedding, head=head)
            model.freeze_outside(plan)
            found = {name: p.requires_grad for name, p in model.named_parameters() if ".blocks." not in name}
            assert {
                n for n, on in found.items() if on != embedding and n.startswith("backbone.") and "final" not in n
            } == set()
            assert {n for n, on in found.items() if on != head and ("head." in n or "final" in n)} == set()
    assert len(found) >= 7


@pytest.mark.parametrize("kind", registry("depth"))
def test_stages_that_have_begun_cannot_be_turned(kind: str, tiny: Recipe) -> None:
    recipe = tiny.with_(architecture={"layers": 4}, depth=kind)
    paths = {path for path in turnable(recipe) if path.startswith("depth.")}
    own = {f"depth.{name}" for name in type(recipe.depth).model_fields if name != "kind"}
    assert paths == (own if len(recipe.depth.starts()) == 1 else set())


@pytest.mark.parametrize("kind", quick_ones(registry("depth"), "stacking", "progressive_drop"))
def test_accumulation_gives_the_whole_batchs_gradients(kind: str, tiny: Recipe, build: Build) -> None:
    """In every stage, for methods whose micro-batches all do the same."""
    recipe = tiny.with_(architecture={"layers": 4, "dropout": 0.0}, depth=kind)
    whole, parts = build(recipe), build(recipe.with_(execution={"micro_batch_size": 8}))
    steps = [Progress(step, 0, 0.0, recipe.budget) for step in range(20)]
    if any(recipe.depth.plan(4, step, 0, 0).runs != recipe.depth.plan(4, step, 0, 1).runs for step in steps):
        pytest.skip("each micro-batch has layers of its own: gradients differ by design")
    while not whole.progress.done:
        whole.step()
        parts.step()
        assert parts.recorder.loss == pytest.approx(whole.recorder.loss, abs=2e-3)
