"""Next-token prediction within a piece, and nowhere else."""

from __future__ import annotations

import torch

from workbench.choices.objectives.causal import Causal, CausalModel

from .test_token_prediction import PLAN, START, batch_of, model_of


def test_labels_are_the_next_tokens_of_the_same_piece() -> None:
    batch, model = batch_of(2, 8), model_of("causal")
    assert isinstance(model, CausalModel)
    seen = model.labelled(batch, START)
    assert seen.index_N is None
    assert torch.equal(seen.tokens_BT, batch.tokens_BT)
    assert model.counts(batch, START) == {"loss": int(seen.weight_N.sum())}
    labels, weights = seen.labels_N.view(2, 8), seen.weight_N.view(2, 8)
    for row in range(2):
        for t in range(8):
            inside = t + 1 < 8 and batch.documents_BT[row, t] == batch.documents_BT[row, t + 1]
            assert weights[row, t] == float(inside)
            if inside:
                assert labels[row, t] == batch.tokens_BT[row, t + 1]


def test_the_loss_at_a_position_does_not_see_later_tokens() -> None:
    batch, model = batch_of(2, 16), model_of("causal")
    changed = batch.tokens_BT.clone()
    changed[:, 6] = (changed[:, 6] + 1).clamp(5, 119)
    x, y = (model.backbone(t, batch, PLAN) for t in (batch.tokens_BT, changed))
    torch.testing.assert_close(x[:, :6], y[:, :6], rtol=0, atol=1e-6)
    torch.testing.assert_close(x[:, 8:], y[:, 8:], rtol=0, atol=1e-6)
    assert not torch.allclose(x[:, 6:8], y[:, 6:8])


def test_every_position_is_scored() -> None:
    assert Causal.causal
    assert Causal().labelled_fraction(START) == 1.0
