"""Layouts of rows: padding, and heads on every position, cost more and give the same loss and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.layout import everywhere, padded
from workbench.choices.objectives.objective import Builder, TrainingModel
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.recipes.recipe import Recipe

from .test_token_prediction import PLAN, START, VOCABULARY, model_of

LENGTH = 24
BLOCKS: dict[str, dict[str, Any]] = {
    "pre_ln": {},
    "post_ln": {"kind": "post_ln", "positions": "learned", "dropout": 0.0},
    "alibi": {"positions": "alibi"},
    "tupe_r": {"positions": "tupe_r"},
    "tables": {"bigram_rows": 50, "value_embeddings": True},
    "windows": {"local_window": 4, "global_every": 2},
}


def uneven() -> Batch:
    """Rows of one, two and three pieces, one of them as short as a piece can be."""
    cuts = [[24], [9, 15], [3, 1, 20]]
    positions = torch.stack([torch.cat([torch.arange(size) for size in row]) for row in cuts])
    documents = torch.stack([torch.repeat_interleave(torch.arange(len(row)), torch.tensor(row)) for row in cuts])
    tokens = torch.randint(5, 120, (3, LENGTH), generator=torch.Generator().manual_seed(1))
    return Batch(torch.where(positions == 0, 1, tokens), positions, documents.int(), torch.arange(3))


def model_with(objective: str, architecture: dict[str, Any]) -> TrainingModel:
    torch.manual_seed(0)
    recipe = Recipe(
        objective=objective, architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2} | architecture
    )
    return recipe.objective.build(Builder(recipe.architecture, VOCABULARY, LENGTH, causal=recipe.objective.causal))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("objective", ["masked", "causal", "hybrid"])
def test_loss_and_gradients_are_the_same_in_every_layout(objective: str, blocks: str) -> None:
    model, batch = model_with(objective, BLOCKS[blocks]), uneven()
    results = {}
    for layout in (("labelled", "removed"), ("all", "removed"), ("labelled", "kept"), ("all", "kept")):
        model.lay_out(*layout)
        result = model(batch, PLAN, START)
        loss = result.over(model.counts(batch, START))
        loss.backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        model.zero_grad(set_to_none=True)
        results[layout] = (loss.item(), next(iter(result.metrics.values())).item(), gradients)
    *first, expected = results["labelled", "removed"]
    for *found, gradients in results.values():
        assert found == pytest.approx(first, rel=1e-5)
        for ours, theirs in zip(gradients, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_padded_rows_hold_one_piece_each() -> None:
    batch, model = uneven(), model_of("masked")
    seen = model.labelled(batch, START)
    wide, rows = padded(seen, batch, VOCABULARY.pad)
    real = rows.documents_BT == 0
    assert real.sum(1).tolist() == [24, 9, 15, 3, 1, 20]
    # Real tokens first, then padding, which is another document.
    assert (real.int().diff(dim=1) <= 0).all()
    assert (rows.tokens_BT[~real] == VOCABULARY.pad).all()
    assert torch.equal(rows.tokens_BT[real], seen.tokens_BT.flatten())
    assert wide.index_N is not None
    assert seen.index_N is not None
    assert torch.equal(wide.tokens_BT.flatten()[wide.index_N], seen.tokens_BT.flatten()[seen.index_N])
    assert bool((wide.index_N.diff() > 0).all())


def test_positions_without_a_label_weigh_nothing() -> None:
    batch, model = uneven(), model_of("masked")
    seen = model.labelled(batch, START)
    spread = everywhere(seen)
    assert spread.index_N is None
    assert len(spread.labels_N) == len(spread.weight_N) == batch.tokens_BT.numel()
    assert seen.index_N is not None
    assert torch.equal(spread.labels_N[seen.index_N], seen.labels_N)
    assert spread.weight_N.sum() == seen.weight_N.sum()
    assert everywhere(spread) is spread


def test_scores_do_not_change_with_the_layout() -> None:
    model, batch = model_with("causal", {}), uneven()
    assert isinstance(model, TokenPrediction)
    seen = model.labelled(batch, START)
    called: list[tuple[int, ...]] = []
    model.head.register_forward_hook(lambda module, inputs, out: called.append(tuple(inputs[0].shape)))
    for layout in (("labelled", "removed"), ("all", "kept")):
        model.lay_out(*layout)
        with torch.no_grad():
            model.heldout(batch, seen, PLAN)
    assert called[0] == called[1]


def test_an_objective_without_other_layouts_says_so() -> None:
    class Own(TrainingModel):
        choice = model_of("masked").choice

    Own().lay_out("labelled", "removed")
    with pytest.raises(RecipeError, match=r"objective 'masked' lays out its rows itself; set execution\.head to 'lab"):
        Own().lay_out("all", "removed")
