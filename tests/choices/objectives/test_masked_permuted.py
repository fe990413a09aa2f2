"""Permuted prediction: who sees whom, enumerated; the loss of a slow two-stream network; the score in its own order."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.corruption import Corruption
from workbench.choices.objectives.masked_permuted import MaskedPermutedModel, hidden_places, order_of
from workbench.choices.objectives.objective import Builder, Labelled
from workbench.ops.attention import Sight, document_bias
from workbench.recipes.recipe import Recipe

from .test_token_prediction import PLAN, START, VOCABULARY, batch_of


def permuted_model(positions: str = "learned", kind: str = "pre_ln", **knobs: object) -> MaskedPermutedModel:
    torch.manual_seed(0)
    recipe = Recipe(
        objective={"kind": "masked_permuted", "mask_rate": 0.3, **knobs},
        architecture={"kind": kind, "layers": 2, "width": 32, "heads": 2, "positions": positions},
    )
    model = recipe.objective.build(Builder(recipe.architecture, VOCABULARY, 16, 0))
    assert isinstance(model, MaskedPermutedModel)
    with torch.no_grad():
        for parameter in model.parameters():
            # Attention must not be uniform to be tested, and what starts at zero would hide what it multiplies.
            if parameter.dim() == 2:
                parameter.normal_(std=0.15)
    return model.eval()


def rows() -> Batch:
    """Three rows of two documents; the last has fewer ordinary tokens than slots."""
    batch = batch_of(3, 16)
    batch.tokens_BT[2, 3:] = 2
    return batch


class Column(NamedTuple):
    """One of the tokens, of the [MASK]s that are seen, or of those that are asked; ``turn``: when it is predicted."""

    kind: str
    token: int
    place: int
    turn: int | None


def columns_of(model: MaskedPermutedModel, batch: Batch, row: int) -> list[Column]:
    """The columns of a row: its tokens, then two for each slot; a spare slot has no turn."""
    hidden = hidden_places(model.choice, Corruption(VOCABULARY, torch.device("cpu")), batch, 0)
    turns = order_of(hidden, batch, 0)[row].tolist()
    turn_at = {place: turn for place, turn in zip(hidden.column_BK[row].tolist(), turns, strict=True) if turn >= 0}
    columns = [Column("token", int(batch.tokens_BT[row, place]), place, turn_at.get(place)) for place in range(16)]
    slots = list(zip(hidden.shown_BK[row].tolist(), hidden.column_BK[row].tolist(), strict=True))
    return columns + [
        Column(kind, token, place, turn_at.get(place)) for kind in ("seen", "asked") for token, place in slots
    ]


def sees(viewer: Column, key: Column) -> bool:
    """Return True if one column of a document sees another: a token that it knows, and else the [MASK] in its place."""
    if key.turn is None:
        return key.kind == "token"
    if viewer.turn is None or viewer.kind == "seen":
        known = False
    else:
        # A token is known to those that are asked later, and to itself.
        known = key.turn < viewer.turn or (viewer.kind == "token" and key.turn == viewer.turn)
    return key.kind == ("token" if known else "seen")


def test_who_sees_whom_is_what_the_order_says() -> None:
    """Every column of every row against every other one; and each place of a document is seen exactly once."""
    model, batch = permuted_model(), rows()
    seen, wide = model.inputs(batch, START)
    assert isinstance(seen.causal, Sight)
    bias = document_bias(wide.documents_BT, seen.causal, torch.float32)[:, 0]
    assert seen.tokens_BT.shape == (3, 16 + 2 * 5)
    for row in range(3):
        columns, document = columns_of(model, batch, row), batch.documents_BT[row].tolist()
        assert [column.token for column in columns] == seen.tokens_BT[row].tolist()
        assert [column.place for column in columns] == seen.causal.place_BT[row].tolist()
        assert sorted(c.turn for c in columns[:16] if c.turn is not None) == ([0, 1, 2, 3, 4] if row < 2 else [0, 1])
        for i, viewer in enumerate(columns):
            found = [key for key, hidden in zip(columns, bias[row, i].tolist(), strict=True) if not hidden]
            same = [key for key in columns if document[key.place] == document[viewer.place]]
            assert found == [key for key in same if sees(viewer, key)]
            assert sorted(key.place for key in found) == [t for t in range(16) if document[t] == document[viewer.place]]


def slow_nats(model: MaskedPermutedModel, columns: list[Column], first: int) -> float:
    """Nats of what is asked of one document: a query looks at the keys that it sees, one after another."""
    backbone = model.backbone
    x = [backbone.embedding.weight[c.token] + backbone.positions.weight[c.place - first] for c in columns]
    for block in backbone.blocks:
        q, k, v = torch.stack([block.attention.qkv(block.attention_norm(each)).view(3, 2, 16) for each in x]).unbind(1)
        after = []
        for i, viewer in enumerate(columns):
            keys = [j for j, key in enumerate(columns) if sees(viewer, key)]
            weights = ((q[i] * k[keys]).sum(-1) / math.sqrt(16)).softmax(0)
            h = x[i] + block.attention.out((weights[..., None] * v[keys]).sum(0).flatten())
            after.append(h + block.feed_forward(block.feed_forward_norm(h)))
        x = after
    true = {column.place: column.token for column in columns if column.kind == "token"}
    return -sum(
        float(model.head(backbone.final(each)).log_softmax(-1)[true[column.place]])
        for each, column in zip(x, columns, strict=True)
        if column.kind == "asked" and column.turn is not None
    )


@torch.no_grad()
def test_the_loss_is_that_of_two_streams_over_the_permuted_row() -> None:
    model, batch = permuted_model(), rows()
    total, asked = 0.0, 0
    for row in range(3):
        columns = columns_of(model, batch, row)
        for document in (0, 1):
            own = [column for column in columns if batch.documents_BT[row, column.place] == document]
            # Permuted as published: what is predicted stands last, in its order.
            own.sort(key=lambda column: (column.kind == "asked", column.kind == "seen", column.turn or 0, column.token))
            total += slow_nats(model, own, 8 * document)
            asked += sum(column.kind == "asked" and column.turn is not None for column in own)
    assert model.counts(batch, START) == {"loss": asked}
    assert model(batch, PLAN, START).parts["loss"].item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("kind", ["pre_ln", "post_ln"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rope", "alibi", "tupe_a", "tupe_r"])
@torch.no_grad()
def test_the_first_that_is_asked_reads_a_masked_row(kind: str, positions: str) -> None:
    """Before anything is known a row is the masked model's, however positions are told."""
    model, batch = permuted_model(positions, kind, corruption="all_mask"), rows()
    seen, wide = model.inputs(batch, START)
    states = model.states(seen, wide, PLAN).view(3, 5, -1)
    turns = order_of(hidden_places(model.choice, model._corrupt(batch), batch, 0), batch, 0)
    hidden = seen.causal.place_BT[:, 16:21]  # type: ignore[union-attr]
    shown = batch.tokens_BT.scatter(1, hidden.where(turns >= 0, 0), 3)
    shown[:, 0] = 1
    plain = model.backbone(shown, batch, PLAN)
    for row, slot in (turns == 0).nonzero().tolist():
        torch.testing.assert_close(states[row, slot], plain[row, hidden[row, slot]], rtol=1e-4, atol=1e-5)
    for row, slot in (turns == 1).nonzero().tolist():
        assert not torch.allclose(states[row, slot], plain[row, hidden[row, slot]], atol=1e-3)


@torch.no_grad()
def test_the_score_hides_what_the_heldout_set_hides_in_an_order_of_its_own() -> None:
    """Rows with one and with three scored places, together and alone; a single one is scored as at [MASK]."""
    model, batch = permuted_model(), rows()
    places = torch.tensor([3, 16 + 1, 16 + 4, 16 + 9])
    # What another row scores is hidden here as well.
    shown = batch.tokens_BT.flatten().index_fill(0, torch.cat([places, torch.tensor([5])]), 3).view(3, 16)
    seen = Labelled(shown, places, batch.tokens_BT.flatten()[places], torch.ones(4))
    (nats, count), at_mask = model.shares(batch, seen, PLAN)["permuted_loss"], model.heldout(batch, seen, PLAN)
    assert count == 4
    alone = []
    for row, own in ((0, places[:1]), (1, places[1:] - 16)):
        one = Batch(*(each[row : row + 1] for each in batch))
        of_row = Labelled(shown[row : row + 1], own, one.tokens_BT[0, own], torch.ones(len(own)))
        alone.append(model.shares(one, of_row, PLAN)["permuted_loss"][0])
    assert nats.item() == pytest.approx(sum(each.item() for each in alone), rel=1e-5)
    assert alone[0].item() == pytest.approx(at_mask[0].item(), rel=1e-5)
    assert alone[1].item() != pytest.approx(at_mask[1:].sum().item(), rel=1e-3)


def test_every_order_is_as_likely_and_a_preview_shows_it() -> None:
    model, batch = permuted_model(), batch_of(600, 16)
    hidden = hidden_places(model.choice, model._corrupt(batch), batch, 0)
    turns = order_of(hidden, batch, 0)
    assert torch.equal(turns.sort(1).values, torch.arange(5).expand(600, 5))
    # 120 of each on average, with a deviation of 10.
    counts = torch.stack([(turns == turn).sum(0) for turn in range(5)])
    assert (counts - 120).abs().max() < 50
    tokens = [1, *range(10, 24), 2]
    ((_, places),) = model.choice.previews(tokens, VOCABULARY)
    one = batch_of(1, 16)._replace(tokens_BT=torch.tensor([tokens]))
    last = {column.turn: column.token for column in columns_of(model, one, 0)[:16]}
    assert [(each.token, each.mark) for each in places[-5:]] == [(last[turn], "predicted") for turn in range(5)]
    assert sorted(each.token for each in places) == sorted(tokens)
    assert places[0].mark == "read"
    (row,) = model.choice.shown_rows(one, VOCABULARY, START, 0)
    assert [each.token for each in row] == tokens, "whole rows keep the text's order"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"architecture": {"kind": "transformers"}}, r"architecture\.kind: 'transformers' cannot be told which column"),
        ({"architecture": {"local_window": 8}}, r"architecture\.local_window: 8: it is counted in columns"),
        ({"architecture": {"bigram_rows": 64}}, r"architecture\.bigram_rows: 64: a pair tells of the token before"),
        ({"execution": {"attention": "flex"}}, r"'flex' goes by documents, and objective 'masked_permuted' says who"),
        ({"execution": {"padding": "kept"}}, r"execution\.padding: .* adds columns of \[MASK\]"),
        ({"execution": {"head": "all"}}, r"execution\.head: .* adds columns of \[MASK\]"),
        ({"execution": {"compile_scope": "step"}}, r"one head and one loss, .* adds columns of \[MASK\]"),
        ({"execution": "onnxruntime"}, "ORT exports 'masked' and 'causal' alone"),
        ({"optimizer": "sophia"}, "not of objective 'masked_permuted'"),
    ],
)
def test_what_cannot_carry_its_columns_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        Recipe(objective="masked_permuted").with_(**change)


def test_a_phase_refuses_what_its_objective_does() -> None:
    parts = {"kind": "phases", "parts": ("causal", "masked_permuted", "masked_permuted"), "until": (0.2, 0.5)}
    assert Recipe(objective=parts).objective.masks == "by_pair"
    with pytest.raises(RecipeError, match=r"^architecture\.local_window: 8: it is counted in columns[^\n]*$"):
        Recipe(objective=parts, architecture={"kind": "pre_ln", "local_window": 8})
