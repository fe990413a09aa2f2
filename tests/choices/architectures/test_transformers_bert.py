"""The oracle of post_ln: transformers' own BertForMaskedLM."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.choices.architectures.packing import documents, pack
from workbench.choices.architectures.heads import LinearHead, TransformHead
from workbench.choices.architectures.modular import ModularStack
from workbench.choices.architectures.post_ln import PostLN
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.architectures.pretrained_bert import from_transformers
from workbench.choices.architectures.transformers_bert import to_transformers
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.depth.plan import LayerPlan

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
VOCABULARY = Vocabulary(320, 300, 1, 2, 3, 0, 4)
CHOICE = PostLN(layers=3, width=48, heads=6, ffn_width=80)


def ours(choice: PostLN = CHOICE, causal: bool = False) -> tuple[ModularStack, TransformHead]:
    stack = choice.build(VOCABULARY, 24, causal=causal, attention="plain")
    head = TransformHead(stack.embedding)
    return randomise(stack).eval(), randomise(head).eval()


def randomise(module):  # type: ignore[no-untyped-def]
    """Every weight random: zeros and ones of a fresh model would hide a swapped bias or norm."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return module


def theirs(**changes: object):  # type: ignore[no-untyped-def]
    settings = {
        "vocab_size": 320, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6,
        "intermediate_size": 80, "max_position_embeddings": 24,
    }  # fmt: skip
    return randomise(transformers.BertForMaskedLM(transformers.BertConfig(**{**settings, **changes}))).eval()


def our_logits(stack: ModularStack, head: TransformHead, tokens: torch.Tensor) -> torch.Tensor:
    batch = pack([tokens])
    return head(stack(batch.tokens_BT, batch, LayerPlan.full(len(stack.blocks))))[0]


def test_to_transformers_gives_the_same_logits() -> None:
    (stack, head), (tokens,) = ours(), documents(24)
    tokens = tokens % 300
    expected = to_transformers(stack, head)(input_ids=tokens[None]).logits[0]
    torch.testing.assert_close(our_logits(stack, head, tokens), expected, rtol=1e-5, atol=1e-5)


def test_packed_documents_get_the_logits_transformers_gives_them_alone() -> None:
    bert, pieces = theirs(), [piece % 300 for piece in documents(7, 11, 6)]
    _, stack, head = from_transformers(bert)
    batch = pack(pieces)
    packed = head.eval()(stack.eval()(batch.tokens_BT, batch, LayerPlan.full(3)))[0].split([7, 11, 6])
    for piece, logits in zip(pieces, packed, strict=True):
        torch.testing.assert_close(logits, bert(input_ids=piece[None]).logits[0], rtol=1e-5, atol=1e-5)


def test_a_folder_of_transformers_loads_and_saves(tmp_path: Path) -> None:
    (stack, head), (tokens,) = ours(), documents(24)
    tokens = tokens % 300
    folder = tmp_path / "bert"
    assert CHOICE.save_pretrained(stack, head, folder, VOCABULARY, 3)
    choice, again, again_head = from_transformers(transformers.BertForMaskedLM.from_pretrained(folder))
    assert choice == CHOICE
    assert torch.equal(our_logits(again.eval(), again_head.eval(), tokens), our_logits(stack, head, tokens))


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"layer_norm_eps": 1e-5}, {"type_vocab_size": 1}])
def test_variants_that_would_compute_something_else_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"this BERT has {next(iter(change))}"):
        from_transformers(theirs(**change))


def test_other_models_are_refused() -> None:
    stack, head = ours()
    with pytest.raises(ValueError, match="with a LinearHead is no BertForMaskedLM"):
        to_transformers(stack, LinearHead(stack.embedding))
    with pytest.raises(ValueError, match="causal ModularStack"):
        to_transformers(*ours(causal=True))
    modern = PreLN(layers=1, width=32, heads=4).build(VOCABULARY, 24, causal=False, attention="plain")
    with pytest.raises(ValueError, match="PreLN"):
        to_transformers(modern, head)


def test_an_untied_output_matrix_goes_both_ways() -> None:
    bert, (tokens,) = theirs(tie_word_embeddings=False), documents(20)
    tokens = tokens % 300
    choice, stack, head = from_transformers(bert)
    assert choice == CHOICE.model_copy(update={"tied": False})
    expected = bert(input_ids=tokens[None]).logits[0]
    torch.testing.assert_close(our_logits(stack.eval(), head.eval(), tokens), expected, rtol=1e-5, atol=1e-5)
    again = to_transformers(stack, head)(input_ids=tokens[None]).logits[0]
    torch.testing.assert_close(again, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "knob",
    [
        {"positions": "tupe_a"}, {"norm": "rms_norm"}, {"final_norm": True}, {"embedding_norm": False},
        {"ffn": "relu"}, {"bias": False}, {"local_window": 8}, {"bigram_rows": 50}, {"value_embeddings": True},
    ],
)  # fmt: skip
def test_every_knob_that_bert_does_not_have_is_refused(knob: dict[str, object], tmp_path: Path) -> None:
    choice = CHOICE.model_copy(update=knob)
    stack, head = ours(choice)
    assert not choice.is_bert
    assert not choice.save_pretrained(stack, head, tmp_path / "bert", VOCABULARY, 3)
    with pytest.raises(ValueError, match="is no BertForMaskedLM: leave every knob"):
        to_transformers(stack, head)
