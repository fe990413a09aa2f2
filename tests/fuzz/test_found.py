"""What fuzzing found, one case each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench import presets
from workbench.base.errors import RecipeError
from workbench.base.json_lines import parsed
from workbench.recipes.recipe import Recipe
from workbench.store.checkpoints import problem_with
from workbench.telemetry.streams import Telemetry, number


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "\ud800"}, "name: holds half a character"),
        ({"optimizer": {"kind": "adamw", "\udc80": 1}}, "optimizer: holds a name that is no Unicode text"),
        ({"optimizer": {"kind": "adamw", "weight_decay": 10**400}}, "optimizer.weight_decay: a whole number of 1,329"),
        ({"seed": 10**5000}, "seed: a whole number of 16,610 bits"),
        ({"self": 1}, "self: unknown knob 'self'"),
    ],
)
def test_recipes(fields: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe(**fields)
    assert Recipe.check(fields)
    with pytest.raises(RecipeError):
        presets.fast().with_(**fields)


def test_recipes_without_end() -> None:
    bomb: list[object] = []
    for _ in range(40):
        bomb = [bomb, bomb]
    circle: dict[str, object] = {}
    circle["a"] = circle
    wide: list[object] = [[1] * 1000] * 1000
    for value, message in ((bomb, "nested deeper"), (circle, "nested deeper"), (wide, "more than 100,000 values")):
        with pytest.raises(RecipeError, match=message):
            Recipe(data={"kind": "files", "paths": value})


def test_integers_of_thousands_of_digits_in_json() -> None:
    with pytest.raises(RecipeError, match="more digits than any knob takes"):
        Recipe.from_json('{"seed": ' + "9" * 5000 + "}")


@pytest.mark.parametrize("value", [10**400, [], {}, "x", "9" * 400 + "x"])
def test_scalars_that_are_no_numbers_have_no_curve(value: object) -> None:
    line = json.dumps({"step": 1, "loss": value, "seconds": 0.5}).encode()
    telemetry = Telemetry(scalars=parsed(line))
    assert number(value) != number(value)
    assert telemetry.series("loss", "tokens") == ([], [])
    assert telemetry.series("loss", "seconds")[0] == [0.5]


@pytest.mark.parametrize("step", ["1" + "0" * 400, '"x"', "1.5", "[1]", "null"])
def test_records_without_a_step_that_a_curve_can_hold_are_left_out(step: str) -> None:
    assert parsed(b'{"step": %s}\n{"step": 2}' % step.encode()) == [{"step": 2}]


@pytest.mark.parametrize(
    "manifest", ["[" * 50_000, '{"sha256": [1]}', '{"sha256": {"a\\u0000b": 1}, "format": 1}', "3"]
)
def test_manifests(manifest: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    assert "cannot be read" in (problem_with(tmp_path) or "")
