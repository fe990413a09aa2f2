"""Tokens are chosen by their excess loss over a reference, as the obvious loop chooses them."""

from __future__ import annotations

import math

import pytest
import torch

from tests.choices.objectives.test_token_prediction import PLAN, START, VOCABULARY, batch_of, model_of
from workbench.base.errors import RecipeError
from workbench.choices.architectures.flops import step_flops
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Builder
from workbench.choices.objectives.reference import Reference
from workbench.choices.objectives.selective import SelectiveModel, kept
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.schedules import Linear
from workbench.recipes.recipe import Recipe

SHAPE = {"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2}


def built(seed: int = 0, **objective: object) -> SelectiveModel:
    torch.manual_seed(seed)
    recipe = Recipe(objective={"kind": "selective", **objective}, architecture=SHAPE)
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 0, True))
    assert isinstance(model, SelectiveModel)
    return model


def slow_nats(model: TokenPrediction, batch: Batch) -> list[dict[int, float]]:
    """Nats of every next token within a piece, by row and place."""
    log_BTV = model.head(model.backbone(batch.tokens_BT, batch, PLAN)).detach().double().log_softmax(-1)
    documents, length = batch.documents_BT, batch.tokens_BT.shape[1]
    return [
        {
            t: -float(log_BTV[row, t, batch.tokens_BT[row, t + 1]])
            for t in range(length - 1)
            if documents[row, t] == documents[row, t + 1]
        }
        for row in range(len(log_BTV))
    ]


@pytest.mark.parametrize("keep", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("compared", [True, False])
def test_the_loss_is_that_of_the_tokens_with_the_highest_excess(keep: float, compared: bool) -> None:
    model, batch, reference = built(keep=keep), batch_of(), model_of("causal")
    torch.nn.init.normal_(reference.head.weight, std=0.3)
    if compared:
        model.reference = Reference(reference, PLAN, PreLN(**SHAPE))
    ours, theirs = slow_nats(model, batch), slow_nats(reference, batch)
    total, count = 0.0, 0
    for mine, other in zip(ours, theirs, strict=True):
        excess = {t: mine[t] - (other[t] if compared else 0.0) for t in mine}
        best = sorted(excess, key=lambda t: -excess[t])[: math.ceil(keep * len(excess) - 1e-9)]
        total, count = total + sum(mine[t] for t in best), count + len(best)
    loss = model(batch, PLAN, START)
    assert model.counts(batch, START) == {"loss": count}
    assert float(loss.parts["loss"].detach()) == pytest.approx(total, rel=1e-5)
    everywhere, labels = loss.ratios["every_token_loss"]
    assert float(everywhere / labels) == pytest.approx(
        sum(sum(row.values()) for row in ours) / sum(map(len, ours)), rel=1e-5
    )


def test_with_all_tokens_it_is_causal() -> None:
    model, plain, batch = built(keep=1.0), model_of("causal"), batch_of()
    plain.load_state_dict(model.state_dict())
    losses = [each(batch, PLAN, START).parts["loss"] for each in (model, plain)]
    torch.testing.assert_close(*losses)
    gradients = [
        torch.autograd.grad(loss, each.head.weight)[0] for loss, each in zip(losses, (model, plain), strict=True)
    ]
    torch.testing.assert_close(*gradients)


def test_the_reference_gets_no_gradient_and_stands_in_no_checkpoint() -> None:
    model, reference = built(), model_of("causal")
    model.reference = Reference(reference, PLAN, PreLN(**SHAPE))
    model(batch_of(), PLAN, START).parts["loss"].backward()
    assert all(parameter.grad is None for parameter in reference.parameters())
    assert model.state_dict().keys() == built().state_dict().keys()
    assert len(list(model.parameters())) == len(list(built().parameters()))


def test_rows_without_labels_and_scheduled_shares() -> None:
    assert kept(torch.tensor([0, 1, 10]), 0.7).tolist() == [0, 1, 7]
    model, batch = built(keep=Linear(start=1.0, end=0.5)), batch_of()
    alone = batch._replace(documents_BT=torch.arange(16).int().expand(3, 16))
    assert model.counts(alone, START) == {"loss": 0}
    assert float(model(alone, PLAN, START).parts["loss"].detach()) == 0.0
    assert model.counts(batch, START)["loss"] == 3 * 14


def test_a_reference_costs_its_forward_pass() -> None:
    shape = PreLN(**SHAPE)
    frozen = LayerPlan.full(2, trains=(False, False), embedding=False, head=False)
    found = Reference(model_of("causal"), frozen, shape).flops(48, 48, 8.0, 16)
    assert found == pytest.approx(step_flops(shape, VOCABULARY.size, [PLAN], 48, 48, 8.0, 16) / 3)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"objective": {"kind": "selective", "step": 3}}, "objective.step: is the step of a checkpoint"),
        ({"objective": {"kind": "selective", "keep": 0}}, "keep"),
        ({"objective": "selective", "execution": {"kind": "native", "padding": "kept"}}, "choice of tokens"),
        ({"objective": {"kind": "phases", "parts": ["causal", "selective"]}}, "part 2 is 'selective'"),
    ],
)
def test_bad_combinations_are_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        Recipe(**fields)
