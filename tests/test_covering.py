"""One step of training for every value of every enumerated knob, everything else left at its default.

Attention is measured as a run measures it, masked and causal; and random recipes cover pairs of values.
"""

from __future__ import annotations

import random
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from workbench.base.errors import WorkbenchError
from workbench.choices.choice import Choice, registry
from workbench.choices.data.prepare import prepare
from workbench.ops import remembered
from workbench.ops.timing import measure
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training

AXES = ("objective", "architecture", "depth", "optimizer", "execution")
# What makes a step take milliseconds: sizes, and nothing that chooses between implementations.
SIZES: dict[str, dict[str, Any]] = {
    "post_ln": {"layers": 4, "width": 32, "heads": 2},
    "pre_ln": {"layers": 4, "width": 32, "heads": 2},
    "transformers": {"layers": 2, "width": 32, "heads": 2, "model": "bert"},
}
# They need a folder of a foreign model, an engine's own Python or a GPU; their own tests train them.
ELSEWHERE = {"pretrained", "new_head", "onnxruntime", "cuda"}
# They compile what they compare, for a minute; ``tests/autotune`` proves in seconds what they choose.
PLANNED = {"auto", "memory"}
Values = dict[str, Any]
"""Of enumerated knobs, by path."""


def values_of(annotation: Any) -> list[Any]:
    """The values that an annotation lists: literals, booleans, kinds of an axis within the choice."""
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return list(typing.get_args(annotation))
    if annotation is bool:
        return [False, True]
    if isinstance(annotation, type) and issubclass(annotation, Choice):
        return list(registry(annotation.axis))
    inner = typing.get_args(annotation) if origin in (typing.Union, types.UnionType, typing.Annotated) else ()
    return [value for each in inner for value in values_of(each)]


def knobs_of(model: type[Choice]) -> dict[str, list[Any]]:
    """A choice's enumerated knobs; of those that move, the schedules' kinds."""
    found = {name: values_of(field.annotation) for name, field in model.model_fields.items() if name != "kind"}
    numbers = {name for name, field in model.model_fields.items() if isinstance(field.get_default(), (int, float))}
    return {
        name: values
        for name, values in found.items()
        if values and name not in ELSEWHERE and (name not in numbers or set(values) == {False, True})
    }


def singles() -> Iterator[Values]:
    """Every kind of every axis, and every value of its knobs; what kinds share from their base, once."""
    seen: set[tuple[str, str, str]] = set()
    for axis in AXES:
        for kind, model in registry(axis).items():
            if kind in ELSEWHERE:
                continue
            yield {axis: kind}
            for name, values in knobs_of(model).items():
                for value in values:
                    # An axis within the axis: schedules of every optimizer are one code.
                    if value not in ELSEWHERE and not (isinstance(value, str) and (axis, name, value) in seen):
                        if axis in ("optimizer", "execution"):
                            seen.add((axis, name, str(value)))
                        yield {axis: kind, f"{axis}.{name}": value}


@pytest.fixture
def base(corpus: Path) -> dict[str, Any]:
    """Fields of a recipe that leaves open what the test is about."""
    data = {
        "kind": "files", "paths": [str(corpus)], "tokenizer": {"kind": "trained", "vocabulary_size": 256},
        "sequence_length": 32, "batch_size": 8,
    }  # fmt: skip
    execution = {"kind": "native", "device": "cpu", "compile": False, "threads": 1}
    budget = {"amount": 20, "unit": "steps", "evaluations": 2, "evaluation_tokens": 1024}
    return {"data": data, "execution": execution, "budget": budget}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Attention is measured truly, in few rounds, and nothing is remembered from elsewhere."""
    few = {"least_seconds": 0.0, "limit_seconds": 0.0}
    monkeypatch.setattr(remembered, "measure", lambda samples, **rest: measure(samples, **{**rest, **few}))
    monkeypatch.setattr("workbench.choices.execution.foreseen.cache_folder", lambda: tmp_path)


def fields_of(base: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """A recipe's fields with these values; a kind that is not said is the base's, or ``pre_ln``."""
    fields = {axis: dict(given) for axis, given in base.items()}
    fields.setdefault("architecture", {"kind": "pre_ln"})
    for path, value in values.items():
        axis, _, knob = path.partition(".")
        given = fields.setdefault(axis, {})
        if knob:
            given[knob] = value
        elif value != given.get("kind"):
            kept = {name: given[name] for name in ("device", "threads") if name in given}
            fields[axis] = {**kept, "kind": value}
    fields["architecture"] = {**SIZES[fields["architecture"]["kind"]], **fields["architecture"]}
    return fields


def refused(fields: Mapping[str, Any]) -> list[str]:
    """Paths of the knobs that a recipe with these fields is refused for, on this machine."""
    problems = Recipe.check(fields) or Recipe(**fields).problems_here()
    assert all(problem.message for problem in problems)
    return [problem.path for problem in problems]


def take_a_step(recipe: Recipe) -> None:
    """One optimizer step; the loss of the next is finite."""
    engine = recipe.engine()
    engine.measure(lambda *said: None)
    engine.start()
    training = Training(recipe, assemble(recipe, prepare(recipe.data, say=lambda line: None), engine))
    try:
        training.step()
        training.settle()
        assert torch.isfinite(training.rehearse(2)).all()
    finally:
        training.close()


def failures_of(cases: list[dict[str, Any]]) -> list[str]:
    """Recipes that are neither refused with a reason nor trained, with the error."""
    found = []
    for fields in cases:
        try:
            take_a_step(Recipe(**fields))
        # Of whatever kind: the test's result is the list of them.
        except Exception as error:
            found.append(f"{fields}: {type(error).__name__}: {error}")
    return found


def cases(base: dict[str, Any], both: bool = False, only_kinds: bool = False) -> list[dict[str, Any]]:
    """One recipe per value, without those that are refused for the very value.

    ``both`` adds planned executions, and the other objective where attention and outputs are not what a value changes;
    ``only_kinds`` leaves out values of knobs.
    """
    made: list[dict[str, Any]] = []
    for values in singles():
        if (not both and values.get("execution") in PLANNED) or (only_kinds and len(values) > 1):
            continue
        kinds = ("masked", "causal") if both or values.keys() & {"architecture", "execution"} else ("masked",)
        for objective in (values["objective"],) if "objective" in values else kinds:
            fields = fields_of(base, {"objective": objective, **values})
            paths = refused(fields)
            # Those that are refused say which of the chosen values it is for.
            assert all(path.split(".")[0] in {value.split(".")[0] for value in values} for path in paths), (
                values,
                paths,
            )
            if not paths:
                made.append(fields)
    return made


@pytest.mark.usefixtures("quick")
def test_every_kind_trains(base: dict[str, Any]) -> None:
    made = cases(base, only_kinds=True)
    assert len(made) > 25
    assert failures_of(made) == []


@pytest.mark.extended
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("both", [False, True])
def test_every_value_of_every_knob_trains(base: dict[str, Any], both: bool) -> None:
    made = cases(base, both)
    assert len(made) > 120
    assert failures_of(made) == []


@pytest.mark.extended
@pytest.mark.usefixtures("quick")
def test_every_value_of_every_knob_trains_compiled(base: dict[str, Any]) -> None:
    assert failures_of(cases({**base, "execution": {**base["execution"], "compile": True}}, both=True)) == []


def drawn(dice: random.Random, base: dict[str, Any]) -> dict[str, Any]:
    """A random recipe; values that it is refused for are given up one by one."""
    values: Values = {}
    for axis in AXES:
        kinds = [kind for kind in registry(axis) if kind not in ELSEWHERE]
        # Executions that plan have no knobs here: they are covered one by one.
        kind = values[axis] = "native" if axis == "execution" else dice.choice(kinds)
        for name, legal in knobs_of(registry(axis)[kind]).items():
            values[f"{axis}.{name}"] = dice.choice([value for value in legal if value not in ELSEWHERE])
    values["execution.compile"] = base["execution"]["compile"]
    while paths := set(refused(fields_of(base, values))):
        lost = [known for known in values if "." in known and any(path.startswith(known) for path in paths)]
        # Refused for what was not chosen, or for the kind: another kind, with all its values.
        lost = lost or [known for known in values if any(path.split(".")[0] == known.split(".")[0] for path in paths)]
        assert lost, (paths, values)
        values = {known: value for known, value in values.items() if known not in lost}
    return fields_of(base, values)


@pytest.mark.extended
@pytest.mark.usefixtures("quick")
def test_pairs_of_values_train(base: dict[str, Any]) -> None:
    dice = random.Random(0)
    failed = failures_of([drawn(dice, base) for _ in range(60)])
    assert not failed, "\n".join(failed)


@pytest.mark.extended
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seed", range(1, 6))
def test_more_pairs_of_values_train(base: dict[str, Any], seed: int) -> None:
    dice = random.Random(seed)
    failed = failures_of([drawn(dice, base) for _ in range(100)])
    assert not failed, "\n".join(failed)


def test_a_failing_value_is_found(base: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is not empty because nothing is tried."""

    def broken(self: Training) -> None:
        raise WorkbenchError("broken")

    monkeypatch.setattr(Training, "step", broken)
    (found,) = failures_of([fields_of(base, {"execution.attention": "plain"})])
    assert found.endswith("WorkbenchError: broken")
