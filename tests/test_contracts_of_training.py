"""What every registered optimizer and objective must keep; nothing is left out by name."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.test_contracts import CPU, VOCABULARY, every_objective, every_optimizer, progress
from workbench.choices.choice import registry
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Builder, Objective, TrainingModel
from workbench.choices.objectives.preview import MARKS
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.ops.attention import Sight
from workbench.ops.parameter_groups import parameter_groups
from workbench.recipes.recipe import Recipe

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
    return objective.build(Builder(recipe.architecture, VOCABULARY, 16, 3, objective.causal))


@every_objective
def test_objective_has_finite_gradients_everywhere(kind: str) -> None:
    model = training_model(kind)
    result = model(some_batch(), LayerPlan.full(2), progress(0))
    counts = model.counts(some_batch(), progress(0))
    assert all(isinstance(count, int) and 0 < count <= 64 for count in counts.values())
    loss = result.over(counts, model.weights(progress(0)))
    loss.backward()
    assert loss.ndim == 0
    assert loss.dtype == torch.float32
    assert all(not value.requires_grad and value.ndim == 0 for value in result.metrics.values())
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} gets no gradient"
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), f"the gradient of {name} is zero"


@every_objective
def test_objective_is_a_function_of_the_samples(kind: str) -> None:
    batch, plan = some_batch(), LayerPlan.full(2)
    model = training_model(kind)
    counts = model.counts(batch, progress(4))
    first, second = (training_model(kind)(batch, plan, progress(4)).over(counts) for _ in range(2))
    assert torch.equal(first, second)
    rows = [Batch(*(t[i : i + 1] for t in batch)) for i in range(4)]
    assert {name: sum(model.counts(row, progress(4))[name] for row in rows) for name in counts} == counts
    shares = torch.stack([model(row, plan, progress(4)).over(counts) for row in rows])
    assert shares.sum().item() == pytest.approx(first.item(), rel=1e-4)


@every_objective
def test_objective_sees_no_token_it_must_predict(kind: str) -> None:
    """Changing a true token changes no state that a label on that very token is scored from.

    For every position whose token the loss depends on as a label, either the network that predicts tokens was not
    shown that token, or the states before it (causal) stay as they were.
    """
    model = training_model(kind)
    backbone = model.stacks()[model.predicts]
    calls: list[tuple[Any, ...]] = []
    backbone.register_forward_pre_hook(lambda module, args: calls.append(args))
    batch, plan = some_batch(), LayerPlan.full(2)
    model(batch, plan, progress(0))
    shown, wide, _, slots, sight = (*calls[-1], None, None)[:5]
    # Several columns may stand for one place, where the call says who sees whom.
    own = [sight] if isinstance(sight, Sight) else []
    at = (own[0].place_BT if own else torch.arange(16).expand(4, 16)).flatten()
    with torch.no_grad():
        states = backbone(shown, wide, plan, None, *own)
        for t in range(16):
            changed = batch.tokens_BT.clone()
            ordinary = changed[:, t] >= 5
            changed[ordinary, t] = 5 + (changed[ordinary, t] - 5 + 7) % 115
            model(batch._replace(tokens_BT=changed), plan, progress(0))
            now = calls[-1][0]
            differs = (now != shown).flatten()
            assert not differs[at != t].any(), "a token leaks into what stands at other positions"
            after = backbone(now, wide, plan, None, *own)
            asked = torch.arange(len(at)) if slots is None else slots
            hidden = asked[(at[asked] == t) & ~differs[asked] & ordinary[asked // now.shape[1]]]
            torch.testing.assert_close(after.flatten(0, 1)[hidden], states.flatten(0, 1)[hidden], rtol=0, atol=1e-6)
            if model.choice.causal:
                torch.testing.assert_close(after[:, :t], states[:, :t], rtol=0, atol=1e-6)


@every_objective
def test_labelled_fraction_is_the_share_that_gets_a_label(kind: str) -> None:
    model = training_model(kind)
    count = model.choice.labels_in(model.counts(some_batch(32, 16), progress(0)))
    assert count / 512 == pytest.approx(model.choice.labelled_fraction(progress(0)), abs=1 / 8)


@every_objective
def test_objective_shows_what_it_does_to_a_document(kind: str) -> None:
    model = registry("objective")[kind]
    tokens = [1, *range(5, 65), 2]
    shown = [model().previews(tokens, VOCABULARY, seed) for seed in (0, 0, 1)]  # type: ignore[attr-defined]
    assert shown[0] == shown[1], "a preview is drawn from its seed alone"
    for _, places in itertools.chain(*shown):
        assert {place.mark for place in places} <= MARKS.keys()
        assert any(place.mark != "read" for place in places)
        changed = [place for place, token in zip(places, tokens, strict=False) if place.token != token]
        assert not any(place.mark == "read" for place in changed), "what differs from the text is marked"
