"""The text of a recipe: judged while it is typed, taken over on Apply, never lost."""

from __future__ import annotations

import pytest

from tests.jupyter.messages import hear, say
from workbench import presets
from workbench.jupyter.compose.recipe_editor import RecipeEditor
from workbench.jupyter.compose.recipe_reader import Read, read_python

TEXT = "recipe = wb.presets.fast()\n"


@pytest.fixture
def applied() -> list[Read]:
    return []


@pytest.fixture
def editor(applied: list[Read]) -> RecipeEditor:
    made = RecipeEditor("Python", read_python, applied.append, lambda read: f"seed {read.recipe.seed}")
    made.show(TEXT, sound=True)
    return made


def test_a_draft_is_judged_and_previewed_but_not_applied(editor: RecipeEditor, applied: list[Read]) -> None:
    assert (editor.problems, editor.note) == ([], "")
    editor.draft = "recipe = wb.presets.fast().with_(\n  seed=-1)"
    assert editor.problems[0][0] == 2
    assert "seed: " in editor.problems[0][1]
    assert editor.note == ""
    editor.draft = "recipe = wb.presets.fast().with_(\n  seed=7)"
    assert (editor.problems, editor.note) == ([], "seed 7")
    editor.draft = None
    assert (editor.problems, editor.note) == ([], "")
    assert applied == []


def test_apply_takes_over_what_can_be_read(
    editor: RecipeEditor, applied: list[Read], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = hear(editor, monkeypatch)
    say(editor, {"apply": "nonsense("})
    assert heard == [{"applied": False, "text": "nonsense("}]
    assert applied == []
    assert editor.problems == [[1, "not Python: '(' was never closed"]]
    say(editor, {"apply": TEXT})
    assert heard[1:] == [{"applied": True, "text": TEXT}]
    assert applied == [(presets.get("fast"), "fast")]
    assert editor.problems == []
    say(editor, {"apply": 3})
    say(editor, "apply")
    assert len(heard) == 2


def test_what_is_typed_after_apply_is_a_draft_of_its_own(editor: RecipeEditor) -> None:
    first, then = (f"recipe = wb.presets.fast().with_(seed={seed})" for seed in (7, 8))
    editor.draft = first
    say(editor, {"apply": first})
    assert editor.edited is None
    editor.draft = then
    assert editor.edited is not None
    editor.draft = first
    assert editor.edited is not None, "what is composed may be another by now"


def test_another_recipe_leaves_the_draft_alone(editor: RecipeEditor) -> None:
    editor.draft = "half a recip"
    editor.show("recipe = wb.presets.pld()\n", sound=True)
    assert editor.draft == "half a recip"
    assert editor.text == "recipe = wb.presets.pld()\n"
    assert editor.problems, "of the draft, which is what is shown"


def test_the_text_of_what_cannot_run_shows_where_it_is_wrong(editor: RecipeEditor) -> None:
    editor.show("recipe = wb.presets.fast().with_(\n  architecture={'heads': 3})", sound=False)
    assert editor.problems[0][0] == 2
    assert "do not divide" in editor.problems[0][1]
