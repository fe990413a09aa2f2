"""Masked tokens are chosen by their excess loss over a reference, as the obvious loop chooses them."""

from __future__ import annotations

import math

import pytest
import torch

from tests.choices.objectives.test_token_prediction import PLAN, START, VOCABULARY, batch_of, model_of
from workbench.base.errors import RecipeError
from workbench.choices.architectures.flops import step_flops
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.objectives.objective import Builder, Labelled
from workbench.choices.objectives.reference import Reference
from workbench.choices.objectives.selective_masked import SelectiveMaskedModel
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.recipes.recipe import Recipe

SHAPE = {"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2}


def built(**objective: object) -> SelectiveMaskedModel:
    torch.manual_seed(0)
    recipe = Recipe(objective={"kind": "selective_masked", **objective}, architecture=SHAPE)
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 0, False))
    assert isinstance(model, SelectiveMaskedModel)
    return model


def slow_nats(model: TokenPrediction, seen: Labelled, batch) -> list[dict[int, float]]:
    """Nats of every label, by row and place; rows as they are shown."""
    log_BTV = model.head(model.backbone(seen.tokens_BT, batch, PLAN)).detach().double().log_softmax(-1)
    found: list[dict[int, float]] = [{} for _ in batch.tokens_BT]
    for index, label, weight in zip(seen.index_N.tolist(), seen.labels_N.tolist(), seen.weight_N.tolist(), strict=True):
        row, place = divmod(index, batch.tokens_BT.shape[1])
        if weight:
            assert label == batch.tokens_BT[row, place]
            found[row][place] = -float(log_BTV[row, place, label])
    return found


@pytest.mark.parametrize("corruption", ["80-10-10", "all_mask"])
@pytest.mark.parametrize("compared", [True, False])
def test_the_loss_is_that_of_the_masked_tokens_with_the_highest_excess(corruption: str, compared: bool) -> None:
    model, batch, reference = built(keep=0.6, mask_rate=0.5, corruption=corruption), batch_of(), model_of("masked")
    # Two of its 16 tokens are ordinary ones: fewer than the 8 slots of a row.
    batch.tokens_BT[2, 3:15] = 2
    torch.nn.init.normal_(reference.head.weight, std=0.3)
    if compared:
        model.reference = Reference(reference, PLAN, PreLN(**SHAPE))
    seen = model.labelled(batch, START)
    ours, theirs = slow_nats(model, seen, batch), slow_nats(reference, seen, batch)
    assert [len(row) for row in ours] == [8, 8, 2]
    total, count = 0.0, 0
    for mine, other in zip(ours, theirs, strict=True):
        excess = {t: mine[t] - (other[t] if compared else 0.0) for t in mine}
        best = sorted(excess, key=lambda t: -excess[t])[: math.ceil(0.6 * len(excess) - 1e-9)]
        total, count = total + sum(mine[t] for t in best), count + len(best)
    loss = model(batch, PLAN, START)
    assert model.counts(batch, START) == {"loss": count}
    assert float(loss.parts["loss"].detach()) == pytest.approx(total, rel=1e-5)
    everywhere, labels = loss.ratios["every_token_loss"]
    assert float(everywhere / labels) == pytest.approx(sum(sum(row.values()) for row in ours) / 18, rel=1e-5)


def test_with_all_tokens_it_is_masked() -> None:
    model, plain, batch = built(keep=1.0, mask_rate=0.15), model_of("masked"), batch_of()
    plain.load_state_dict(model.state_dict())
    assert model.counts(batch, START) == plain.counts(batch, START)
    losses = [each(batch, PLAN, START).parts["loss"] for each in (model, plain)]
    torch.testing.assert_close(*losses)
    gradients = [
        torch.autograd.grad(loss, each.head.weight)[0] for loss, each in zip(losses, (model, plain), strict=True)
    ]
    torch.testing.assert_close(*gradients)


def test_head_and_reference_cost_what_the_masked_slots_do() -> None:
    choice = Recipe(
        objective={"kind": "selective_masked", "keep": 0.5, "mask_rate": 0.25}, architecture=SHAPE
    ).objective
    assert choice.scored(48, 16) == 12
    assert choice.labelled_fraction(START) == 6 / 48
    shape = PreLN(**SHAPE)
    assert choice.flops(shape, 128, [PLAN], 48, 6, 8.0, 16) == step_flops(shape, 128, [PLAN], 48, 12, 8.0, 16)


def test_phases_refuse_it() -> None:
    with pytest.raises(RecipeError, match="part 2 is 'selective_masked'"):
        Recipe(objective={"kind": "phases", "parts": ["masked", "selective_masked"]})
