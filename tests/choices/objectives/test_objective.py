"""What every objective promises, over the registry: label counts, finite losses, comparable evaluations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.choices.architectures import PreLN
from workbench.choices.choice import registry
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import TokenStore, Vocabulary
from workbench.choices.depth import LayerPlan
from workbench.choices.objectives import Objective
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.choices.objectives.objective import Builder
from workbench.choices.progress import Budget, Progress

VOCABULARY = Vocabulary(size=64, used=60, cls=2, sep=3, mask=4, pad=0, unk=1)
START = Progress(step=0, tokens=0, seconds=0.0, budget=Budget())


@pytest.fixture
def order() -> RowOrder:
    """Forty documents of 5 to 14 tokens, [CLS] and [SEP] around random ordinary ids."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 15, size=40)
    documents = [np.concatenate([[2], rng.integers(5, 60, size=length - 2), [3]]) for length in lengths]
    offsets_D1 = np.concatenate([[0], np.cumsum(lengths)])
    return RowOrder(TokenStore(np.concatenate(documents).astype(np.uint16), offsets_D1), 16, seed=0)


@pytest.mark.parametrize("kind", sorted(registry("objective")))
def test_losses_are_finite_and_counts_are_those_announced(kind: str, order: RowOrder) -> None:
    objective = registry("objective")[kind]()
    assert isinstance(objective, Objective)
    architecture = PreLN(layers=2, width=16, heads=2)
    torch.manual_seed(0)
    model = objective.build(Builder(architecture, VOCABULARY, 16, 3, objective.causal))
    batch, plan = order.batch(np.arange(8)), LayerPlan.full(2)
    counts, result = model.counts(batch, START), model(batch, plan, START)
    assert counts.keys() == result.parts.keys()
    assert all(type(count) is int for count in counts.values()), "a tensor would have to be waited for"
    loss = result.over(counts, model.weights(START))
    assert loss.shape == ()
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
    # The first part is about tokens, of which an untrained model knows nothing: about ln 60.
    first = next(iter(counts))
    assert 3.0 < float(result.parts[first].detach()) / counts[first] < 5.5
    assert not any(value.requires_grad for value in result.metrics.values())


@pytest.mark.parametrize("kind", sorted(registry("objective")))
def test_an_evaluation_is_the_same_every_time_and_for_every_seed(kind: str, order: RowOrder) -> None:
    objective = registry("objective")[kind]()
    architecture = PreLN(layers=1, width=16, heads=2)
    sums = []
    for seed in (3, 4):
        torch.manual_seed(0)
        model = objective.build(Builder(architecture, VOCABULARY, 16, seed, objective.causal)).eval()
        heldout = HeldoutSet.of(order.store, VOCABULARY, 1024, causal=objective.causal)
        sums += [[model.heldout(*each, LayerPlan.full(1)) for each in heldout.batches(16, 8)] for _ in range(2)]
    assert all(
        nats.shape == seen.labels_N.shape for nats, (_, seen) in zip(sums[0], heldout.batches(16, 8), strict=True)
    )
    assert len({tuple(nats.double().sum().item() for nats in each) for each in sums}) == 1
    assert not any(nats.requires_grad for nats in sums[0])
