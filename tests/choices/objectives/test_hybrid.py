"""Rows of two kinds in one batch: who sees whom, what is asked where, and both scores, against enumerations."""

from __future__ import annotations

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.objectives.corruption import Corruption
from workbench.choices.objectives.hybrid import ROWS, Hybrid, HybridModel, spread
from workbench.choices.objectives.objective import Labelled
from workbench.recipes.recipe import Recipe

from .test_token_prediction import PLAN, START, VOCABULARY, batch_of, model_of


def hybrid_model(**knobs: object) -> HybridModel:
    model = model_of("hybrid")
    assert isinstance(model, HybridModel)
    model.choice = Hybrid(**knobs)  # type: ignore[arg-type]
    return model.eval()


def test_who_sees_whom_is_what_the_kind_of_row_says() -> None:
    """By gradients: for every pair of positions, whether a state depends on an input."""
    model, batch = hybrid_model(), batch_of(4, 16)
    seen = model.labelled(batch, START)
    assert isinstance(seen.causal, torch.Tensor)
    assert seen.causal.tolist() == [True, True, False, True]
    inputs: list[torch.Tensor] = []
    model.backbone.embedding.register_forward_hook(
        lambda module, given, made: inputs.append(made.retain_grad() or made)
    )
    states = model.backbone(seen.tokens_BT, batch, PLAN, None, seen.causal)
    weight = torch.randn(states.shape[-1])
    for row in range(4):
        for t in range(16):
            (depends,) = torch.autograd.grad((states[row, t] * weight).sum(), inputs[0], retain_graph=True)
            found = {(int(r), int(s)) for r, s in depends.abs().sum(-1).nonzero()}
            document = batch.documents_BT[row]
            assert found == {
                (row, s) for s in range(16) if document[s] == document[t] and (s <= t or not seen.causal[row])
            }


def test_labels_stand_one_place_before_their_tokens() -> None:
    model, batch = hybrid_model(mask_rate=0.4), batch_of(4, 16)
    # A piece that goes on from another row: its first token has nothing before it.
    batch.tokens_BT[2, 0] = 77
    seen = model.labelled(batch, START)
    picks = Corruption(VOCABULARY, torch.device("cpu"))(batch, 0.4, 0, always_mask=False)
    hidden = set(picks.index_N[picks.weight_N > 0].tolist())  # type: ignore[index]
    asked = 0
    for row, t in ((row, t) for row in range(4) for t in range(16)):
        slot = row * 16 + t
        inside = t + 1 < 16 and batch.documents_BT[row, t + 1] == batch.documents_BT[row, t]
        assert isinstance(seen.causal, torch.Tensor)
        wanted = inside if seen.causal[row] else inside and slot + 1 in hidden
        assert seen.weight_N[slot] == float(wanted)
        if wanted:
            assert seen.labels_N[slot] == batch.tokens_BT[row, t + 1]
        asked += int(wanted and not seen.causal[row])
        corrupt = not seen.causal[row]
        assert seen.tokens_BT[row, t] == (picks.tokens_BT if corrupt else batch.tokens_BT)[row, t]
    counts = model.counts(batch, START)
    assert counts == {"causal_rows": 3 * 14, "masked_rows": asked}
    assert model.choice.labels_in(counts) == 3 * 14 + asked, "FLOPs count those of every row"


def test_loss_is_the_weighted_sum_of_two_means() -> None:
    model, batch = hybrid_model(causal_share=0.3, mask_rate=0.4), batch_of(8, 16)
    seen = model.labelled(batch, START)
    assert isinstance(seen.causal, torch.Tensor)
    means = []
    for kind, rows in ((True, seen.causal), (False, ~seen.causal)):
        logits = model.head(
            model.backbone(seen.tokens_BT[rows], type(batch)(*(x[rows] for x in batch)), PLAN, None, kind)
        )
        nats = -logits.double().log_softmax(-1).gather(-1, seen.labels_N.view(8, 16)[rows][..., None])[..., 0]
        weight = seen.weight_N.view(8, 16)[rows]
        means.append(float((nats * weight).sum().detach() / weight.sum()))
    loss = model(batch, PLAN, START).over(model.counts(batch, START), model.weights(START))
    assert loss.item() == pytest.approx(0.3 * means[0] + 0.7 * means[1], rel=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_every_step_has_its_share_of_causal_rows_however_it_is_cut(share: float) -> None:
    causal_S = spread(3, ROWS, torch.arange(32 * 200)) < share
    in_step = causal_S.view(200, 32).sum(1)
    assert abs(in_step - share * 32).max() <= 2
    one_by_one = torch.cat([spread(3, ROWS, torch.tensor([sample])) < share for sample in range(64)])
    assert torch.equal(one_by_one, causal_S[:64])


def test_scores_are_read_before_the_mask_and_from_the_left() -> None:
    model, batch = hybrid_model(), batch_of(2, 16)
    places, ones = torch.tensor([3, 6, 16 + 10]), torch.ones(3)
    labels = batch.tokens_BT.flatten()[places]
    hidden = batch.tokens_BT.flatten().index_fill(0, places, 3).view(2, 16)
    both = model.head(model.backbone(hidden, batch, PLAN)).flatten(0, 1).log_softmax(-1)
    nats = model.heldout(batch, Labelled(hidden, places, labels, ones), PLAN)
    torch.testing.assert_close(nats, -both[places - 1, labels])
    past = model.head(model.backbone(batch.tokens_BT, batch, PLAN, None, True)).flatten(0, 1)
    seen = Labelled(batch.tokens_BT, places - 1, labels, ones)
    torch.testing.assert_close(model.second(batch, seen, PLAN), -past.log_softmax(-1)[places - 1, labels])
    torch.testing.assert_close(model.token_logits(batch, seen, PLAN, causal=True), past[places - 1])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"architecture": {"kind": "transformers", "model": "gpt2"}}, "'gpt2' .*no masked language model"),
        ({"execution": {"compile_scope": "step"}}, "one head and one loss, and the objective adds masked_rows"),
        ({"optimizer": "sophia"}, "not of objective 'hybrid'"),
    ],
)
def test_what_cannot_have_two_masks_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        Recipe(objective="hybrid").with_(**change)


def test_an_architecture_that_cannot_change_its_mask_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.choices.architectures.modular.Modular.switches_mask", lambda self: False)
    with pytest.raises(
        RecipeError, match=r"architecture.kind: 'pre_ln' cannot change its mask, and objective 'hybrid'"
    ):
        Recipe(objective="hybrid")
