"""Help: every declared knob says what it does, where it is, what is legal and what it is by default."""

from __future__ import annotations

import pytest

from workbench.choices.choice import knob, registry
from workbench.choices.progress import Budget
from workbench.jupyter.compose.inputs import defaults
from workbench.jupyter.compose.knob_help import help_of, label_of, legal, value_text
from workbench.recipes.recipe import AXES, Recipe

EVERY = ("tokenizer", "schedule", "batch_rule", "order", *AXES)


@pytest.mark.parametrize("axis", EVERY)
def test_every_knob_has_help_and_its_path_where_the_page_looks_for_it(axis: str) -> None:
    for kind, model in registry(axis).items():
        for name, info in model.model_fields.items():
            if name != "kind":
                help_line, facts = help_of(f"{axis}.{name}", info, defaults(model)[name]).split("\n")
                assert info.description, f"{axis}.{kind}.{name} says nothing about itself"
                assert help_line == info.description
                assert facts.split(" ")[0] == f"{axis}.{name}"


def test_bounds_unit_and_default_are_named() -> None:
    fields = Budget.model_fields
    assert help_of("budget.evaluation_tokens", fields["evaluation_tokens"], 131072).split("\n")[1] == (
        "budget.evaluation_tokens · ≥ 1,024 · in tokens · default 131072"
    )
    assert legal(Recipe.model_fields["seed"]) == "≥ 0 and < 2,147,483,648"
    assert legal(registry("optimizer")["adamw"].model_fields["lr"]).startswith("> 0")
    # One that moves keeps its bounds elsewhere than pydantic.
    assert legal(registry("data")["embedded"].model_fields["batch_size"]).startswith("≥ 1 and ≤ ")
    assert legal(knob("", "text", max_length=3)) == ""


def test_the_unit_is_not_said_twice() -> None:
    assert label_of("checkpoint_seconds", "seconds", "") == '<span title="">checkpoint seconds</span>'
    assert label_of("memory_gib", "GiB", "") == '<span title="">memory GiB</span>'
    assert label_of("models", "s", "") == '<span title="">models <i class="lab-unit">s</i></span>', (
        "a letter is no word"
    )
    assert label_of("tokens", "", 'a "b"\nc > 0') == '<span title="a &quot;b&quot;\nc &gt; 0">tokens</span>'
    assert label_of("a_<b>", "n", "") == '<span title="">a &lt;b&gt; <i class="lab-unit">n</i></span>'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"), (True, "on"), (0.003, "0.003"), (1e-8, "1e-08"), ("", "(empty)"), ("a\nb", "a b"),
        ([128, 512], "[128, 512]"), ({"kind": "linear", "start": 0.3}, "linear (start 0.3)"),
        ({"kind": "full"}, "full"),
    ],
)  # fmt: skip
def test_values_in_few_words(value: object, text: str) -> None:
    assert value_text(value) == text
    assert len(value_text("x" * 5000)) == 60
