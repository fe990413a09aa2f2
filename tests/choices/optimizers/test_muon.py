"""Muon: orthogonality, torch's Muon and AdamW as oracles, what is a matrix and what is not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.choices.optimizers.steps import assert_equals, parameters, walk
from workbench.choices.optimizers.muon import Muon, MuonOptimizer, orthogonalise
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules import Linear
from workbench.ops.parameter_groups import parameter_groups

CPU = torch.device("cpu")
MATRICES = ((64, 64), (33, 17), (17, 33), (129, 40), (8, 300), (2, 2), (33, 17))


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(256, 64), (64, 256), (33, 17), (17, 33), (5, 129), (3, 40, 20), (3, 20, 40)])
def test_singular_values_end_near_one(shape: tuple[int, ...], precision: torch.dtype) -> None:
    found = torch.linalg.svdvals(orthogonalise(100 * normal(*shape), precision=precision).float())
    assert found.min() > 0.65
    assert found.max() < 1.2


def test_singular_vectors_stay() -> None:
    x = normal(12, 30)
    u, _, v = torch.linalg.svd(x, full_matrices=False)
    # In the basis of the singular vectors the result is diagonal, and positive: no direction is turned around.
    rotated = u.mT @ orthogonalise(x, precision=torch.float32) @ v.mT
    assert (rotated.diagonal() > 0.6).all()
    torch.testing.assert_close(rotated, rotated.diagonal().diag(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_scale_does_not_matter_and_zero_stays_zero(size: float) -> None:
    x = normal(9, 5)
    torch.testing.assert_close(
        orthogonalise((size**0.5 * x).double(), precision=torch.float32), orthogonalise(x, precision=torch.float32),
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip
    assert not orthogonalise(torch.zeros(4, 3)).any()


@pytest.mark.parametrize(("scaling", "theirs"), [("spectral", "original"), ("match_rms_adamw", "match_rms_adamw")])
@pytest.mark.parametrize("nesterov", [True, False])
def test_equals_torch_on_matrices(scaling: str, theirs: str, nesterov: bool) -> None:
    held, others = parameters(MATRICES), parameters(MATRICES)
    ours = MuonOptimizer(held, lr=0.02, scaling=scaling, nesterov=nesterov, weight_decay=0.1, precision=torch.bfloat16)
    other = torch.optim.Muon(others, lr=0.02, weight_decay=0.1, nesterov=nesterov, adjust_lr_fn=theirs)
    # bf16 products in another order: 3% of the way that seven steps of .02 go.
    assert_equals(ours, held, other, others, rtol=1e-3, atol=0.03 * 7 * 0.02)


def test_other_roles_equal_torchs_adamw() -> None:
    held, others = parameters(), parameters()
    groups = [{"params": held[:2], "role": "vector", "weight_decay": 0.0}, {"params": held[2:], "role": "embedding"}]
    ours = MuonOptimizer(groups, adamw_lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    other = torch.optim.AdamW(
        [{"params": others[:2], "weight_decay": 0.0}, {"params": others[2:]}],
        lr=0.01, betas=(0.9, 0.95), weight_decay=0.1,
    )  # fmt: skip
    assert_equals(ours, held, other, others)


@pytest.mark.parametrize("transposed", [False, True])
def test_stacked_matrices_move_as_if_they_were_stored_apart(transposed: bool) -> None:
    """Queries, keys and values in one weight, as our blocks and GPT-2 store them."""
    whole = normal(18, 6).t().contiguous() if transposed else normal(18, 6)
    one = nn.Parameter(whole.clone())
    parts = [nn.Parameter(part.clone()) for part in (whole.t() if transposed else whole).chunk(3)]
    stacked = MuonOptimizer([{"params": [one], "parts": 3, "transposed": transposed}], lr=0.1)
    apart = MuonOptimizer(parts, lr=0.1)
    for step in range(3):
        gradient = normal(18, 6, seed=step + 9)
        one.grad = gradient.t().contiguous() if transposed else gradient
        for part, piece in zip(parts, gradient.chunk(3), strict=True):
            part.grad = piece.clone()
        stacked.step()
        apart.step()
    together = torch.cat([part.detach() for part in parts])
    torch.testing.assert_close(one.detach().t() if transposed else one.detach(), together, rtol=1e-4, atol=1e-5)


def test_both_rates_follow_the_schedule_and_a_turned_rate_leaves_adamws_alone() -> None:
    model = nn.ModuleList([nn.Linear(4, 4), nn.Embedding(5, 4)])
    choice = Muon(lr=0.04, adamw_lr=0.002, schedule=Linear(start=1.0, end=0.0))
    optimizer = choice.build(parameter_groups(model, 0.0), CPU)
    rates = {group["role"]: group["lr"] for group in optimizer.param_groups}
    assert rates == {"matrix": 0.04, "embedding": 0.002, "vector": 0.002}
    half = Progress(50, 0, 0.0, Budget(amount=100))
    assert choice.apply(optimizer, half, choice.lr_at(half))["lr"] == pytest.approx(0.02)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.02, 0.001, 0.001])
    choice.model_copy(update={"lr": 0.08}).apply(optimizer, half, 0.04)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.04, 0.001, 0.001])


def test_state_is_one_buffer_per_matrix() -> None:
    weight = nn.Parameter(normal(8, 4).bfloat16())
    optimizer = MuonOptimizer([weight])
    walk(optimizer, [weight], range(1), skips=False)
    state = optimizer.state[weight]
    assert state.keys() == {"momentum_buffer"}
    assert state["momentum_buffer"].dtype == torch.float32


def test_vectors_among_the_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match=r"matrices only, got shape \(3,\).*parameter_groups"):
        MuonOptimizer([nn.Parameter(torch.ones(3))])


@pytest.mark.parametrize(
    ("setting", "value"), [("lr", -1.0), ("momentum", 1.0), ("steps", 0), ("scaling", "none"), ("adamw_lr", -1.0)]
)
def test_settings_out_of_range_are_refused(setting: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"MuonOptimizer: {setting} must be .* got"):
        MuonOptimizer([nn.Parameter(torch.ones(2, 2))], **{setting: value})  # type: ignore[arg-type]
