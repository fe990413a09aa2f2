"""Masked language modelling: rates that move, and what can be had without context."""

from __future__ import annotations

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.masked import Masked, MaskedModel
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules import Linear
from workbench.recipes.recipe import Recipe

from .test_token_prediction import START, batch_of, mean_loss, model_of


def masked_model(seed: int = 0, **knobs: object) -> MaskedModel:
    model = model_of("masked", seed=seed)
    assert isinstance(model, MaskedModel)
    model.choice = Masked(**knobs)  # type: ignore[arg-type]
    return model


def test_the_rate_follows_its_schedule() -> None:
    model = masked_model(mask_rate=Linear(start=0.5, end=0.1))
    batch = batch_of(3, 16)
    for step, per_row in ((0, 8), (50, 5), (100, 2)):
        progress = Progress(step, 0, 0.0, Budget(amount=100))
        assert model.counts(batch, progress)["loss"] == len(model.labelled(batch, progress).labels_N) == 3 * per_row
        assert model.choice.labelled_fraction(progress) == pytest.approx(0.5 - 0.4 * step / 100)


def test_all_mask_hides_every_label_and_nothing_else_is_read() -> None:
    model = masked_model(corruption="all_mask", mask_rate=0.3)
    batch = batch_of()
    seen = model.labelled(batch, START)
    assert seen.index_N is not None
    assert set(seen.tokens_BT.flatten()[seen.index_N].tolist()) == {3}
    # Other true tokens at the labelled positions leave the same corrupted rows: no label leaks into the input.
    changed = batch.tokens_BT.flatten().clone()
    changed[seen.index_N] = (changed[seen.index_N] + 1).clamp(5, 119)
    other = model.labelled(batch._replace(tokens_BT=changed.view_as(batch.tokens_BT)), START)
    assert torch.equal(other.tokens_BT, seen.tokens_BT)
    assert not torch.equal(other.labels_N, seen.labels_N)


def test_training_lowers_the_loss_of_a_pattern() -> None:
    """Rows that repeat one token: a model that reads its context must leave log V behind within seconds."""
    model = masked_model(mask_rate=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    batch = batch_of(16, 16)
    losses = []
    for step in range(60):
        tokens = torch.randint(5, 60, (16, 1), generator=torch.Generator().manual_seed(step)).expand(16, 16).clone()
        loss = mean_loss(model, batch._replace(tokens_BT=tokens, samples_B=torch.arange(16) + 16 * step))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert sum(losses[-5:]) / 5 < losses[0] - 2.0


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 15])
def test_rates_out_of_bounds(rate: float) -> None:
    with pytest.raises(RecipeError, match=r"objective\.mask_rate: must be > 0 and < 1 at all times, got"):
        Recipe(objective={"kind": "masked", "mask_rate": rate})


def test_a_schedule_that_leaves_the_bounds_names_where() -> None:
    with pytest.raises(RecipeError, match=r"objective\.mask_rate: .* a schedule that reaches 0: Linear"):
        Recipe(objective={"kind": "masked", "mask_rate": {"kind": "linear", "start": 0.3, "end": 0.0}})


def test_a_skipped_last_layer_still_gives_a_loss() -> None:
    model, batch = masked_model(), batch_of()
    plan = LayerPlan((True, False), (1.0, 1.0), (True, True), (1.0, 0.5), 2)
    none = LayerPlan((False, False), (1.0, 1.0), (True, True), (1.0, 0.5), 2)
    for each in (plan, none):
        loss = mean_loss(model, batch, each)
        loss.backward()
        assert torch.isfinite(loss)
    assert all(p.grad is None for p in model.backbone.blocks[1].parameters()), "a skipped layer has no gradient at all"


def test_rows_with_fewer_ordinary_tokens_than_slots_count_those() -> None:
    model, batch = masked_model(mask_rate=0.5), batch_of(3, 16)
    batch.tokens_BT[1] = 1
    batch.tokens_BT[1, 5] = 7
    seen = model.labelled(batch, START)
    assert model.counts(batch, START) == {"loss": int(seen.weight_N.sum())} == {"loss": 8 + 1 + 8}
