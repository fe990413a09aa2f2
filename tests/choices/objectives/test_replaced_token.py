"""Replaced-token detection against the written-out formula, and against transformers' ELECTRA of the same weights."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.choices.objectives.test_token_prediction import START, VOCABULARY, batch_of
from tests.choices.objectives.test_two_networks import PLAN, two
from workbench.choices.architectures.heads import TransformHead
from workbench.choices.architectures.stack import Stack
from workbench.choices.architectures.transformers_bert import to_transformers
from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.replaced_token import ReplacedTokenModel
from workbench.choices.objectives.two_networks import selected


@pytest.mark.parametrize("head", ["linear", "transform"])
def test_losses_and_shares_equal_the_written_out_formula(head: str) -> None:
    """One slot and one position at a time, in float64; the drawn tokens as the model has drawn them."""
    model, batch = two(architecture={"head": head}), batch_of()
    assert isinstance(model, ReplacedTokenModel)
    model.generator.head.weight.data.mul_(30)  # some draws are the true token
    seen = selected(model._corrupt(batch), batch, 0.15, seed=3)
    filled = model.filled(batch, seen, seed=3).tokens_BT
    found = model(batch, PLAN, START)
    logits = model.generator.head(model.generator.backbone(seen.tokens_BT, batch, PLAN)).double().flatten(0, 1)
    assert seen.index_N is not None
    nats = [-logits[place].log_softmax(0)[label] for place, label in zip(seen.index_N, seen.labels_N, strict=True)]
    assert found.parts["generator_loss"].item() == pytest.approx(float(sum(nats).detach()), rel=1e-5)
    judged = model.discriminator_head(model.backbone(filled, batch, PLAN)).double()
    total, table = 0.0, {(said, true): 0 for said in (False, True) for true in (False, True)}
    for row in range(3):
        for place in range(16):
            replaced = bool(filled[row, place] != batch.tokens_BT[row, place])
            probability = 1 / (1 + math.exp(-float(judged[row, place].detach())))
            total -= math.log(probability if replaced else 1 - probability)
            table[probability > 0.5, replaced] += 1
    assert found.parts["main_loss"].item() == pytest.approx(total, rel=1e-5)
    shares = {name: (int(part), int(of)) for name, (part, of) in found.ratios.items()}
    right, marked = table[True, True], table[True, True] + table[True, False]
    assert shares["precision"] == (right, marked)
    assert shares["recall"] == (right, right + table[False, True])
    assert shares["main_accuracy"] == (right + table[False, False], 48)
    assert shares["always_real"] == (table[False, False] + table[True, False], 48)
    assert model.counts(batch, START) == {"generator_loss": len(nats), "main_loss": 48}
    assert model.weights(START) == {"main_loss": 50.0}


def electra_of(kind: Any, stack: Stack, head: TransformHead | None = None) -> Any:
    """A transformers ELECTRA with the weights of our post-norm stack: its layers are BERT's."""
    from transformers import ElectraConfig

    bert = to_transformers(stack, head or TransformHead(stack.embedding), VOCABULARY.pad)
    config = ElectraConfig(
        vocab_size=VOCABULARY.size, embedding_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=128, max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    electra = kind(config).eval()
    missing, _ = electra.electra.load_state_dict(bert.bert.state_dict(), strict=False)
    assert not [name for name in missing if not name.endswith("_ids")]
    return electra


def test_both_losses_equal_those_of_transformers_electra() -> None:
    from transformers import ElectraForMaskedLM, ElectraForPreTraining

    model = two(architecture={"kind": "post_ln", "dropout": 0.0}, generator_width=1.0, embeddings="shared")
    assert isinstance(model, ReplacedTokenModel)
    rows = batch_of()
    whole = torch.arange(16).expand(3, 16)
    batch = Batch(rows.tokens_BT, whole, torch.zeros_like(rows.documents_BT), rows.samples_B)
    seen = selected(model._corrupt(batch), batch, 0.15, seed=3)
    filled = model.filled(batch, seen, seed=3).tokens_BT
    found, counts = model(batch, PLAN, START), model.counts(batch, START)

    discriminator = electra_of(ElectraForPreTraining, model.backbone)
    ours, theirs = model.discriminator_head, discriminator.discriminator_predictions
    theirs.dense.load_state_dict(ours.dense.state_dict())
    theirs.dense_prediction.load_state_dict(ours.out.state_dict())
    expected = discriminator(input_ids=filled, labels=(filled != batch.tokens_BT).long()).loss
    torch.testing.assert_close(found.parts["main_loss"] / counts["main_loss"], expected)

    head: Any = model.generator.head
    stack = model.generator.backbone
    stack.embedding = model.backbone.embedding  # of one width: the projection is none
    generator = electra_of(ElectraForMaskedLM, stack, head)
    generator.generator_predictions.dense.load_state_dict(head.dense.state_dict())
    generator.generator_predictions.LayerNorm.load_state_dict(head.norm.state_dict())
    generator.generator_lm_head.bias.data.copy_(head.bias)
    labels = torch.full((48,), -100).scatter(0, seen.index_N, seen.labels_N).view(3, 16)
    expected = generator(input_ids=seen.tokens_BT, labels=labels).loss
    torch.testing.assert_close(found.parts["generator_loss"] / counts["generator_loss"], expected)


def test_shares_of_held_out_rows_fill_in_every_mask() -> None:
    model, batch = two(), batch_of()
    seen = selected(model._corrupt(batch), batch, 0.15, seed=3)
    found = model.shares(batch, seen, PLAN)
    assert found["always_real"][1] == 48
    assert 0 < found["recall"][1] <= (seen.tokens_BT != batch.tokens_BT).sum()
    again = two()
    again.seed = 99
    assert {name: tuple(map(float, pair)) for name, pair in again.shares(batch, seen, PLAN).items()} == {
        name: tuple(map(float, pair)) for name, pair in found.items()
    }, "scores do not depend on the recipe's seed"
