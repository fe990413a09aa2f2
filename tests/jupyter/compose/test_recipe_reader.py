"""Reading recipes from pasted text: what we write comes back, nothing is executed, each error names its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets
from workbench.choices.choice import registry
from workbench.jupyter.compose.recipe_reader import LONGEST, read_json, read_python
from workbench.jupyter.compose.recipe_text import as_json, as_python
from workbench.jupyter.compose.text_problems import TextError
from workbench.recipes.recipe import AXES, Recipe


def lines(text: str, read: Any = read_python) -> list[tuple[int, str]]:
    """The problems of a text that holds no recipe."""
    with pytest.raises(TextError) as caught:
        read(text)
    return [tuple(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_comes_back(name: str) -> None:
    recipe, base = presets.get(name), presets.get("bert_tiny")
    assert read_json(as_json(recipe.to_dict())) == (recipe, None)
    assert read_python(as_python(recipe.to_dict(), recipe.to_dict(), name)) == (recipe, name)
    assert read_python(as_python(recipe.to_dict(), base.to_dict(), "bert_tiny")) == (recipe, "bert_tiny")
    assert read_python(as_python(recipe.to_dict(), base.to_dict(), None)) == (recipe, None)


def changes() -> st.SearchStrategy[dict[str, Any]]:
    """Legal changes: another kind of any axis, schedules, texts full of quotes, numbers of every size."""
    kinds = [
        {axis: {"kind": kind}}
        for axis in AXES
        for kind, model in registry(axis).items()
        if not any(info.is_required() for info in model.model_fields.values())
    ]
    schedules = [model(**{}).model_dump(mode="json") for model in registry("schedule").values()]
    numbers = st.floats(1e-12, 100, exclude_min=True)
    return st.one_of(
        st.sampled_from(kinds),
        st.sampled_from([{"optimizer": {"schedule": shape}} for shape in schedules]),
        st.builds(lambda lr, wd: {"optimizer": {"lr": lr, "weight_decay": min(wd, 1.0)}}, numbers, numbers),
        st.builds(lambda name, notes: {"name": name, "notes": notes}, st.text(min_size=1, max_size=40), st.text()),
        st.builds(lambda seed, eps: {"seed": seed, "optimizer": {"eps": eps}}, st.integers(0, 2**31 - 1), numbers),
    )


@settings(max_examples=25)
@given(st.lists(changes(), max_size=3), st.sampled_from(presets.names()), st.sampled_from(presets.names()))
def test_random_changes_come_back(made: list[dict[str, Any]], start: str, there: str) -> None:
    recipe = presets.get(start)
    for change in made:
        # Not every kind fits every preset.
        if not Recipe.check({**recipe.to_dict(), **fields_of(recipe, change)}):
            recipe = recipe.with_(**change)
    fields, base = recipe.to_dict(), presets.get(there).to_dict()
    assert read_json(as_json(fields)).recipe == recipe
    assert read_python(as_python(fields, base, there)).recipe == recipe
    assert read_python(as_python(fields, base, None)).recipe == recipe


def fields_of(recipe: Recipe, change: dict[str, Any]) -> dict[str, Any]:
    """The changed fields as ``with_`` would make them, checked or not."""
    try:
        return recipe.with_(**change).to_dict()
    except ValueError:
        return {"schema_version": 0}


def test_a_cell_as_people_write_it() -> None:
    text = '''
"""My experiment."""
import time
import workbench as wb

base = wb.presets.get("fast")
recipe = (
    base
    .with_(optimizer={"lr": 2e-3, "beta2": .98}, seed=+3, budget="500 steps")  # tuned
    .with_(**{"architecture.layers": 4, "name": "mine"})
    .with_assignments(["depth=progressive_drop", "depth.theta=0.6"])
)
other = base.with_(seed=9)
run = wb.launch(recipe, on="local")
'''
    found = read_python(text)
    assert found.preset == "fast"
    assert found.recipe == presets.get("fast").with_(
        optimizer={"lr": 0.002, "beta2": 0.98}, seed=3, budget="500 steps", architecture={"layers": 4}, name="mine",
        depth={"kind": "progressive_drop", "theta": 0.6},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        ("wb.presets.pld()", presets.get("pld")),
        ("presets.pld().with_(seed=1)\n", presets.get("pld").with_(seed=1)),
        ("import workbench\nx = workbench.presets.pld()\ny = workbench.Recipe(name='y')", Recipe(name="y")),
        ("wb.launch(wb.presets.pld().with_(seed=2))", presets.get("pld").with_(seed=2)),
        ("wb.Lab(wb.presets.pld())", presets.get("pld")),
        ("wb.presets.demo_fast(seconds=30)", presets.demo_fast(30)),
        ("recipe = wb.presets.pld()\nb = recipe.with_(seed=5)", presets.get("pld").with_(seed=5)),
        ("recipe = wb.presets.pld()\nrun = wb.launch(recipe.with_(seed=5))", presets.get("pld").with_(seed=5)),
        ("recipe = wb.presets.pld()\nother = recipe.with_(seed=5)\nwb.launch(recipe)\nother", presets.get("pld")),
        (
            "run = wb.launch(wb.presets.pld())\nrun.watch()\nloss = (await run.wait())['heldout_loss']\nrun",
            presets.get("pld"),
        ),
        ("from workbench.recipes.recipe import Recipe\nRecipe(**{'seed': 4}, name='z')", Recipe(seed=4, name="z")),
        ("from workbench.presets import pld\nrecipe = pld()", presets.get("pld")),
    ],
)
def test_other_ways_to_write_it(text: str, recipe: Recipe) -> None:
    assert read_python(text).recipe == recipe


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch {marker}')",
        "import os\nos.system('touch {marker}')",
        "import os\nrecipe = wb.presets.fast().with_(notes=os.popen('touch {marker}').read())",
        "from pathlib import Path\nPath('{marker}').touch()",
        "open('{marker}', 'w')",
        "exec(\"open('{marker}', 'w')\")",
        "wb.presets.sys.modules['os'].system('touch {marker}')",
        "wb.presets.inspect.os.system('touch {marker}')",
        "wb.presets._demo(1, 2, 3)",
        "wb.presets.get(['fast'])",
        "wb.Recipe.load('/etc/passwd')",
        "wb.Recipe.__init__.__globals__",
        "wb.presets.fast().save('{marker}')",
        "wb.presets.fast().__class__.__mro__",
        'recipe = wb.presets.fast().with_(notes=f\'{{open("{marker}", "w")}}\')',
        "recipe = wb.presets.fast().with_(seed=(lambda: open('{marker}', 'w'))())",
        "[open('{marker}', 'w') for _ in (1,)]",
        "@wb.presets.fast\ndef f(x=open('{marker}', 'w')): pass",
        "class A(open('{marker}', 'w')): pass",
        "x: open('{marker}', 'w') = 1",
        "with open('{marker}', 'w') as f: pass",
        "wb.presets.fast().with_(seed=1 if open('{marker}', 'w') else 2)",
        "(x := open('{marker}', 'w'))",
    ],
)
def test_nothing_is_executed(text: str, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    assert lines(text.format(marker=marker))
    assert not marker.exists()


@pytest.mark.parametrize(
    "text",
    [
        "9 ** 9 ** 9 ** 9",
        "x = 999999999 ** 64\n" + "x = x * x\n" * 40,
        "'a' * 10 ** 9",
        "(" * 5000 + ")" * 5000,
        "-" * 50_000 + "1",
        "run = wb.launch(wb.presets.fast())\nrun" + ".with_()" * 500,
        "[" * 2000 + "]" * 2000,
        "recipe = wb.presets.fast()\n" + "recipe = recipe.with_(seed=1)\n" * 7_000,
        "a = []\n" + "a = [a, a]\n" * 26 + "recipe = wb.presets.fast().with_(notes=a)",
        "wb.presets.fast().with_(notes=[" + "1, " * 30_000 + "])",
        "x" * (LONGEST + 1),
        "\0",
        "x = 1e999 - 1e999",
    ],
    ids=lambda text: text[:20],
)
def test_nothing_keeps_the_kernel_busy(text: str) -> None:
    for read in (read_python, read_json):
        (line, message), *_ = lines(text, read)
        assert line >= 1
        assert message


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", 1, "no recipe here; begin with recipe = wb.presets"),
        ("\n\nx = 3\n", 3, "no recipe here"),
        ("import workbench as wb\n\nrecipe = wb.presets.fats()", 3, "did you mean 'fast'?"),
        ("recipe = wb.presets.fast(\n", 1, "not Python"),
        ("recipe = wb.presets.fast().with_(\n  seed=1,\n  optimizer={\n    'lr': -1,\n  },\n)", 4, "optimizer.lr: "),
        ("recipe = wb.presets.fast().with_(\n    seed=1,\n    **{'optimizer.lr': -1},\n)", 3, "optimizer.lr: "),
        ("recipe = wb.presets.fast().with_(\n    seed=1,\n    optimizer='adamm',\n)", 3, "did you mean 'adamw'?"),
        ("recipe = wb.presets.fast().with_(\n  seed=1,\n  optimiser={'lr': 1},\n)", 3, "did you mean 'optimizer'?"),
        ("recipe = wb.presets.fast().with_(\n  architecture={\n  'heads': 3,\n  })", 3, "3 heads do not divide"),
        (
            "recipe = wb.presets.fast().with_(\n    data={'tokenizer': {\n      'vocabulary_size': 'x'}})",
            3,
            "vocabulary_size",
        ),
        ("r = (wb.presets.fast()\n    .with_(seed=1)\n    .with_(seed=-1))", 3, "seed: "),
        ("recipe = wb.presets.fast().with_assignments(\n  ['optimizer.lr'])", 1, "is not PATH=VALUE"),
        ("recipe = wb.presets.fast().with_(\n  execution={'compile': true})", 2, "write True"),
        ("recipe = wb.presets.fast().with_(\n  seed=seed)", 2, "`seed` is not known here"),
        ("recipe = wb.presets.fast(3)", 1, "takes 0 positional arguments"),
        ("recipe = wb.Recipe(1)", 1, "positional argument"),
        ("wb.launch(wb.presets.fast())\nwb.launch(wb.presets.pld())", 2, "a line above launches another recipe"),
        ("for x in (1,):\n  pass", 1, "nothing is executed here"),
        ("recipe = wb.presets.fast()\ndel recipe", 2, "nothing is executed here"),
        ("a = b = wb.presets.fast()", 1, "nothing is executed here"),
        ("lr = 2 * 10 ** -3", 1, "`2 * 10 ** (-3)` is no recipe"),
        ("wb.runs()", 1, "makes no recipe"),
        ("wb.presets.fast().with_(seed={1: 2})", 1, "named by strings"),
        ("wb.presets.fast().with_(**3)", 1, "is no dictionary"),
        ("wb.presets.fast().with_(seed=-'x')", 1, "not a literal: `-'x'`; write the value itself"),
        ("wb.presets.fast().with_(seed=1 / 0)", 1, "not a literal: `1 / 0`; write the value itself"),
        ("wb.presets.fast().with_(\n  seed=5 + 2j)", 2, "no knob takes `2j`"),
        ("wb.presets.fast().with_(seed=1" + "0" * 4000 + ")", 1, "no knob takes one"),
        ("wb.presets.fast().with_(seed=1" + "0" * 5000 + ")", 1, "not Python"),
        ("wb.presets.fast().with_(notes='\\ud800')", 1, "half a character"),
        ("wb.presets.fast().with_(notes=b'x')", 1, "no knob takes"),
        ("wb.presets.fast().with_(seed=wb)", 1, "`wb` is not known here"),
    ],
)
def test_python_errors_name_the_line(text: str, line: int, part: str) -> None:
    problems = lines(text)
    assert [where for where, message in problems if part in message] == [line], problems


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ('"evaluations": 8,', '"evaluations": 8', "not JSON: Expecting ',' delimiter"),
        ('"seed": 0', '"seed": -1', "seed: "),
        ('"heads": 4,', '"heads": 3,', "architecture.heads: 3 heads do not divide"),
        ('"vocabulary_size": 4096', '"vocabulary_size": "many"', "data.tokenizer.vocabulary_size: "),
        ('"kind": "adamw"', '"kind": "adamm"', "did you mean 'adamw'?"),
        ('"lowercase": ', '"lowercased": ', "did you mean 'lowercase'?"),
    ],
)
@pytest.mark.parametrize("lead", ["", "\n \n"])
def test_json_errors_name_the_line(old: str, new: str, part: str, lead: str) -> None:
    text = lead + as_json(presets.get("fast").to_dict())
    assert text.count(old) == 1
    line = text[: text.index(old)].count("\n") + 1
    problems = lines(text.replace(old, new), read_json)
    # A missing comma is noticed where the next word stands.
    found = [where for where, message in problems if part in message]
    assert found == [line + ("delimiter" in part)], problems


def test_several_problems_are_told_at_once() -> None:
    text = "recipe = wb.presets.fast().with_(\n  seed=-1,\n  optimizer={'lr': -1,\n   'beta1': 7})"
    assert [line for line, _ in lines(text)] == [3, 4, 2]


@pytest.mark.parametrize("text", ["[]", "3", '"x"', "null", json.dumps({"schema_version": 99})])
def test_json_that_is_no_recipe(text: str) -> None:
    assert lines(text, read_json)[0][0] == 1


def test_line_ends_of_other_systems() -> None:
    text = as_python(presets.get("pld").to_dict(), presets.get("fast").to_dict(), "fast").replace("\n", "\r\n")
    assert read_python(text).recipe == presets.get("pld")
