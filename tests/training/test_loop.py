"""The loop: it learns, accumulates, notices NaN, and knows no method by name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import workbench.training.loop
from workbench.choices.choice import registry
from workbench.choices.depth.plan import Depth, LayerPlan
from workbench.recipes.recipe import AXES, Recipe
from workbench.telemetry.streams import TelemetryWriter, read_telemetry
from workbench.training.loop import Training, step_seed
from workbench.training.recorder import NotFinite

Build = Callable[..., Training]


def test_loss_falls(tiny: Recipe, build: Build) -> None:
    recipe = tiny.with_(budget="150 steps", objective="causal", optimizer={"lr": 1e-2}, architecture={"dropout": 0.0})
    training = build(recipe)
    losses = []
    for _ in range(150):
        training.step()
        losses.append(training.recorder.loss)
    assert losses[0] > 4.5
    assert sum(losses[-10:]) / 10 < losses[0] - 2.0


def test_a_step_seeds_what_it_draws_from_and_asks_no_gpu(
    tiny: Recipe, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = build(tiny)
    monkeypatch.setattr(torch, "manual_seed", lambda seed: pytest.fail("takes a tenth of a millisecond"))
    training.step()
    training.step()
    assert torch.initial_seed() == step_seed(tiny.seed, 1)


@pytest.mark.parametrize(("objective", "rows"), [("masked", 4), ("causal", 1)])
def test_a_step_does_not_depend_on_how_it_is_cut(tiny: Recipe, build: Build, objective: str, rows: int) -> None:
    """Pieces of documents are short, so that micro-batches of a causal model differ in their numbers of labels."""
    recipe = tiny.with_(objective=objective, architecture={"dropout": 0.0}, optimizer={"clip_norm": 0.05})
    whole, parts = build(recipe), build(recipe.with_(execution={"micro_batch_size": rows}))
    for _ in range(3):
        whole.step()
        parts.step()
        assert parts.recorder.loss == pytest.approx(whole.recorder.loss, abs=1e-5)
        assert float(parts.norm) == pytest.approx(float(whole.norm), rel=1e-5)
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-3)


def test_clipping_limits_the_norm_and_reports_it_unclipped(tiny: Recipe, build: Build, tmp_path: Path) -> None:
    writer = TelemetryWriter(tmp_path)
    training = build(tiny.with_(optimizer={"clip_norm": 1e-3}), writer=writer)
    seen: list[float] = []
    training.optimizer.register_step_pre_hook(
        lambda *_: seen.append(
            float(torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in training.model.parameters()])))
        )
    )
    training.step()
    writer.close()
    assert seen[0] == pytest.approx(1e-3, rel=1e-2)
    assert read_telemetry(tmp_path).series("grad_norm")[1][0] > 0.01


def overflows(training: Training) -> None:
    """Weights that are finite, and whose logits are not: what too high a rate leads to."""
    with torch.no_grad():
        training.model.backbone.embedding.weight.mul_(1e3)
        training.model.backbone.final.weight.mul_(1e38)


def breaks_weights(training: Training) -> None:
    """An optimizer that makes NaN of a finite gradient."""
    with torch.no_grad():
        training.model.backbone.embedding.weight[5, 3] = torch.nan


def breaks_gradients(training: Training) -> None:
    """A backward pass that overflows though the loss is finite."""
    weight = training.model.backbone.embedding.weight
    hook = weight.register_hook(lambda gradient: gradient * torch.inf)
    training.step()
    hook.remove()


@pytest.mark.parametrize("scalars_every", [1, 4])
@pytest.mark.parametrize(
    ("harm", "step", "cause"),
    [
        (overflows, 3, r"; lower optimizer\.lr"),
        (breaks_weights, 3, r"gradients before it were finite \(norm .*AdamW left backbone\.embedding\.weight not"),
        (breaks_gradients, 4, r"its gradients were not, so the backward pass overflowed; lower optimizer\.lr"),
    ],
)
def test_nan_stops_the_run_and_names_step_and_cause(
    tiny: Recipe, build: Build, scalars_every: int, harm: Callable[[Training], None], step: int, cause: str
) -> None:
    training = build(tiny.with_(execution={"scalars_every": scalars_every}))
    training.step()
    training.step()
    harm(training)
    with pytest.raises(NotFinite, match=rf"the loss became \S+ at step {step}.*{cause}"):
        training.step()


def test_the_last_update_is_looked_at_before_it_is_saved(tiny: Recipe, build: Build) -> None:
    training = build(tiny)
    assert "lower optimizer.lr" in str(training.not_finite("weights")), "nothing is known before the first step"
    training.step()
    breaks_weights(training)
    assert "AdamW left backbone.embedding.weight not finite" in str(training.not_finite("weights"))


def test_soap_trains_through_dead_units(tiny: Recipe, build: Build) -> None:
    """ReLU^2 with a bias far below zero: all columns of the second product's gradient are zero but a few."""
    recipe = tiny.with_(optimizer={"kind": "soap"}, architecture={"ffn": "relu2", "bias": True}, budget="12 steps")
    training = build(recipe)
    with torch.no_grad():
        for block in training.model.backbone.blocks:
            block.feed_forward.up.bias[6:] = -100.0
    for _ in range(12):
        training.step()
    training.settle()
    assert all(weight.isfinite().all() for weight in training.model.parameters())


@pytest.mark.parametrize("dropped", ["rests", "momentum"])
@pytest.mark.parametrize("kind", ["progressive_drop", "raptr"])
def test_layers_that_no_micro_batch_ran_rest_or_move_by_momentum(
    tiny: Recipe, build: Build, kind: str, dropped: str, tmp_path: Path
) -> None:
    limits = {"theta": 0.3, "gamma": 9.0} if kind == "progressive_drop" else {"lengths": [0.7], "shares": [1.0]}
    recipe = tiny.with_(
        depth={"kind": kind, "dropped": dropped, **limits}, execution={"micro_batch_size": 8, "layers_every": 1}
    )
    writer = TelemetryWriter(tmp_path)
    training = build(recipe, writer=writer)
    rested = 0
    for step in range(12):
        ran = [any(runs) for runs in zip(*(training.plan(part).runs for part in range(2)), strict=True)]
        weights = [block.attention.out.weight for block in training.model.backbone.blocks]
        before = [weight.detach().clone() for weight in weights]
        training.step()
        for layer, weight in enumerate(weights):
            if ran[layer] or not training.optimizer.state[weight]:
                continue
            assert torch.equal(weight, before[layer]) == (dropped == "rests")
            rested += 1
            if dropped == "momentum":
                assert training.optimizer.state[weight]["step"] == step + 1
    writer.close()
    assert rested > 3
    # Neither way does telemetry call it a gradient.
    norms = [value for line in read_telemetry(tmp_path).layers for value in line["grad_norm"]]
    assert None in norms
    assert 0.0 not in norms


def test_telemetry_of_a_step(tiny: Recipe, build: Build, tmp_path: Path) -> None:
    writer = TelemetryWriter(tmp_path)
    recipe = tiny.with_(depth="progressive_drop", objective={"mask_rate": {"kind": "linear", "start": 0.3, "end": 0.1}})
    training = build(recipe, writer=writer, peak_flops=1e12)
    for _ in range(6):
        training.step()
    training.settle()
    writer.close()
    said = read_telemetry(tmp_path)
    assert [record["step"] for record in said.scalars] == [1, 2, 3, 4, 5, 6]
    last = said.scalars[-1]
    assert last["tokens"] == 6 * 16 * 32
    names = {"loss", "accuracy", "lr", "weight_decay", "grad_norm", "tokens_per_second", "mfu", "step_ms", "data_ms"}
    names |= {"forward_ms", "backward_ms", "optimizer_ms", "layers_run", "objective.mask_rate"}
    assert names <= last.keys()
    assert last["objective.mask_rate"] == pytest.approx(0.3 - 0.2 * 5 / 20)
    assert "memory_gib" in said.scalars[5]
    assert [record["step"] for record in said.layers] == [1, 6]
    layers = said.layers[1]
    for name in ("state", "ran", "keep", "scale", "grad_norm", "update_ratio", "activation_rms"):
        assert len(layers[name]) == 3, name
    # One micro-batch per step, so the share since the last record counts 5 of them.
    assert all(round(share * 5, 6) == round(share * 5) for share in layers["ran"])
    for state, norm, rms in zip(layers["state"], layers["grad_norm"], layers["activation_rms"], strict=True):
        assert (norm is None) == (state == 1) == (rms is None)


def test_measuring_does_not_change_the_training(tiny: Recipe, build: Build, tmp_path: Path) -> None:
    writer = TelemetryWriter(tmp_path)
    measured, plain = build(tiny, writer=writer), build(tiny)
    for _ in range(7):
        measured.step()
        plain.step()
    writer.close()
    for one, other in zip(measured.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_layers_that_do_not_train_are_not_touched(tiny: Recipe, build: Build) -> None:
    """Whatever method freezes layers: the plan alone decides, the loop needs no word about it."""

    class Frozen(Depth):
        def plan(self, *arguments: object, **options: object) -> LayerPlan:
            full = LayerPlan.full(3)
            return LayerPlan(full.runs, full.scale, (False, False, True), full.keep, 3)

    training = build(tiny)
    training.recipe = tiny.model_copy(update={"depth": Frozen()})
    blocks = training.model.backbone.blocks
    before = [[p.clone() for p in block.parameters()] for block in blocks]
    for _ in range(2):
        training.step()
    same = [all(torch.equal(a, b) for a, b in zip(old, new.parameters(), strict=True))
            for old, new in zip(before, blocks, strict=True)]  # fmt: skip
    assert same == [True, True, False]
    assert not any(p in training.optimizer.state for block in blocks[:2] for p in block.parameters())


def test_seconds_are_charged_for_steps_only(tiny: Recipe, build: Build) -> None:
    import time

    training = build(tiny)
    training.step()
    charged = training.progress.seconds
    time.sleep(0.3)
    training.step()
    assert training.progress.seconds < charged + 0.25


@pytest.mark.parametrize(
    "module",
    [
        "loop",
        "session",
        "recorder",
        "measurements",
        "assemble",
        "worker",
        "warmup",
        "growth",
        "stage_event",
        "widening",
    ],
)
def test_no_branch_by_a_methods_name(module: str) -> None:
    path = Path(workbench.training.loop.__file__).with_name(f"{module}.py")
    source = path.read_text(encoding="utf-8")
    kinds = {kind for axis in AXES for kind in registry(axis)}
    tree = ast.parse(source)
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not strings & kinds
    assert not any(isinstance(node, ast.Attribute) and node.attr == "kind" for node in ast.walk(tree))
    if module == "loop":
        assert len(source.splitlines()) < 300
