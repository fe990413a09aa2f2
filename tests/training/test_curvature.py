"""The curvature pass: labels follow the prediction, the estimate is unbiased, the rest of a step is what it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.optimizers.sophia import SophiaOptimizer, sampled_loss, take_curvature
from workbench.recipes.recipe import Recipe
from workbench.training.loop import Training

Build = Callable[..., Training]
CPU = torch.device("cpu")


@pytest.fixture
def sophia(tiny: Recipe) -> Recipe:
    """Two layers without dropout, each step's estimate kept as it is (no decay)."""
    return tiny.with_(
        optimizer={"kind": "sophia", "lr": 1e-3, "beta2": 0.0, "curvature_every": 3},
        architecture={"kind": "pre_ln", "layers": 2, "width": 16, "heads": 2, "dropout": 0.0},
    )


def estimate(
    training: Training, plan: LayerPlan, seed: int = 7, cut: int = 1, rows: int = 4
) -> dict[str, torch.Tensor]:
    """B q^2 by parameter, on the first rows of the corpus in ``cut`` micro-batches."""
    made = training.assembled
    batch = made.order.batch(torch.arange(rows).numpy())
    parts = [type(batch)(*(tensor[i::cut] for tensor in batch)) for i in range(cut)]
    made.optimizer.state.clear()
    take_curvature(made, parts, [plan] * cut, training.progress, seed)
    names = {parameter: name for name, parameter in made.model.named_parameters()}
    return {names[parameter]: state["hessian"].clone() for parameter, state in made.optimizer.state.items()}


def test_the_mean_estimate_is_the_diagonal_of_the_gauss_newton_matrix(sophia: Recipe, build: Build) -> None:
    """Against the definition: every label of every position, weighted by its probability."""
    training = build(sophia)
    model, plan = training.assembled.model, LayerPlan.full(2)
    assert isinstance(model, TokenPrediction)
    name, weight = "backbone.blocks.1.feed_forward.down.weight", model.backbone.blocks[1].feed_forward.down.weight
    with torch.no_grad():
        # Far from uniform predictions: labels drawn uniformly, or the true ones, would give another matrix.
        model.backbone.embedding.weight.mul_(20)
    batch = training.assembled.order.batch(torch.arange(1).numpy())
    seen = model.labelled(batch, training.progress)
    count = model.counts(batch, training.progress)["loss"]
    logits_NV = model.head(model.states(seen, batch, plan))
    exact = torch.zeros_like(weight)
    for position in range(count):
        nats_V = -F.log_softmax(logits_NV[position], -1)
        for label, share in enumerate(nats_V.detach().neg().exp().tolist()):
            if share > 1e-5:
                (gradient,) = torch.autograd.grad(nats_V[label], weight, retain_graph=True)
                exact += share * gradient**2 / count
    found = torch.stack([estimate(training, plan, seed, rows=1)[name] for seed in range(300)]).mean(0)
    assert float(found.sum() / exact.sum()) == pytest.approx(1.0, abs=0.1)
    assert float(F.cosine_similarity(found.flatten(), exact.flatten(), dim=0)) > 0.95


def test_the_cut_into_micro_batches_does_not_matter(sophia: Recipe, build: Build) -> None:
    training = build(sophia)
    whole, cut = (estimate(training, LayerPlan.full(2), cut=cut) for cut in (1, 2))
    assert whole.keys() == cut.keys()
    for name in whole:
        torch.testing.assert_close(whole[name], cut[name], rtol=1e-3, atol=1e-6)


def test_the_seed_decides_the_labels(sophia: Recipe, build: Build) -> None:
    training = build(sophia)
    one, same, other = (estimate(training, LayerPlan.full(2), seed) for seed in (7, 7, 8))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["backbone.embedding.weight"], other["backbone.embedding.weight"])


def test_it_leaves_weights_alone_and_no_gradients_behind(sophia: Recipe, build: Build) -> None:
    training = build(sophia)
    before = [parameter.detach().clone() for parameter in training.model.parameters()]
    estimate(training, LayerPlan.full(2))
    for parameter, old in zip(training.model.parameters(), before, strict=True):
        assert parameter.grad is None
        assert torch.equal(parameter.detach(), old)


@pytest.mark.parametrize("change", ["runs", "trains"])
def test_a_layer_that_is_dropped_or_frozen_keeps_its_curvature(sophia: Recipe, build: Build, change: str) -> None:
    full = LayerPlan.full(2)
    plan = LayerPlan(**{**full.__dict__, change: (True, False)})
    found = estimate(build(sophia), plan)
    assert any(name.startswith("backbone.blocks.0.") for name in found)
    assert not any(name.startswith("backbone.blocks.1.") for name in found)


def test_a_run_takes_it_when_due_and_counts_it_as_time_not_as_useful_flops(
    sophia: Recipe, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, training = [], build(sophia)
    take_in = SophiaOptimizer.curvature

    def counted(self: SophiaOptimizer, labels: int) -> None:
        steps.append((training.progress.step, labels))
        take_in(self, labels)

    monkeypatch.setattr(SophiaOptimizer, "curvature", counted)
    for _ in range(7):
        training.step()
    # 16 rows of 32 tokens, 15% of each labelled.
    assert steps == [(0, 16 * 5), (3, 16 * 5), (6, 16 * 5)]
    plain = build(sophia.with_(optimizer={"kind": "adamw"}))
    for _ in range(7):
        plain.step()
    assert training.recorder.useful_flops == plain.recorder.useful_flops


def test_the_sampled_loss_is_the_expected_one(sophia: Recipe, build: Build) -> None:
    """At labels of its own a model scores its entropy, not the loss of the text."""
    training = build(sophia)
    model = training.assembled.model
    batch = training.assembled.order.batch(torch.arange(8).numpy())
    assert isinstance(model, TokenPrediction)
    nats = sampled_loss(model, batch, LayerPlan.full(2), training.progress, seed=0)
    seen = model.labelled(batch, training.progress)
    entropy = torch.distributions.Categorical(logits=model.head(model.states(seen, batch, LayerPlan.full(2)))).entropy()
    labels = model.counts(batch, training.progress)["loss"]
    assert nats.item() / labels == pytest.approx(entropy.mean().item(), abs=0.05)
