"""The span-boundary head: its edges against a slow walk, its loss against the formula, slot by slot."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from workbench.base.errors import RecipeError
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.masked import MaskedModel
from workbench.choices.objectives.objective import Builder
from workbench.choices.objectives.span_boundary import edges_of
from workbench.recipes.recipe import Recipe

from .test_groups import VOCABULARY, packed
from .test_token_prediction import PLAN, START

KNOBS = {"kind": "masked", "selection": "span", "span_boundary": True, "mask_rate": 0.3}


def model_with(**knobs: object) -> MaskedModel:
    torch.manual_seed(0)
    recipe = Recipe(objective=KNOBS | knobs, architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2})
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 48, 5))
    assert isinstance(model, MaskedModel)
    return model


def test_edges_stand_around_each_labelled_stretch_of_a_group() -> None:
    model, batch = model_with(), packed(16, 48)
    picks = model._pick(batch, START)
    edges = edges_of(batch, picks)
    assert picks.groups is not None
    slots, length = picks.column_BK.shape[1], 48
    checked = 0
    for row in range(16):
        labelled = set(picks.column_BK[row][picks.counts_BK[row]].tolist())
        for slot, place in enumerate(picks.column_BK[row].tolist()):
            number = row * slots + slot
            if place not in labelled:
                assert not edges.counts_N[number]
                continue
            first, stop = (int(each[row, place]) for each in (picks.groups.first_BT, picks.groups.end_BT))
            end = place
            while end + 1 < stop and end + 1 in labelled:
                end += 1
            left, right, documents = first - 1, end + 1, batch.documents_BT[row].tolist()
            inside = left >= 0 and right < length and documents[left] == documents[place] == documents[right]
            assert bool(edges.counts_N[number]) == inside
            if inside:
                assert int(edges.left_N[number]) == row * length + left
                assert int(edges.right_N[number]) == row * length + right
                assert int(edges.place_N[number]) == place - left
                checked += 1
    assert checked > 50


def test_its_loss_is_a_part_of_its_own_and_equals_the_formula() -> None:
    model, batch = model_with(), packed(4, 48)
    result, counts = model(batch, PLAN, START), model.counts(batch, START)
    edges, seen = edges_of(batch, model._pick(batch, START)), model.labelled(batch, START)
    assert counts == {"loss": int(seen.weight_N.sum()), "span_boundary": int(edges.counts_N.sum())}
    states = model.backbone(seen.tokens_BT, batch, LayerPlan.full(2)).flatten(0, 1)
    boundary = model.boundary
    assert boundary is not None
    nats = 0.0
    for slot in edges.counts_N.nonzero().flatten().tolist():
        place = boundary.places.weight[min(int(edges.place_N[slot]) - 1, 31)]
        h = torch.cat([states[edges.left_N[slot]], states[edges.right_N[slot]], place])
        h = F.layer_norm(F.gelu(h @ boundary.inner.weight.T + boundary.inner.bias), (32,))
        h = F.layer_norm(F.gelu(h @ boundary.outer.weight.T + boundary.outer.bias), (32,))
        logits = h @ model.backbone.embedding.weight.T
        nats -= float(logits.detach().log_softmax(0)[seen.labels_N[slot]])
    assert float(result.parts["span_boundary"].detach()) == pytest.approx(nats, rel=1e-4)
    # The first part is what it is without the second.
    plain = model_with(span_boundary=False)
    plain.load_state_dict(model.state_dict(), strict=False)
    assert plain(batch, PLAN, START).parts["loss"].item() == pytest.approx(result.parts["loss"].item(), rel=1e-6)
    result.over(counts).backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"objective": KNOBS | {"selection": "token"}},
            r"objective\.span_boundary: needs spans, and selection 'token'",
        ),
        (
            {"objective": KNOBS, "execution": {"kind": "native", "compile_scope": "step"}},
            "the objective adds span_boundary; use 'blocks'",
        ),
        ({"objective": KNOBS, "optimizer": "sophia"}, "the objective adds span_boundary; choose another"),
        ({"objective": KNOBS, "execution": "onnxruntime"}, "the objective adds span_boundary; or"),
    ],
)
def test_what_cannot_carry_it_out_refuses_it(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe(**changes)
