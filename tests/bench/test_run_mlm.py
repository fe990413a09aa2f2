"""What run_mlm does otherwise: one piece per row, and labels at every position."""

from __future__ import annotations

import torch

from workbench.bench.run_mlm import IGNORED, GroupedRows, ignoring
from workbench.choices.data.prepare import prepare
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.batches import StepShape, step_batch


def test_grouped_rows_hold_the_same_tokens_as_one_piece(tiny: Recipe) -> None:
    order = assemble(tiny, prepare(tiny.data)).order
    grouped = GroupedRows(order.store, order.sequence_length, order.seed)
    shape = StepShape(4, order.sequence_length, 4)
    ours, theirs = (step_batch(each.of_length(shape.length), 0, shape).parts[0] for each in (order, grouped))
    assert torch.equal(ours.tokens_BT, theirs.tokens_BT)
    assert ours.documents_BT.max() > 0, "or nothing is shown"
    assert theirs.documents_BT.max() == 0
    assert torch.equal(theirs.positions_BT[3], torch.arange(shape.length))


def test_labels_of_transformers_are_ours_where_they_count(tiny: Recipe) -> None:
    assembled = assemble(tiny, prepare(tiny.data))
    model = assembled.model
    assert isinstance(model, TokenPrediction)
    batch = step_batch(assembled.order, 0, StepShape(4, tiny.data.longest, 4)).parts[0]
    start = Progress(step=0, tokens=0, seconds=0.0, budget=tiny.budget)
    seen, count = model.labelled(batch, start), model.counts(batch, start)["loss"]
    labels_BT = ignoring(seen)
    places = (labels_BT != IGNORED).flatten().nonzero().flatten()
    assert torch.equal(places, seen.index_N)
    assert torch.equal(labels_BT.flatten()[places], batch.tokens_BT.flatten()[places])
    assert len(places) == count
    # A slot that weighs nothing has no label either.
    lighter = seen._replace(weight_N=seen.weight_N.clone())
    lighter.weight_N[0] = 0
    assert int((ignoring(lighter) != IGNORED).sum()) == count - 1
