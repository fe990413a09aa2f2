"""The text of a recipe: judged while it is typed, taken over on Apply, never lost."""

from __future__ import annotations

import pytest

from tests.jupyter.messages import hear, say
from workbench import presets
from workbench.jupyter.compose.recipe_editor import RecipeEditor
from workbench.jupyter.compose.recipe_text import as_json, read_json
from workbench.recipes.recipe import Recipe

FAST = presets.get("fast")
TEXT = as_json(FAST.to_dict())


def text_of(**changes: object) -> str:
    """Return the JSON of `fast` with changes, valid or not."""
    return as_json(FAST.to_dict() | changes)


@pytest.fixture
def applied() -> list[Recipe]:
    return []


@pytest.fixture
def editor(applied: list[Recipe]) -> RecipeEditor:
    made = RecipeEditor("JSON", read_json, applied.append, lambda recipe: f"seed {recipe.seed}")
    made.show(TEXT, sound=True)
    return made


def test_a_draft_is_judged_and_previewed_but_not_applied(editor: RecipeEditor, applied: list[Recipe]) -> None:
    assert (editor.problems, editor.note) == ([], "")
    editor.draft = wrong = text_of(seed=-1)
    assert editor.problems[0][0] == wrong[: wrong.index('"seed"')].count("\n") + 1
    assert "seed: " in editor.problems[0][1]
    assert editor.note == ""
    editor.draft = text_of(seed=7)
    assert (editor.problems, editor.note) == ([], "seed 7")
    editor.draft = None
    assert (editor.problems, editor.note) == ([], "")
    assert applied == []


def test_apply_takes_over_what_can_be_read(
    editor: RecipeEditor, applied: list[Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = hear(editor, monkeypatch)
    say(editor, {"apply": "nonsense("})
    assert heard == [{"applied": False, "text": "nonsense("}]
    assert applied == []
    assert editor.problems == [[1, "not JSON: Expecting value (column 1)"]]
    say(editor, {"apply": TEXT})
    assert heard[1:] == [{"applied": True, "text": TEXT}]
    assert applied == [FAST]
    assert editor.problems == []
    say(editor, {"apply": 3})
    say(editor, "apply")
    assert len(heard) == 2


def test_what_is_typed_after_apply_is_a_draft_of_its_own(editor: RecipeEditor) -> None:
    first, then = (text_of(seed=seed) for seed in (7, 8))
    editor.draft = first
    say(editor, {"apply": first})
    assert editor.edited is None
    editor.draft = then
    assert editor.edited is not None
    editor.draft = first
    assert editor.edited is not None, "what is composed may be another by now"


def test_another_recipe_leaves_the_draft_alone(editor: RecipeEditor) -> None:
    editor.draft = "half a recip"
    editor.show(other := text_of(seed=3), sound=True)
    assert editor.draft == "half a recip"
    assert editor.text == other
    assert editor.problems, "of the draft, which is what is shown"


def test_the_text_of_what_cannot_run_shows_where_it_is_wrong(editor: RecipeEditor) -> None:
    editor.show(TEXT.replace('"heads": 4', '"heads": 3'), sound=False)
    assert editor.problems[0][0] > 2
    assert "do not divide" in editor.problems[0][1]


def test_a_text_to_copy_cannot_be_applied(applied: list[Recipe]) -> None:
    made = RecipeEditor("Python", None, applied.append, lambda recipe: "")
    made.show("recipe = wb.presets.fast()\n", sound=False)
    assert (made.readonly, made.problems) == (True, [])
    assert not made.apply("recipe = wb.presets.pld()\n")
    assert "edit the JSON or the form" in made.problems[0][1]
    assert applied == []
