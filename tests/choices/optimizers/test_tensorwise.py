"""What every optimizer on `TensorwiseOptimizer` has: steps per tensor, float32 state, one way for any layout."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from tests.choices.optimizers.steps import parameters, walk
from workbench.choices.choice import registry
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.optimizers.tensorwise import BLOCK, TensorwiseOptimizer, pieces
from workbench.ops.parameter_groups import parameter_groups

CPU = torch.device("cpu")
SHAPES = ((33, 17), (17,), (5, 3, 2), (60, 600))


def built(kind: str, held: list[nn.Parameter]) -> torch.optim.Optimizer:
    choice = registry("optimizer")[kind]()
    assert isinstance(choice, OptimizerChoice)
    return choice.build(parameter_groups(nn.ParameterList(held), 0.1), CPU)


KINDS = [kind for kind in registry("optimizer") if isinstance(built(kind, parameters()), TensorwiseOptimizer)]
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_state_is_float32_through_a_checkpoint_of_half_precision_weights(kind: str) -> None:
    held = parameters(SHAPES, torch.bfloat16)
    optimizer = built(kind, held)
    walk(optimizer, held, range(3))
    resumed = [nn.Parameter(parameter.detach().clone()) for parameter in held]
    again = built(kind, resumed)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    walk(optimizer, held, range(3, 6))
    walk(again, resumed, range(3, 6))
    for one, other in zip(held, resumed, strict=True):
        assert torch.equal(one, other)
        for name, value in optimizer.state[one].items():
            assert value.dtype == torch.float32
            assert torch.equal(value, again.state[other][name])


@every_kind
def test_a_tensor_that_comes_late_begins_like_any_other(kind: str) -> None:
    """A grown layer: its first steps are those of a first step, whatever the others have behind them."""
    for shape in ((7, 7), (40,)):
        early, late, twin = (
            nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(1))) for _ in "abc"
        )
        both, alone = built(kind, [early, late]), built(kind, [twin])
        for step in range(8):
            gradient = torch.randn(shape, generator=torch.Generator().manual_seed(step))
            early.grad = gradient.clone()
            if step >= 5:
                late.grad, twin.grad = gradient.clone(), gradient.clone()
                alone.step()
            both.step()
        torch.testing.assert_close(late, twin, rtol=1e-6, atol=1e-7)


@every_kind
def test_the_layout_of_a_weight_does_not_matter(kind: str) -> None:
    straight = nn.Parameter(torch.randn(9, 4, generator=torch.Generator().manual_seed(2)))
    turned = nn.Parameter(straight.detach().t().contiguous().t())
    assert not turned.is_contiguous()
    optimizers = built(kind, [straight]), built(kind, [turned])
    for step in range(3):
        gradient = torch.randn(9, 4, generator=torch.Generator().manual_seed(step))
        straight.grad, turned.grad = gradient.clone(), gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
    assert torch.equal(straight, turned)


@every_kind
def test_a_tensor_learning_rate_and_a_closure_work(kind: str) -> None:
    ends = []
    for as_tensor in (False, True):
        # Square: in the null space of a wide gradient, methods with bases of their own walk at random.
        held = parameters(((12, 12), (17,)))[:2]
        optimizer = built(kind, held)
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(0.01) if as_tensor else 0.01

        def closure(held: list[nn.Parameter] = held, optimizer: torch.optim.Optimizer = optimizer) -> Tensor:
            optimizer.zero_grad()
            loss = torch.stack([parameter.square().sum() for parameter in held]).sum()
            loss.backward()
            return loss

        losses = [optimizer.step(closure) for _ in range(4)]
        assert losses[-1] < losses[0]
        ends.append(held)
    for one, other in zip(*ends, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@every_kind
def test_sparse_gradients_are_refused_not_ignored(kind: str) -> None:
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse"):
        built(kind, list(table.parameters())).step()


@every_kind
@pytest.mark.parametrize(("setting", "value"), [("lr", -1.0), ("weight_decay", -0.1)])
def test_settings_out_of_range_are_refused(kind: str, setting: str, value: float) -> None:
    model = type(built(kind, parameters()))
    with pytest.raises(ValueError, match=f"{model.__name__}: {setting} must be >= 0, got {value}"):
        model([nn.Parameter(torch.ones(2, 2))], **{"lr": 0.1, setting: value})


@every_kind
def test_everything_at_once_is_the_same_as_piece_by_piece(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut for accelerators, tried on a CPU."""
    by_piece = parameters(SHAPES)
    walk(built(kind, by_piece), by_piece, range(4))
    at_once = parameters(SHAPES)
    optimizer = built(kind, at_once)
    module = __import__(type(optimizer).__module__, fromlist=["pieces"])
    if hasattr(module, "pieces"):
        monkeypatch.setattr(module, "pieces", lambda *columns: [columns])
    walk(optimizer, at_once, range(4))
    for one, other in zip(by_piece, at_once, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_pieces_cover_everything_once_and_reach_the_originals() -> None:
    ones = [torch.ones(3, 5), torch.ones(BLOCK + 1), torch.ones(())]
    twos = [torch.full_like(tensor, 2.0) for tensor in ones]
    sizes = []
    for (one,), (two,) in pieces(ones, twos):
        assert one.shape == two.shape
        sizes.append(one.numel())
        one.add_(two)
    assert sizes == [15, BLOCK, 1, 1]
    assert all((tensor == 3).all() for tensor in ones)
