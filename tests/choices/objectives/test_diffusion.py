"""Masked diffusion: what is hidden, what it weighs, and the bound, against slow versions."""

from __future__ import annotations

import math

import pytest
import torch

from workbench.choices.objectives.diffusion import DiffusionModel, hidden_rows
from workbench.choices.objectives.objective import Labelled

from .test_token_prediction import PLAN, START, VOCABULARY, batch_of, model_of


def diffusion_model() -> DiffusionModel:
    model = model_of("diffusion")
    assert isinstance(model, DiffusionModel)
    return model.eval()


def test_each_row_hides_its_share_and_each_hidden_token_weighs_its_inverse() -> None:
    batch = batch_of(512, 64)
    seen = hidden_rows(batch, VOCABULARY, 0.001, 3)
    weight = seen.weight_N.view(512, 64)
    hidden = weight > 0
    assert torch.equal(seen.tokens_BT, batch.tokens_BT.masked_fill(hidden, VOCABULARY.mask))
    assert not hidden[batch.tokens_BT == VOCABULARY.cls].any()
    rates = []
    for row, weights in enumerate(weight):
        if len(found := weights[weights > 0].unique()):
            assert len(found) == 1, f"row {row} has one rate"
            rate = 1 / found.item()
            rates.append(rate)
            assert abs(hidden[row].sum() - rate * 62) <= 5 * math.sqrt(62 * rate * (1 - rate)) + 1
    # Every tenth of (0, 1) holds a tenth of the rates, but for rows that hid nothing.
    for tenth in range(1, 10):
        assert abs(sum(tenth <= 10 * rate < tenth + 1 for rate in rates) - 51.2) <= 2
    # Tokens weigh 1 on average: the loss is a mean over all of them.
    assert weight.sum() / (512 * 62) == pytest.approx(1, abs=0.05)


def test_loss_is_the_weighted_sum_over_all_tokens_however_rows_are_cut() -> None:
    model, batch = diffusion_model(), batch_of(8, 16)
    seen = model.labelled(batch, START)
    chances = model.head(model.backbone(seen.tokens_BT, batch, PLAN)).double().log_softmax(-1)
    slow, counted = 0.0, 0
    for row, t in ((row, t) for row in range(8) for t in range(16)):
        token = int(batch.tokens_BT[row, t])
        counted += token != VOCABULARY.cls
        slow -= float(seen.weight_N[row * 16 + t]) * chances[row, t, token].item()
    assert model.counts(batch, START) == {"loss": counted}
    assert model(batch, PLAN, START).parts["loss"].item() == pytest.approx(slow, rel=1e-5)
    halves = [type(batch)(*(x[half] for x in batch)) for half in (slice(0, 4), slice(4, 8))]
    assert sum(model(half, PLAN, START).parts["loss"].item() for half in halves) == pytest.approx(slow, rel=1e-5)


def test_the_bound_of_a_model_without_context_is_its_loss() -> None:
    """Every term is then known: nats of the token, hidden or not, in expectation."""
    model, batch = diffusion_model(), batch_of(2048, 16)
    torch.nn.init.zeros_(model.head.weight if not hasattr(model.head, "decoder") else model.head.decoder.weight)
    places = (batch.positions_BT.flatten() > 0).nonzero()[:, 0]
    labels = batch.tokens_BT.flatten()[places]
    seen = Labelled(batch.tokens_BT, places - 1, labels, torch.ones(len(places)))
    terms = model.second(batch, seen, PLAN)
    assert terms.shape == labels.shape
    assert terms.mean().item() == pytest.approx(math.log(128), rel=0.05)
