"""The card of an exported model can be made of any recipe, and says what is true of this one."""

from __future__ import annotations

import pytest

from workbench import presets
from workbench.choices.choice import registry
from workbench.models.card import model_card
from workbench.recipes.recipe import AXES, Recipe

FACTS = {"run": "r1", "step": 12, "tokens": 4000, "parameters": 123_456, "layers": 2}
SAID = {
    "heldout": [{"step": 10, "loss": 3.25}, {"step": 20, "loss": 3.0}],
    "unigram_entropy": 5.5, "bigram_entropy": 4.0, "score": {"kind": "next-token", "version": 2},
}  # fmt: skip
KINDS = [(axis, kind) for axis in AXES for kind in registry(axis)]


@pytest.mark.parametrize(("axis", "kind"), KINDS)
def test_any_choice_has_words(axis: str, kind: str) -> None:
    required = {"data": {"files": {"paths": ("a|b.txt",)}, "hugging_face": {"name": "owner/name"}}}
    fields = {axis: {"kind": kind, **required.get(axis, {}).get(kind, {})}}
    if Recipe.check(fields):
        pytest.skip("this choice needs others beside it")
    card = model_card(Recipe(**fields), SAID, FACTS, "WorkbenchForMaskedLM", True)
    table = [line for line in card.splitlines() if line.startswith("| ")]
    assert any(f"| {axis} | `{kind}`" in line for line in table) or axis == "execution"
    # A path with a bar in it must not add a column.
    assert all(line.replace("\\|", "").count("|") == 3 for line in table)


def test_numbers_are_those_of_the_exported_step() -> None:
    card = model_card(presets.gpt_tiny(), SAID, FACTS, "WorkbenchForCausalLM", True)
    assert "| held-out loss of the next token | 3.2500 nats at step 10 |" in card
    assert "| losses without context | word frequencies 5.5000; neighbours 4.0000 |" in card
    assert "| learned | context |" in card
    assert "| layers | 2 of 4: the run had not grown up |" in card
    assert "pipeline_tag: text-generation" in card
    assert "no cache of keys and values" in card
    assert "not evaluated" in model_card(presets.gpt_tiny(), {}, FACTS, "WorkbenchForCausalLM", True)


def test_only_our_own_classes_ask_for_an_import() -> None:
    own, theirs = (model_card(presets.bert_tiny(), SAID, FACTS, "BertForMaskedLM", own) for own in (True, False))
    assert "import workbench.transformers" in own
    assert "import workbench" not in theirs
    assert "transformers alone loads it" in theirs
    headless = model_card(presets.bert_tiny(), SAID, FACTS, "WorkbenchModel", True)
    assert "AutoModel.from_pretrained" in headless
    assert "last_hidden_state" in headless


@pytest.mark.parametrize("heldout", [None, 3, "x", [1], [{}], [{"step": None, "loss": 1}], [{"step": 1, "loss": []}]])
def test_damaged_evaluations_are_left_out(heldout: object) -> None:
    assert "not evaluated" in model_card(presets.gpt_tiny(), SAID | {"heldout": heldout}, FACTS, "X", True)


def test_the_architecture_is_said_as_this_model_has_it() -> None:
    card = model_card(presets.get("gpt2_like"), SAID, FACTS, "WorkbenchForCausalLM", True)
    assert "unless changed" not in card
    assert "at the end; positions learned, norm layer_norm, feed-forward gelu, biases. Trained" in card
    card = model_card(presets.gpt_tiny(), SAID, FACTS, "WorkbenchForCausalLM", True)
    assert "positions rope, norm rms_norm" in card
    assert "no biases. Trained" in card
