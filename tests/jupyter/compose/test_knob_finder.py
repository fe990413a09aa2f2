"""The search box: what is asked for is shown, in closed sections too; what is not, comes back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from workbench import presets
from workbench.choices.choice import registry
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.form import ChoiceKnob, Form
from workbench.jupyter.compose.knob_finder import elsewhere, search_words
from workbench.recipes.recipe import AXES, Recipe


def shown(widget: Any) -> set[str]:
    """Paths of the knobs in the page, by their tooltips."""
    found: set[str] = set()
    for child in getattr(widget, "children", ()):
        tooltip = getattr(child, "tooltip", None) or ""
        if "\n" in tooltip:
            found.add(tooltip.split("\n")[1].split(" ")[0])
        found |= shown(child)
    return found


@pytest.fixture(scope="module")
def composer() -> Composer:
    composer = Composer(presets.get("fast"))
    for section in composer.sections:
        section.toggle.value = section.name in ("architecture", "optimizer", "budget")
    return composer


@pytest.fixture(autouse=True)
def _cleared(composer: Composer) -> Iterator[None]:
    before = shown(composer._forms)
    yield
    composer.finder.clear()
    assert shown(composer._forms) == before


def test_by_name_and_by_help(composer: Composer) -> None:
    composer.finder.text.value = "vocabulary size"
    assert shown(composer._forms) >= {"data.tokenizer.vocabulary_size"}
    assert composer._forms.children[0] is composer.finder.found
    assert len(composer._forms.children) == 2, "the section of data alone, which was closed"
    # The help of the tokenizer says the same, so its other knobs are shown, too: they are counted as they stand there.
    assert composer.finder.found.value == f"{len(shown(composer._forms) - set(AXES))} knobs found"
    # "seed of initialisation, data order, masks and layer dropping"
    composer.finder.text.value = "initialisation masks"
    assert shown(composer._forms) == {"seed"}
    assert composer.finder.found.value == "1 knob found"
    composer.finder.text.value = "no such knob at all"
    assert shown(composer._forms) == set()
    assert "no knob of what is chosen has these words" in composer.finder.found.value


def test_by_path_and_what_another_choice_would_bring(composer: Composer) -> None:
    composer.finder.text.value = "optimizer.schedule.warmup"
    assert "optimizer.schedule.warmup" in shown(composer._forms)
    assert "optimizer.lr" not in shown(composer._forms)
    composer.finder.text.value = "theta"
    assert "theta (depth: progressive_drop)" in composer.finder.others.value
    assert composer._forms.children[-1] is composer.finder.others, "below what can be set now"


def test_the_name_itself_comes_before_names_that_hold_it_and_help(composer: Composer) -> None:
    composer.finder.text.value = "lr"
    sections = [section for section in composer.sections if section.widget in composer._forms.children]
    places = [composer._forms.children.index(section.widget) for section in sections]
    first = sections[places.index(min(places))]
    assert first.name == "optimizer"
    form = composer.axes["optimizer"].part
    assert isinstance(form, Form)
    assert form.widget.children[0] is form.knobs["lr"].widget
    composer.finder.text.value = "beta"
    assert form.widget.children[0] is form.knobs["beta1"].widget
    composer.finder.text.value = "budget"
    budget = next(section for section in composer.sections if section.name == "budget")
    assert composer._forms.children[1] is budget.widget, "below what the search says: the section of that name"


def test_a_choice_that_is_named_is_found_with_all_its_knobs(composer: Composer) -> None:
    composer.finder.text.value = "optimizer adamw"
    form = composer.axes["optimizer"].part
    assert isinstance(form, Form)
    assert set(form.knobs) <= {path.removeprefix("optimizer.") for path in shown(composer._forms)}
    assert composer.finder.found.value.startswith(f"{len(shown(composer._forms))} knobs found")


def test_every_knob_is_found_by_its_path(composer: Composer) -> None:
    def paths(form: Form) -> Iterator[str]:
        for knob in form.knobs.values():
            yield knob.path
            if isinstance(knob, ChoiceKnob) and isinstance(knob.part, Form):
                yield from paths(knob.part)

    forms = [knob.part for knob in composer.axes.values() if isinstance(knob.part, Form)]
    every = [path for form in (*forms, composer.budget, composer.run) for path in paths(form)]
    assert len(every) > 50
    for path in every[::7]:
        composer.finder.text.value = path
        assert path in shown(composer._forms)


def test_another_choice_is_searched_as_well_and_a_kept_form_comes_back_whole(composer: Composer) -> None:
    knob = composer.axes["optimizer"]
    whole = set(shown(knob.widget))
    composer.finder.text.value = "beta1"
    knob.picker.value = "lans"
    assert shown(knob.widget) == {"optimizer.beta1"}
    composer.finder.clear()
    knob.picker.value = "adamw"
    assert shown(knob.widget) == whole


CHOSEN = {axis: Recipe().to_dict()[axis]["kind"] for axis in AXES}


def test_words() -> None:
    assert search_words(" Weight_decay optimizer.LR ") == ["weight", "decay", "optimizer", "lr"]
    assert search_words("") == []


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
