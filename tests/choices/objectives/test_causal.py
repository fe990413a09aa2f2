"""Next-token prediction within a piece, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.architectures.flops import head_flops
from workbench.choices.objectives.causal import Causal, CausalModel
from workbench.choices.objectives.objective import Builder
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules import Linear
from workbench.recipes.recipe import Recipe

from .test_token_prediction import PLAN, START, VOCABULARY, batch_of, model_of


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


def test_further_tokens_are_predicted_by_layers_of_their_own() -> None:
    """Against one label at a time; a piece of 8 tokens has 7, 6 and 5 of them."""
    torch.manual_seed(1)
    recipe = Recipe(
        objective={"kind": "causal", "further_tokens": 2, "further_weight": Linear(start=0.4, end=0.0)},
        architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2},
    )
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 0, True))
    assert isinstance(model, CausalModel)
    batch = batch_of(3, 16)
    x_BTD, sums = model.backbone(batch.tokens_BT, batch, PLAN), {}
    for ahead, layer in enumerate([None, *model.further], 1):
        states = x_BTD if layer is None else x_BTD + layer(x_BTD)
        logits, found = model.head(states).double().log_softmax(-1), []
        for row, t in ((row, t) for row in range(3) for t in range(16 - ahead)):
            if batch.documents_BT[row, t] == batch.documents_BT[row, t + ahead]:
                found.append(-logits[row, t, batch.tokens_BT[row, t + ahead]])
        sums[f"ahead_{ahead}"] = torch.stack(found).mean()
    counts, halfway = model.counts(batch, START), Progress(50, 0, 0.0, Budget(amount=100))
    assert counts == {"ahead_1": 6 * 7, "ahead_2": 6 * 6, "ahead_3": 6 * 5}
    loss = model(batch, PLAN, halfway).over(counts, model.weights(halfway))
    expected = sums["ahead_1"] + 0.2 * (sums["ahead_2"] + sums["ahead_3"])
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    loss.backward()
    assert all(layer.weight.grad.any() for layer in model.further)


def test_further_tokens_are_compared_with_the_words_that_are_drawn() -> None:
    """Of many words the losses are nearly those of all; accuracy is not known; FLOPs count two heads of few words."""
    shape = {"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2}
    losses = []
    for words in (0, 200_000):
        torch.manual_seed(1)
        recipe = Recipe(objective={"kind": "causal", "further_tokens": 1, "sampled_words": words}, architecture=shape)
        model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 0, True))
        losses.append(model(batch_of(3, 16), PLAN, START))
    assert losses[0].metrics.keys() == {"accuracy", "ahead_2_accuracy"}
    assert not losses[1].metrics
    assert losses[1].parts.keys() == {"ahead_1", "ahead_2"}
    for name, nats in losses[0].parts.items():
        assert losses[1].parts[name].item() == pytest.approx(nats.item(), rel=0.01)

    def flops(**knobs: int) -> float:
        return float(Causal(**knobs).flops(recipe.architecture, 120, [PLAN], 64, 60, 16.0, 16))

    for words in (0, 8):
        head = head_flops(recipe.architecture, words + 1 if words else 120)
        added = flops(further_tokens=2, sampled_words=words) - flops(sampled_words=words)
        assert added == pytest.approx(2 * 60 * (head + 6 * 32 * 32))


def test_further_tokens_are_refused_where_one_head_or_another_layout_is_meant() -> None:
    further = {"kind": "causal", "further_tokens": 1}
    for change, why in (
        ({"optimizer": "sophia"}, "the objective adds ahead_2"),
        ({"execution": {"kind": "native", "padding": "kept"}}, r"execution\.padding: 'kept'.* adds ahead_2"),
    ):
        with pytest.raises(RecipeError, match=why):
            Recipe(objective=further, **change)
