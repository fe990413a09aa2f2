"""SOAP: its formula in float64, pytorch-optimizer's as oracle, the bases, what is no matrix."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_optimizer
import torch
from torch import Tensor, nn

from tests.choices.optimizers.steps import assert_equals, parameters, walk
from workbench.choices.optimizers.soap import Soap, SoapOptimizer

CPU = torch.device("cpu")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def slow_soap(x: Tensor, grads: list[Tensor], bases: list[Tensor], every: int, decay: float) -> list[Tensor]:
    """The formula of one matrix in float64 from given first bases, which are followed one eigenvector at a time."""
    b, lr, eps = 0.95, 0.01, 1e-8
    left = right = m = v = torch.zeros((), dtype=torch.float64)
    q_left, q_right = bases
    path = []
    for t, g in enumerate(grads):
        left, right = b * left + (1 - b) * g @ g.T, b * right + (1 - b) * g.T @ g
        if t > 0:
            m = b * m + (1 - b) * g
            v = b * v + (1 - b) * (q_left.T @ g @ q_right) ** 2
            direction = (q_left.T @ m @ q_right / (1 - b**t)) / ((v / (1 - b**t)).sqrt() + eps)
            x = x - lr * (q_left @ direction @ q_right.T + decay * x)
            if t % every == 0:
                for side, basis in (("left", q_left), ("right", q_right)):
                    turned = (left if side == "left" else right) @ basis
                    eigenvalues = torch.stack([basis[:, i] @ turned[:, i] for i in range(len(basis))])
                    order = eigenvalues.argsort(descending=True)
                    fresh = torch.linalg.qr(turned[:, order]).Q
                    if side == "left":
                        v, q_left = v[order], fresh
                    else:
                        v, q_right = v[:, order], fresh
        path.append(x)
    return path


# Which eigenvectors a library finds is not defined (signs, equal eigenvalues, directions that no gradient has shown),
# and the path depends on them. Hence paths are compared from one and the same first basis, and bases by what they are.


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_matrix_follows_the_formula(decay: float) -> None:
    weight = nn.Parameter(normal(9, 9))
    grads = [normal(9, 9, seed=step + 1) for step in range(9)]
    start = weight.detach().double()
    optimizer = SoapOptimizer([weight], lr=0.01, every=3, weight_decay=decay)
    path = []
    for step, grad in enumerate(grads):
        weight.grad = grad
        optimizer.step()
        path.append(weight.detach().double())
        if step == 0:
            bases = [optimizer.state[weight][f"{side}_basis"][0].double() for side in ("rows", "columns")]
    expected = slow_soap(start, [g.double() for g in grads], bases, every=3, decay=decay)
    torch.testing.assert_close(torch.stack(path), torch.stack(expected), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("shape", [(9, 9), (5, 12), (12, 5)])
@pytest.mark.parametrize("scale", [1.0, 1e-12])
def test_the_first_bases_are_eigenvectors_largest_first(shape: tuple[int, int], scale: float) -> None:
    weight = nn.Parameter(torch.zeros(shape))
    weight.grad = scale * normal(*shape)
    optimizer = SoapOptimizer([weight])
    optimizer.step()
    state, g = optimizer.state[weight], normal(*shape).double()
    for side, covariance in (("rows", g @ g.T), ("columns", g.T @ g)):
        basis = state[f"{side}_basis"][0].double()
        torch.testing.assert_close(basis.T @ basis, torch.eye(len(basis)).double(), rtol=0, atol=1e-5)
        eigenvalues = torch.linalg.eigvalsh(covariance).flip(0).clamp(min=0)
        expected = eigenvalues.diag()
        torch.testing.assert_close(basis.T @ covariance @ basis, expected, rtol=0, atol=1e-5 * float(eigenvalues[0]))


@pytest.mark.parametrize("longest", [10_000, 20, 1])
def test_equals_another_implementation(longest: int) -> None:
    # A basis is renewed after four gradients, and QR completes it at will where they leave a direction unseen: hence no
    # side with a basis is longer than four times the other.
    shapes = ((33, 17), (17, 33), (12, 12), (50, 30) if longest > 20 else (2, 50))
    held, others = parameters(shapes), parameters(shapes)
    theirs = pytorch_optimizer.SOAP(
        others, lr=0.01, weight_decay=0.0, precondition_frequency=3, max_precondition_dim=longest
    )
    ours = SoapOptimizer(held, lr=0.01, weight_decay=0.0, every=3, longest_side=longest)
    for optimizer, weights in ((ours, held), (theirs, others)):
        walk(optimizer, weights, range(1), skips=False)
    for mine, other in zip(held, others, strict=True):
        state = ours.state[mine]
        bases = [state[f"{side}_basis"][0] if side in state else [] for side in ("rows", "columns")]
        theirs.state[other]["Q"] = [basis.clone() if len(basis) else [] for basis in bases]
    for step in range(1, 8):
        for optimizer, weights in ((ours, held), (theirs, others)):
            walk(optimizer, weights, range(step, step + 1), skips=False)
        for mine, other in zip(held, others, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-3)


def test_other_roles_equal_torchs_adamw() -> None:
    held, others = parameters(), parameters()
    ours = SoapOptimizer([{"params": held, "role": "embedding"}], lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    other = torch.optim.AdamW(others, lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    assert_equals(ours, held, other, others)


def test_rotating_the_problem_rotates_the_path() -> None:
    """What a basis of its own is for: the same path whatever the coordinates, unlike Adam's."""
    turn, back = torch.linalg.qr(normal(8, 8)).Q, torch.linalg.qr(normal(8, 8, seed=1)).Q
    straight, turned = nn.Parameter(normal(8, 8, seed=2)), nn.Parameter(turn @ normal(8, 8, seed=2) @ back.T)
    optimizers = [SoapOptimizer([weight], lr=0.01, every=2) for weight in (straight, turned)]
    for step in range(6):
        straight.grad = normal(8, 8, seed=step + 3)
        turned.grad = turn @ straight.grad @ back.T
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(turn @ straight.detach() @ back.T, turned.detach(), rtol=1e-3, atol=5e-4)


@pytest.mark.parametrize("transposed", [False, True])
def test_stacked_matrices_move_as_if_they_were_stored_apart(transposed: bool) -> None:
    whole = normal(18, 6).t().contiguous() if transposed else normal(18, 6)
    one = nn.Parameter(whole.clone())
    parts = [nn.Parameter(part.clone()) for part in (whole.t() if transposed else whole).chunk(3)]
    stacked = SoapOptimizer([{"params": [one], "parts": 3, "transposed": transposed}], lr=0.1, every=2)
    apart = SoapOptimizer(parts, lr=0.1, every=2)
    for step in range(5):
        gradient = normal(18, 6, seed=step + 9)
        one.grad = gradient.t().contiguous() if transposed else gradient
        for part, piece in zip(parts, gradient.chunk(3), strict=True):
            part.grad = piece.clone()
        stacked.step()
        apart.step()
    assert stacked.state[one]["rows"].shape == (3, 6, 6)
    together = torch.cat([part.detach() for part in parts])
    torch.testing.assert_close(one.detach().t() if transposed else one.detach(), together, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dead", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-10])
def test_zero_columns_leave_bases_orthonormal_and_steps_finite(dead: float, scale: float) -> None:
    """Dead units of a ReLU: float32 eigh fails on such covariances, or returns NaN, unless they are conditioned."""
    weight = nn.Parameter(normal(32, 128))
    alive = torch.rand(128, generator=torch.Generator().manual_seed(5)) > dead
    # Rows of very different sizes, as late layers have them.
    sizes = scale * (3 * normal(32, 1, seed=9)).exp()
    optimizer = SoapOptimizer([weight], every=1)
    for step in range(4):
        weight.grad = sizes * normal(32, 128, seed=step) * alive
        optimizer.step()
        for side, length in (("rows", 32), ("columns", 128)):
            basis = optimizer.state[weight][f"{side}_basis"][0]
            torch.testing.assert_close(basis.T @ basis, torch.eye(length), rtol=0, atol=1e-4)
    assert torch.isfinite(weight).all()


@pytest.mark.parametrize("failure", ["raises", "nan"])
def test_eigenvectors_that_a_library_cannot_find_are_sought_in_float64_then_done_without(
    failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, legal = torch.linalg.eigh, {torch.float64}

    def fails(matrix: Tensor) -> Any:
        if matrix.dtype in legal:
            return real(matrix)
        if failure == "raises":
            raise torch.linalg.LinAlgError("did not converge")
        return torch.return_types.linalg_eigh((matrix[..., 0], torch.full_like(matrix, torch.nan)))

    monkeypatch.setattr(torch.linalg, "eigh", fails)

    def first_basis() -> Tensor:
        weight = nn.Parameter(torch.zeros(6, 6))
        weight.grad = normal(6, 6)
        optimizer = SoapOptimizer([weight])
        optimizer.step()
        basis: Tensor = optimizer.state[weight]["rows_basis"][0]
        return basis

    basis, covariance = first_basis(), normal(6, 6) @ normal(6, 6).T
    diagonal = basis.T @ covariance @ basis
    assert (diagonal - diagonal.diag().diag()).norm() < 1e-4 * diagonal.norm()
    legal.clear()
    assert torch.equal(first_basis(), torch.eye(6))


def test_the_choice_passes_its_knobs_on() -> None:
    choice = Soap(lr=0.5, beta1=0.7, beta2=0.8, eps=1e-5, basis_every=3, longest_side=50)
    group = choice.build([{"params": [nn.Parameter(torch.ones(2, 2))]}], CPU).param_groups[0]
    asked = {"lr": 0.5, "betas": (0.7, 0.8), "eps": 1e-5, "every": 3, "longest_side": 50}
    assert {name: group[name] for name in asked} == asked


def test_vectors_among_the_matrices_and_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match=r"matrices only, got shape \(3,\).*parameter_groups"):
        SoapOptimizer([nn.Parameter(torch.ones(3))])
    with pytest.raises(ValueError, match="SoapOptimizer: every must be >= 1, got 0"):
        SoapOptimizer([nn.Parameter(torch.ones(3, 3))], every=0)
