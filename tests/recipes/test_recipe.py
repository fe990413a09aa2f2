"""Recipes: round trips, edits, differences, hashes, and one clear error for everything that cannot be trained."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from IPython.lib.pretty import pretty

import workbench
from workbench.base.errors import RecipeError
from workbench.choices.data import Files
from workbench.choices.depth import ProgressiveDrop
from workbench.choices.optimizers import AdamW, Lans
from workbench.choices.schedules import Linear
from workbench.recipes.recipe import AXES, Recipe

EDITED = {
    "name": "edited",
    "notes": "naïve — ünïcode",
    "objective": {"kind": "masked", "mask_rate": {"kind": "linear", "start": 0.3, "end": 0.15}},
    "architecture": {"kind": "pre_ln", "layers": 6, "width": 96, "heads": 3},
    "depth": "progressive_drop",
    "optimizer": {"kind": "lans", "weight_decay": {"kind": "stages", "values": [0.1, 0.0], "until": [0.5]}},
    "execution": {"kind": "native", "precision": "fp32", "micro_batch_size": 4},
    "budget": "2 min",
    "seed": 11,
}


@pytest.mark.parametrize("fields", [{}, EDITED])
def test_json_round_trip(fields: dict[str, object], tmp_path: Path) -> None:
    recipe = Recipe(**fields)
    for again in (
        Recipe.from_json(recipe.to_json()),
        Recipe(**recipe.to_dict()),
        Recipe.load(recipe.save(tmp_path / "recipe.json")),
    ):
        assert again == recipe
        assert again.to_json() == recipe.to_json()
        assert [type(getattr(again, axis)) for axis in AXES] == [type(getattr(recipe, axis)) for axis in AXES]
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.json"], "nothing half-written stays"


def test_a_full_disk_leaves_the_old_recipe_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Recipe().save(tmp_path / "recipe.json")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workbench.base.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        Recipe(seed=5).save(path)
    assert Recipe.load(path) == Recipe()
    assert [found.name for found in tmp_path.iterdir()] == ["recipe.json"]


def test_the_hash_covers_what_decides_the_training_and_nothing_else() -> None:
    recipe = Recipe(**EDITED)
    assert recipe.hash == Recipe(**recipe.to_dict()).hash
    assert len(recipe.hash) == 10
    assert recipe.with_(name="other", notes="").hash == recipe.hash
    changes = [{"seed": 12}, {"budget": "3 min"}, {"optimizer.lr": 0.1}, {"depth": "full"}, {"data.batch_size": 64}]
    assert len({recipe.with_(**change).hash for change in changes} | {recipe.hash}) == 6


@pytest.mark.process
def test_the_hash_is_the_same_in_another_process(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = Recipe(**EDITED).save(tmp_path / "r.json")
    code = f"from workbench.recipes.recipe import Recipe; print(Recipe.load({str(path)!r}).hash)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert said == Recipe(**EDITED).hash


def test_with_edits_replaces_and_leaves_the_original() -> None:
    recipe = Recipe()
    edited = recipe.with_(optimizer={"lr": 0.005})
    assert (edited.optimizer.kind, edited.optimizer.lr, recipe.optimizer.lr) == ("adamw", 0.005, 1e-3)
    other = edited.with_(optimizer="lans")
    assert other.optimizer == Lans(), "another kind starts from its own defaults"
    assert edited.with_(optimizer="adamw").optimizer == edited.optimizer, "the same kind keeps its knobs"
    assert recipe.with_(optimizer=Lans(lr=0.02)).optimizer.lr == 0.02
    assert recipe.with_(depth=ProgressiveDrop(theta=0.7)).depth.theta == 0.7
    assert recipe.with_(**{"optimizer.schedule.hold": 0.2}).optimizer.schedule.hold == 0.2
    assert recipe.with_(**{"objective.mask_rate": Linear(start=0.3, end=0.2)}).objective.mask_rate.end == 0.2
    assert recipe.with_(budget="5k steps").budget.amount == 5000
    assert recipe.with_(budget={"amount": 7}).budget.unit == "steps"


def test_diff_lists_exactly_what_differs() -> None:
    recipe = Recipe()
    assert recipe.diff(recipe) == {}
    other = recipe.with_(seed=3, **{"optimizer.lr": 0.01, "objective.mask_rate": Linear(start=0.3, end=0.2)})
    found = recipe.diff(other)
    assert found["seed"] == (0, 3)
    assert found["optimizer.lr"] == (1e-3, 0.01)
    assert found["objective.mask_rate"] == (0.15, None)
    assert found["objective.mask_rate.start"] == (None, 0.3)
    assert not [path for path in found if path.startswith(("data", "architecture", "execution"))]


@pytest.mark.parametrize("take", ["diff", "forecast", "Lab"])
@pytest.mark.parametrize("given", ["fast", ["fast"]])
def test_what_is_no_recipe_is_refused_by_all_that_take_one(take: str, given: object) -> None:
    called = Recipe().diff if take == "diff" else getattr(workbench, take)
    with pytest.raises(
        RecipeError, match=rf"^{take} takes a Recipe, got .*; a preset by name: wb.presets.get\('fast'\)$"
    ):
        called(given)


def test_a_diff_is_a_table_in_a_notebook() -> None:
    recipe = Recipe(name="<b>one</b>")
    html = recipe.diff(recipe.with_(name="two", depth="progressive_drop"))._repr_html_()
    assert "&lt;b&gt;one&lt;/b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 1 + len(recipe.diff(recipe.with_(name="two", depth="progressive_drop")))
    # A knob that one side does not have.
    assert re.search(r"depth\.theta</td><td[^>]*>-</td><td[^>]*>0\.5<", html)
    assert "no difference" in recipe.diff(recipe)._repr_html_()


def test_differences_print_a_line_per_knob() -> None:
    recipe = Recipe()
    found = recipe.diff(recipe.with_(optimizer={"lr": 0.5}, seed=7))
    head, *lines = str(found).splitlines()
    assert head.split() == ["knob", "here", "there"]
    assert [line.split()[0] for line in lines] == list(found)
    assert len({line.index(line.split()[1]) for line in lines} | {head.index("here")}) == 1
    assert repr(found) == repr(dict(found))
    assert str(recipe.diff(recipe)) == "no difference"


def test_a_recipe_is_a_table_in_a_notebook_and_a_line_per_axis_in_a_terminal() -> None:
    recipe = Recipe(name="<b>\x1bone</b>", notes="none of it", data={"kind": "files", "paths": ["a\nb"]})
    head, *lines = str(recipe).splitlines()
    assert head == "<b> one</b>"
    assert [line.split()[0] for line in lines] == [*AXES, "budget", "seed"]
    assert ' paths ["a\\nb"], ' in lines[0]
    assert lines[-1].split() == ["seed", "0"]
    html = recipe._repr_html_()
    assert "&lt;b&gt; one&lt;/b&gt;" in html
    assert "none of it" not in html
    assert html.count("<tr>") == 1 + len(lines)
    assert re.search(r"<td[^>]*>optimizer</td><td[^>]*>adamw</td><td[^>]*>lr 0\.\d+, ", html)
    assert str(recipe) == pretty(recipe)


BAD = [
    ({"optimizer": "lanz"}, r"^optimizer\.kind: unknown value 'lanz'; did you mean 'lans'\? legal: .*adamw, .*lans, "),
    ({"optimizer": {"lr": 1}}, r"^optimizer\.kind: missing; a mapping must name its choice: one of .*adamw, .*lans, "),
    ({"optimiser": "lans"}, r"^optimiser: unknown knob 'optimiser'; did you mean 'optimizer'\? legal: architecture"),
    ({"execution": {"kind": "native", "price": 1}}, r"^execution\.price: not a knob of 'native' but of 'memory', "),
    ({"optimizer": {"kind": "lans", "beta3": 0.5}}, r"^optimizer\.beta3: unknown knob 'beta3'; did you mean 'beta"),
    ({"optimizer": {"kind": "lans", "lr": -1}}, r"^optimizer\.lr: must be greater than 0, got -1"),
    ({"optimizer": {"kind": "lans", "lr": "fast"}}, r"^optimizer\.lr: must be a number > 0 and <= 100, got 'fast'$"),
    ({"optimizer": {"kind": "adamw", "schedule": "linaer"}}, r"^optimizer\.schedule\.kind: .*did you mean 'linear'"),
    (
        {"optimizer": {"kind": "adamw", "schedule": {"kind": "cosine", "warmup": 2}}},
        r"^optimizer\.schedule: .*warmup 2 must be shorter than length 1",
    ),
    ({"objective": {"kind": "masked", "mask_rate": 15}}, r"^objective\.mask_rate: must be > 0 and < 1 .* got 15"),
    (
        {"architecture": {"kind": "pre_ln", "layers": 0}},
        r"^architecture\.layers: must be greater than or equal to 1, got 0",
    ),
    (
        {"architecture": {"kind": "pre_ln", "width": 250, "heads": 4}},
        r"^architecture\.heads: 4 heads do not divide width 250; use one of \[1, 5, 25\]",
    ),
    ({"data": {"kind": "files", "paths": []}}, r"^data\.paths: must not be empty: give at least 1 item$"),
    ({"data": {"kind": "files", "paths": [3]}}, r"^data\.paths\.0: must be text, got 3$"),
    ({"data": {"kind": "files", "paths": 3}}, r"^data\.paths: must be a list, got 3$"),
    ({"data": "files"}, r"^data\.paths: must be given$"),
    ({"name": ""}, r"^name: must not be empty: give at least 1 character$"),
    ({"name": "n" * 93}, r"^name: must have at most 80 characters, got 93$"),
    ({"seed": 1.5}, r"^seed: must be a whole number, got 1\.5$"),
    (
        {"architecture": {"kind": "pre_ln", "tied": "maybe"}},
        r"^architecture\.tied: must be true or false, got 'maybe'$",
    ),
    ({"depth": {"kind": "progressive_drop", "theta": 0}}, r"^depth\.theta: must be greater than 0, got 0"),
    (
        {"depth": "progressive_drop", "architecture": {"kind": "pre_ln", "layers": 1}},
        r"^depth\.theta: 0\.5 drops more layers than exist: of 1, 0\.5 would run on average",
    ),
    (
        {"execution": {"kind": "native", "micro_batch_size": 64}},
        r"^execution\.micro_batch_size: 64 rows do not divide data\.batch_size 32; use one of 1, 2, 4, 8, 16, 32",
    ),
    ({"budget": "200"}, r"^budget: '200' is not a number and a unit; write '200 steps'"),
    ({"budget": "-30 s"}, r"^budget\.amount: must be greater than 0, got -30"),
    ({"budget": {"amount": 0}}, r"^budget\.amount: must be greater than 0, got 0"),
    ({"budget": {"steps": 3}}, r"^budget\.steps: unknown knob 'steps'.* legal: amount"),
    ({"seed": -1}, r"^seed: must be greater than or equal to 0, got -1"),
    ({"seed": 2**31}, r"^seed: must be less than 2147483648"),
    ({"name": ""}, r"^name: "),
    ({"schema_version": 2}, r"^schema_version: must be 1, got 2"),
]


@pytest.mark.parametrize(("fields", "message"), BAD, ids=[json.dumps(fields)[:50] for fields, _ in BAD])
def test_what_cannot_be_trained_says_why(fields: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message) as error:
        Recipe(**fields)
    text = str(error.value)
    assert "validation error" not in text
    assert "pydantic" not in text
    assert "\n" not in text, "one problem, one line"
    problems = Recipe.check(fields)
    assert [f"{problem.path}: {problem.message}" for problem in problems] == [text]


def test_every_problem_is_listed_at_once() -> None:
    fields = {"seed": -1, "optimizer": {"kind": "lans", "lr": 0, "eps": 0}, "depth": "ful"}
    with pytest.raises(RecipeError) as error:
        Recipe(**fields)
    paths = [line.split(":")[0] for line in str(error.value).splitlines()]
    assert sorted(paths) == ["depth.kind", "optimizer.eps", "optimizer.lr", "seed"]
    assert Recipe.check({}) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 1e-3}, r"^lr: unknown knob 'lr'; did you mean 'optimizer\.lr'\?$"),
        ({"optimizr.lr": 1}, r"^optimizr: unknown knob 'optimizr'; did you mean 'optimizer'"),
        ({"optimizer.schedul.hold": 1}, r"^optimizer\.schedul: unknown knob 'schedul'; did you mean 'schedule'"),
        ({"optimizer.learning_rate": 1}, r"optimizer\.learning_rate: unknown knob 'learning_rate'"),
        ({"objective.mask_rate.start": 1}, r"objective\.mask_rate is 0\.15, which has no knobs"),
    ],
)
def test_edits_of_what_does_not_exist(change: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe().with_(**change)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not JSON"), ("[1]", "a recipe is a JSON object, got list"), ('{"sed": 1}', "'seed'")]
)
def test_text_that_is_no_recipe(text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe.from_json(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"recipe file '.*nowhere\.json' cannot be read"):
        Recipe.load(tmp_path / "nowhere.json")
    half = tmp_path / "half.json"
    half.write_text('{"seed": 1')
    with pytest.raises(RecipeError, match=r"recipe file '.*half\.json' is not JSON: .* text to train on is given with"):
        Recipe.load(half)
    with pytest.raises(RecipeError, match=r"recipe file '.*' is a folder; give a file in it"):
        Recipe.load(tmp_path)
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"name": "caf\xe9"}')
    with pytest.raises(RecipeError, match=r"latin\.json' cannot be read: .*utf-8"):
        Recipe.load(latin)


def test_a_pipe_is_read_to_its_end_and_one_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    """``--recipe <(...)`` is a pipe that is written to while, before or after it is opened."""
    read, write = os.pipe()
    with os.fdopen(read), ThreadPoolExecutor() as pool:
        loaded = pool.submit(Recipe.load, f"/dev/fd/{read}")
        with os.fdopen(write, "w") as file:
            file.write(Recipe(seed=3).to_json())
        assert loaded.result().seed == 3
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(RecipeError, match="pipe' is empty"):
        Recipe.load(path)


@pytest.mark.parametrize(
    "path", ["optimizer.lr", "architecture.layers", "seed", "budget.amount", "objective.mask_rate"]
)
def test_true_is_no_number(path: str) -> None:
    with pytest.raises(RecipeError, match=f"{path}: must be a number, got true"):
        Recipe().with_assignments([f"{path}=true"])


@pytest.mark.parametrize("kind", ["[]", "{}", "5"])
def test_a_kind_that_is_no_name(kind: str) -> None:
    with pytest.raises(RecipeError, match=r"optimizer.kind: unknown value .* legal: .*adamw, .*lans, "):
        Recipe().with_assignments([f"optimizer.kind={kind}"])


def test_a_recipe_of_a_newer_version_says_so() -> None:
    with pytest.raises(RecipeError, match="2 was written by a newer workbench, this one reads 1"):
        Recipe.from_json('{"schema_version": 2, "of_tomorrow": 1}')


def test_json_nested_too_deep_is_an_error_of_the_recipe() -> None:
    with pytest.raises(RecipeError, match="not JSON"):
        Recipe.from_json("[" * 200_000)


def test_a_number_has_no_knobs_and_a_budget_needs_a_unit() -> None:
    with pytest.raises(RecipeError, match=r"optimizer.lr is 0.001, which has no knobs; change optimizer.lr itself"):
        Recipe(optimizer={"kind": "adamw", "lr": 1e-3}).with_assignments(["optimizer.lr.start=1"])
    with pytest.raises(RecipeError, match=r"budget: 5 has no unit; write '200 steps'"):
        Recipe().with_(budget=5)


def test_located_paths_are_absolute_and_mean_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, tokenizer, data set and model, each where a path is legal; names of the Hub and model types stay."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    shape = {"layers": 1, "width": 32, "heads": 2}
    recipe = Recipe(
        data={"kind": "files", "paths": ["a.txt", "*.md"], "tokenizer": {"kind": "pretrained", "name": "./here"}},
        architecture={"kind": "transformers", "model": "here", **shape, "pretrained": True},
    )
    fields = recipe.located().to_dict()
    assert fields["data"]["paths"] == [str(tmp_path / "a.txt"), str(tmp_path / "*.md")]
    assert fields["data"]["heldout_paths"] == []
    assert fields["data"]["tokenizer"]["name"] == fields["architecture"]["model"] == str(tmp_path / "here")
    assert recipe.located().located() == recipe.located()
    assert recipe.with_(data={"kind": "hugging_face", "name": "here"}).located().data.name == str(tmp_path / "here")
    named = Recipe(data={"kind": "hugging_face", "name": "owner/set"}, architecture={"kind": "transformers", **shape})
    assert named.located() == named


def test_values_of_python_programs_are_plain_in_the_recipe(tmp_path: Path) -> None:
    """Numbers and arrays of numpy, and paths, in `with_` as in a choice."""
    path, rate = tmp_path / "a.txt", np.float32(0.5)
    for given in (path, [path], str(path)):
        made = workbench.presets.fast().with_(data={"kind": "files", "paths": given})
        assert made.data.paths == Files(paths=given).paths == (str(path),)
    stages = {"kind": "stages", "values": np.array([0.5, 0.25]), "until": [0.5]}
    changed = workbench.presets.fast().with_(optimizer={"lr": rate, "schedule": stages}, seed=np.int64(3))
    optimizer = changed.to_dict()["optimizer"]
    assert (optimizer["lr"], optimizer["schedule"]["values"], changed.seed) == (0.5, [0.5, 0.25], 3)
    assert Recipe.from_json(changed.to_json()) == changed
    assert AdamW(lr=rate) == AdamW(lr=0.5)
