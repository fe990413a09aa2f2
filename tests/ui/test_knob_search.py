"""Searching: all words must be found, and knobs of what is not chosen are named with their home."""

from __future__ import annotations

from workbench.choices.choice import registry
from workbench.recipe import AXES, Recipe
from workbench.ui.knob_search import elsewhere, words_of

CHOSEN = {axis: Recipe().to_dict()[axis]["kind"] for axis in AXES}


def test_words() -> None:
    assert words_of(" Weight_decay optimizer.LR ") == ["weight", "decay", "optimizer", "lr"]
    assert words_of("") == []


def test_knobs_of_other_choices_are_named_with_their_home() -> None:
    assert "theta (depth: progressive_drop)" in elsewhere(["theta"], CHOSEN)
    assert not any(
        "progressive_drop" in found for found in elsewhere(["theta"], {**CHOSEN, "depth": "progressive_drop"})
    )
    assert elsewhere(["no", "such", "knob"], CHOSEN) == []
    assert elsewhere([], CHOSEN) == []


def test_many_are_counted() -> None:
    found = elsewhere(["a"], CHOSEN, most=3)
    assert len(found) == 4
    assert found[-1].startswith("and ")


def test_homes_of_one_name_are_told_together() -> None:
    found = [text for text in elsewhere(["lr"], {"optimizer": "adamw"}) if text.startswith("lr (")]
    assert len(found) == 1
    assert found[0].count(",") == 3, f"at most four of {len(registry('optimizer'))} optimizers"
