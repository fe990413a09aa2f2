"""What every registered choice must keep: the registries decide what is tested, and nothing is left out by name."""

from __future__ import annotations

import ast
import copy
import doctest
import importlib
import inspect
import json
import pkgutil
import re
import types
import typing
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import workbench.choices
from workbench.choices.choice import MOVES, Choice, bounds_of, registry
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import STATES, Depth, LayerPlan
from workbench.choices.objectives.objective import Objective, TrainingModel
from workbench.choices.optimizers.optimizer import OptimizerChoice, parameter_groups
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules.schedule import Schedule
from workbench.recipe import AXES, Recipe

ALL_AXES = (*AXES, "schedule", "tokenizer")
KINDS = [(axis, kind) for axis in ALL_AXES for kind in registry(axis)]
HEADINGS = ["What it does", "The maths", "When to use", "When not", "Knobs", "Evidence here", "Sources"]
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
    """Whether a field may hold a number."""
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
def test_card_has_the_fixed_headings_and_names_every_knob(axis: str, kind: str) -> None:
    model = registry(axis)[kind]
    card = Path(inspect.getfile(model)).with_suffix(".md").read_text(encoding="utf-8")
    assert card.startswith("# ")
    assert re.findall(r"^## (.+)$", card, re.MULTILINE) == HEADINGS
    sections = dict(zip(HEADINGS, re.split(r"^## .+$", card, flags=re.MULTILINE)[1:], strict=True))
    assert all(len(text.split()) >= 4 for text in sections.values()), "no section is empty"
    own = model.model_fields.keys() - model.__mro__[1].model_fields.keys() - {"kind"}  # type: ignore[attr-defined]
    missing = [name for name in own if f"`{name}`" not in sections["Knobs"]]
    assert not missing, f"the card of {kind} does not speak of {missing}"


# --- optimizers -----------------------------------------------------------------------------------------------------


def optimizer_of(kind: str, parameters: list[nn.Parameter], **knobs: object) -> torch.optim.Optimizer:
    choice = registry("optimizer")[kind](**knobs)
    assert isinstance(choice, OptimizerChoice)
    module = nn.ParameterList(parameters)
    return choice.build(parameter_groups(module, 0.0), CPU)


def anneal(optimizer: torch.optim.Optimizer, left: float, peak: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = peak * left


@every_optimizer
def test_optimizer_reaches_the_minimum_of_a_quadratic(kind: str) -> None:
    """Condition number 100, peak rate .05 decayed to 0: within 1% of the start's height after 400 steps."""
    torch.manual_seed(0)
    scales, target = torch.logspace(-1, 1, 48).view(6, 8), torch.randn(6, 8)
    x = nn.Parameter(target + torch.randn(6, 8))

    def height() -> Tensor:
        return (scales * (x - target) ** 2).sum()

    start = height().item()
    optimizer = optimizer_of(kind, [x], lr=0.05)
    for step in range(400):
        anneal(optimizer, 1 - step / 400, 0.05)
        optimizer.zero_grad()
        height().backward()
        optimizer.step()
    assert height().item() < 0.01 * start


@every_optimizer
def test_optimizer_fits_a_small_regression(kind: str) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(256, 10)
    teacher, student = (nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1)) for _ in range(2))
    wanted = teacher(inputs).detach()
    optimizer = optimizer_of(kind, list(student.parameters()), lr=0.02)
    losses = []
    for step in range(300):
        anneal(optimizer, 1 - step / 300, 0.02)
        optimizer.zero_grad()
        loss = (student(inputs) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]


def some_parameters(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(5)
    return [nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in ([33, 17], [17], [1], [5, 3, 2])]


def take_steps(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter], steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
        optimizer.step()


@every_optimizer
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_optimizer_keeps_types_and_is_deterministic(kind: str, dtype: torch.dtype) -> None:
    ended = []
    for _ in range(2):
        parameters = some_parameters(dtype)
        take_steps(optimizer_of(kind, parameters), parameters, range(5))
        assert all(p.dtype == dtype and torch.isfinite(p).all() for p in parameters)
        ended.append(parameters)
    assert all(torch.equal(a, b) for a, b in zip(*ended, strict=True))


@every_optimizer
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_optimizer_resumes_bit_exactly(kind: str, dtype: torch.dtype) -> None:
    straight = some_parameters(dtype)
    optimizer = optimizer_of(kind, straight)
    take_steps(optimizer, straight, range(10))
    state = copy.deepcopy(optimizer.state_dict())
    resumed = [nn.Parameter(p.detach().clone()) for p in straight]
    again = optimizer_of(kind, resumed)
    again.load_state_dict(state)
    take_steps(optimizer, straight, range(10, 20))
    take_steps(again, resumed, range(10, 20))
    assert all(torch.equal(a, b) for a, b in zip(straight, resumed, strict=True))


@every_optimizer
def test_optimizer_leaves_what_has_no_gradient_alone(kind: str) -> None:
    parameters = some_parameters()
    optimizer = optimizer_of(kind, parameters)
    for parameter in parameters[1:]:
        parameter.grad = torch.ones_like(parameter)
    before = [p.detach().clone() for p in parameters]
    optimizer.step()
    assert torch.equal(parameters[0], before[0])
    assert parameters[0] not in optimizer.state, "no state is made for what was not touched"
    take_steps(optimizer, parameters, range(3))
    held = copy.deepcopy(optimizer.state[parameters[0]])
    at_rest = parameters[0].detach().clone()
    parameters[0].grad = None
    for parameter in parameters[1:]:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert torch.equal(parameters[0], at_rest)
    now = optimizer.state[parameters[0]]
    assert all(torch.equal(torch.as_tensor(held[name]), torch.as_tensor(now[name])) for name in held)


@every_optimizer
def test_optimizer_state_is_made_of_tensors(kind: str) -> None:
    """Checkpoints hold tensors and JSON, never pickle."""
    parameters = some_parameters()
    optimizer = optimizer_of(kind, parameters)
    take_steps(optimizer, parameters, range(1))
    for state in optimizer.state.values():
        assert all(isinstance(value, (Tensor, int, float)) for value in state.values())


# --- objectives -----------------------------------------------------------------------------------------------------


def some_batch(rows: int = 4, length: int = 16) -> Batch:
    tokens = torch.randint(5, 120, (rows, length), generator=torch.Generator().manual_seed(2))
    half = length // 2
    tokens[:, [0, half]], tokens[:, [half - 1, -1]] = 1, 2
    pieces = (torch.arange(length) // half).int().expand(rows, length)
    return Batch(tokens, (torch.arange(length) % half).expand(rows, length), pieces, torch.arange(rows) + 11)


def training_model(kind: str) -> TrainingModel:
    torch.manual_seed(0)
    recipe = Recipe(objective=kind, architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2})
    objective = recipe.objective
    assert isinstance(objective, Objective)
    backbone = recipe.architecture.build(VOCABULARY, 16, causal=objective.causal, attention="plain")
    return objective.build(backbone, recipe.architecture, VOCABULARY, seed=3)


class Watcher(nn.Module):
    """Stands around a backbone and keeps what it was shown and what came out."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone, self.shown = backbone, torch.empty(0)
        self.embedding, self.blocks = backbone.embedding, backbone.blocks

    def forward(self, tokens_BT: Tensor, *rest: object) -> Tensor:
        self.shown = tokens_BT.clone()
        return self.backbone(tokens_BT, *rest)


@every_objective
def test_objective_has_finite_gradients_everywhere(kind: str) -> None:
    model = training_model(kind)
    result = model(some_batch(), LayerPlan.full(2), progress(0))
    result.loss.backward()
    assert result.loss.ndim == 0
    assert result.loss.dtype == torch.float32
    assert isinstance(result.count, int)
    assert 0 < result.count <= 64
    assert all(not value.requires_grad and value.ndim == 0 for value in result.metrics.values())
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} gets no gradient"
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), f"the gradient of {name} is zero"


@every_objective
def test_objective_is_a_function_of_the_samples(kind: str) -> None:
    batch, plan = some_batch(), LayerPlan.full(2)
    first, second = (training_model(kind)(batch, plan, progress(4)).loss for _ in range(2))
    assert torch.equal(first, second)
    model = training_model(kind)
    total = model(batch, plan, progress(4))
    parts = [model(Batch(*(t[i : i + 1] for t in batch)), plan, progress(4)) for i in range(4)]
    assert sum(part.count for part in parts) == total.count
    assert torch.stack([part.loss for part in parts]).mean().item() == pytest.approx(total.loss.item(), rel=1e-4)


@every_objective
def test_objective_sees_no_token_it_must_predict(kind: str) -> None:
    """Changing a true token changes no state that a label on that very token is scored from.

    For every position whose token the loss depends on as a label, either the backbone was not shown that token, or
    the states before it (causal) stay as they were.
    """
    model = training_model(kind)
    watcher = Watcher(model.backbone)
    model.backbone = watcher  # type: ignore[assignment]
    batch, plan = some_batch(), LayerPlan.full(2)
    model(batch, plan, progress(0))
    shown = watcher.shown
    with torch.no_grad():
        states = watcher.backbone(shown, batch, plan)
        for t in range(16):
            changed = batch.tokens_BT.clone()
            ordinary = changed[:, t] >= 5
            changed[ordinary, t] = 5 + (changed[ordinary, t] - 5 + 7) % 115
            model(batch._replace(tokens_BT=changed), plan, progress(0))
            differs = watcher.shown != shown
            assert not differs[:, :t].any(), "a token leaks into what stands at other positions"
            assert not differs[:, t + 1 :].any()
            after = watcher.backbone(watcher.shown, batch, plan)
            hidden = ~differs[:, t] & ordinary
            torch.testing.assert_close(after[hidden], states[hidden], rtol=0, atol=1e-6)
            if type(model.choice).causal:
                torch.testing.assert_close(after[:, :t], states[:, :t], rtol=0, atol=1e-6)


@every_objective
def test_heldout_does_not_depend_on_seed_or_progress(kind: str) -> None:
    model, batch, plan = training_model(kind), some_batch(), LayerPlan.full(2)
    total, count = model.heldout(batch, plan)
    parts = [model.heldout(Batch(*(t[i : i + 1] for t in batch)), plan) for i in range(4)]
    assert sum(n for _, n in parts) == count
    assert float(sum(t for t, _ in parts)) == pytest.approx(total.item(), rel=1e-5)
    assert not total.requires_grad


@every_objective
def test_labelled_fraction_is_the_share_that_gets_a_label(kind: str) -> None:
    model = training_model(kind)
    count = model(some_batch(4, 16), LayerPlan.full(2), progress(0)).count
    assert count / 64 == pytest.approx(model.choice.labelled_fraction(progress(0)), abs=1 / 15)


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


@pytest.mark.parametrize("name", [*MODULES, "workbench.errors", "workbench.recipe"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    module = importlib.import_module(name)
    names = {**vars(module), "torch": torch}
    assert doctest.testmod(module, extraglobs=names).failed == 0


def test_no_test_here_makes_an_exception_by_name() -> None:
    """The registries decide: no optimizer, objective or depth method is named in this file."""
    methods = {kind for axis, kind in KINDS if axis in ("optimizer", "objective", "depth")}
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert not methods & words
