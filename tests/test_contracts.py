"""What every registered choice must keep: the registries decide what is tested, and nothing is left out by name."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import itertools
import json
import pkgutil
import types
import typing
from pathlib import Path

import pytest
import torch
from markdown_it import MarkdownIt

import workbench.choices
from workbench.base.errors import DataError
from workbench.choices.choice import Choice, card_problems, registry
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.depth.plan import ORIGINS, STATES, Depth
from workbench.choices.execution import Engine
from workbench.choices.knob import MOVES, bounds_of
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules.schedule import Schedule
from workbench.ops.attention import ATTENTION
from workbench.recipes.recipe import AXES, Recipe

ALL_AXES = (*AXES, "schedule", "tokenizer", "batch_rule", "step", "order", "parallel", "combine", "notes")
KINDS = [(axis, kind) for axis in ALL_AXES for kind in registry(axis)]
CPU = torch.device("cpu")
VOCABULARY = Vocabulary(size=128, used=120, cls=1, sep=2, mask=3, pad=0, unk=4)
ROOT = Path(workbench.choices.__file__).parents[2]

every_choice = pytest.mark.parametrize(("axis", "kind"), KINDS)
every_optimizer = pytest.mark.parametrize("kind", registry("optimizer"))
every_objective = pytest.mark.parametrize("kind", registry("objective"))
every_depth = pytest.mark.parametrize("kind", registry("depth"))
every_schedule = pytest.mark.parametrize("kind", registry("schedule"))


def progress(step: int, steps: int = 100) -> Progress:
    return Progress(step, step * 512, float(step), Budget(amount=steps))


# --- every choice ---------------------------------------------------------------------------------------------------


def defaults(axis: str, kind: str) -> Choice:
    """The choice with as little said as it allows: required knobs get an example of their type."""
    model = registry(axis)[kind]
    required = {name: field.annotation for name, field in model.model_fields.items() if field.is_required()}
    return model(
        **{name: ("example",) if typing.get_origin(kind) is tuple else "example" for name, kind in required.items()}
    )


def test_registries_are_not_empty() -> None:
    assert all(registry(axis) for axis in ALL_AXES)


@every_choice
def test_kind_is_the_files_name_and_twins_exist(axis: str, kind: str) -> None:
    path = Path(inspect.getfile(registry(axis)[kind]))
    twin = ROOT / "tests" / path.relative_to(ROOT / "workbench").with_name(f"test_{path.stem}.py")
    assert path.stem == kind
    assert path.with_suffix(".md").exists(), f"{kind} has no card"
    assert twin.exists(), f"{kind} has no test of its own: {twin.relative_to(ROOT)}"


@every_choice
def test_docstring_begins_with_a_summary(axis: str, kind: str) -> None:
    model = registry(axis)[kind]
    assert "__doc__" in vars(model), f"{model.__name__} has no docstring of its own"
    summary = model.summary()
    assert summary.endswith("."), summary
    assert 15 <= len(summary) <= 120, "a drop-down shows it on one line"


@every_choice
def test_every_knob_is_explained_and_typed(axis: str, kind: str) -> None:
    model = registry(axis)[kind]
    for name, field in model.model_fields.items():
        if name == "kind":
            assert field.default == kind
            continue
        assert field.description, f"{axis}.{name} of {kind} has no help"
        assert len(field.description) <= 140, f"help of {name} is one line"
        assert isinstance(field.json_schema_extra, dict), f"{name} is declared with knob(...)"
        assert {"unit", "scale"} <= field.json_schema_extra.keys()
        assert field.json_schema_extra["scale"] in ("linear", "log")


def numeric(annotation: object) -> bool:
    """Return True if a field may hold a number."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(numeric(part) for part in typing.get_args(annotation))
    return annotation in (int, float)


@every_choice
def test_every_number_of_a_method_is_bounded(axis: str, kind: str) -> None:
    if axis == "schedule":
        return  # a shape serves knobs of any range: the knob that takes it has the bounds
    model = registry(axis)[kind]
    for name, field in model.model_fields.items():
        if MOVES in field.metadata:
            assert bounds_of(field), f"{axis}.{name} of {kind} has no bounds"
        elif numeric(field.annotation):
            assert any(hasattr(rule, bound) for rule in field.metadata for bound in ("gt", "ge")), f"{axis}.{name}"


@every_choice
def test_json_schema_and_round_trip(axis: str, kind: str) -> None:
    choice = defaults(axis, kind)
    text = json.dumps(choice.model_dump(mode="json"), allow_nan=False)
    assert type(choice).model_validate(json.loads(text)) == choice
    schema = type(choice).model_json_schema()
    assert schema["properties"].keys() == choice.model_dump().keys()
    json.dumps(schema)


@pytest.mark.parametrize(("axis", "kind"), [(axis, kind) for axis, kind in KINDS if axis in AXES])
def test_recipe_round_trip(axis: str, kind: str) -> None:
    recipe = Recipe(**{axis: defaults(axis, kind)})
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert again.hash == recipe.hash
    assert type(getattr(again, axis)) is registry(axis)[kind]


@every_choice
def test_choices_are_frozen_and_closed(axis: str, kind: str) -> None:
    choice = defaults(axis, kind)
    with pytest.raises(ValueError, match="frozen"):
        choice.kind = "other"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="legal: "):
        type(choice)(**{**choice.model_dump(), "no_such_knob": 1})


@every_choice
def test_formulas_of_a_card_stand_in_lines_of_their_own(axis: str, kind: str) -> None:
    """A line of maths that is not indented takes the ones below it into one paragraph, which nobody can read."""
    text = Path(inspect.getfile(registry(axis)[kind])).with_suffix(".md").read_text(encoding="utf-8")
    lines = text.splitlines()
    for token in MarkdownIt().parse(text):
        if token.type == "paragraph_open" and token.level == 0 and token.map:
            first, end = token.map
            assert not any(line.startswith("    ") for line in lines[first:end]), lines[first]


@every_choice
def test_card_has_the_fixed_headings_and_names_every_knob(axis: str, kind: str) -> None:
    assert card_problems(registry(axis)[kind]) == []


# --- depth ----------------------------------------------------------------------------------------------------------


@every_depth
@pytest.mark.parametrize("layers", [3, 12])
def test_depth_plans_are_pure_and_whole(kind: str, layers: int) -> None:
    model = registry("depth")[kind]
    for step in (0, 1, 50, 99):
        for micro in (0, 1):
            # Two objects, two generators: what two ranks, or a resumed run, would compute.
            one, other = (model().plan(layers, progress(step), 17, micro) for _ in range(2))  # type: ignore[attr-defined]
            assert one == other
            assert one.total == layers
            assert 1 <= one.layers <= layers
            assert all(0 < keep <= 1 for keep in one.keep)
            assert all(scale >= 1 for scale in one.scale)
            assert all(0 <= state < len(STATES) for state in one.states)
            assert len(one.states) == layers


@every_depth
def test_depth_does_not_touch_global_random_state(kind: str) -> None:
    choice = registry("depth")[kind]()
    assert isinstance(choice, Depth)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    choice.plan(6, progress(5), 0)
    assert torch.equal(torch.rand(3), expected)


@every_depth
@pytest.mark.parametrize("layers", [4, 12])
def test_depth_stages_fit_their_plans(kind: str, layers: int) -> None:
    choice = registry("depth")[kind]()
    assert isinstance(choice, Depth)
    starts = choice.starts()
    assert starts[0] == 0
    assert all(before < start < 1 for before, start in itertools.pairwise(starts))
    stages = [choice.stage(layers, progress(step, 1000)) for step in range(1000)]
    assert sorted(set(stages)) == list(range(len(starts))), "every stage is met, in order"
    assert stages == sorted(stages)
    for step, stage in enumerate(stages):
        plan = choice.plan(layers, progress(step, 1000), 0)
        assert plan.layers == choice.layers_at(layers, stage)
        assert set(plan.origin) <= set(ORIGINS)
        assert 0 <= choice.rate_factor(layers, progress(step, 1000)) <= 1
    for stage in range(1, len(starts)):
        change, before = choice.transition(layers, stage), choice.layers_at(layers, stage - 1)
        assert change.first == before
        assert before + len(change.sources) == choice.layers_at(layers, stage)
        assert all(source is None or source < before for source in change.sources)
    assert choice.layers_at(layers, len(starts) - 1) == layers, "the last stage has the finished model"


# --- execution ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", registry("execution"))
def test_making_an_engine_is_light_and_says_what_it_is(kind: str) -> None:
    recipe, threads = Recipe(execution={"kind": kind, "device": "cpu", "threads": 1}), torch.get_num_threads()
    engine = recipe.engine()
    assert isinstance(engine, Engine)
    assert (engine.mode.device, engine.mode.threads, engine.device) == ("cpu", 1, CPU)
    assert engine.dtype.is_floating_point
    assert set(engine.attentions) <= set(ATTENTION)
    assert engine.rows == recipe.data.batch_size
    engine.restore(json.loads(json.dumps(engine.state())))
    assert torch.get_num_threads() == threads, "only start() takes over a process"


# --- schedules ------------------------------------------------------------------------------------------------------


@every_schedule
def test_schedule_is_finite_within_its_extremes(kind: str) -> None:
    shape = registry("schedule")[kind]()
    assert isinstance(shape, Schedule)
    low, high = shape.extremes()
    for step in range(0, 301, 3):
        value = shape.at(progress(step))
        assert low - 1e-12 <= value <= high + 1e-12


# --- documentation --------------------------------------------------------------------------------------------------

MODULES = sorted(m.name for m in pkgutil.walk_packages(workbench.choices.__path__, "workbench.choices."))


@pytest.mark.parametrize("name", [*MODULES, "workbench.base.errors", "workbench.recipes.recipe"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except DataError as error:
        if "pip install 'workbench[" not in str(error):
            raise
        pytest.skip(str(error))
    names = {**vars(module), "torch": torch}
    assert doctest.testmod(module, extraglobs=names).failed == 0


@pytest.mark.parametrize("name", ["test_contracts.py", "test_contracts_of_training.py"])
def test_no_test_here_makes_an_exception_by_name(name: str) -> None:
    """The registries decide: no optimizer, objective or depth method is named in these files."""
    methods = {kind for axis, kind in KINDS if axis in ("optimizer", "objective", "depth")}
    tree = ast.parse(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert not methods & words
