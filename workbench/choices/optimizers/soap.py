"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner, for hidden matrices; AdamW for the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.optimizers.tensorwise import Group, MatrixOptimizer, States, Tensors, no_steps, zeros

# Shape legend: P matrices stacked in one weight, R rows, C columns, S either of the two.

RIDGE = torch.finfo(torch.float32).eps
"""Added to the diagonal of a covariance, as a share of its trace, before its eigenvectors are taken. Dead units give
covariances with zero rows: of 180 such matrices float32 ``eigh`` failed on 33 and returned NaN for 9, with the ridge
for none. The ridge also holds directions that no gradient has shown where they were, instead of rounding deciding."""


class SoapOptimizer(MatrixOptimizer):
    r"""SOAP with its AdamW in one object; a plain optimizer, usable without the rest of the workbench.

    For every matrix W (R, C) with gradient G of a group with role ``matrix``, step t counted per tensor:

        L = b2 L + (1 - b2) G G^T;  K = b2 K + (1 - b2) G^T G;  Q_L, Q_K: their eigenvectors
        M = b1 M + (1 - b1) G;  V = b2 V + (1 - b2) (Q_L^T G Q_K)^2
        W <- W - lr (Q_L [(Q_L^T Mhat Q_K) / (sqrt(Vhat) + eps)] Q_K^T + wd W)

    Mhat and Vhat are corrected for their bias as Adam's. The first gradient of a tensor only sets the bases, so that
    none is judged in a basis made of itself alone; after every ``every`` steps the bases follow by one step of power
    iteration and a QR decomposition. Both see L / tr L + :data:`RIDGE` I, and K likewise. A side longer than
    ``longest_side`` keeps the identity for its basis.

    Args:
        params: parameter groups. ``role`` (as ``parameter_groups`` sets it) decides: ``matrix``, the default, must hold
            matrices only, of which ``parts`` may be stacked along the outputs and then have bases of their own,
            ``transposed`` says that the columns are the outputs; tensors with another role take AdamW's step.
        lr: learning rate, >= 0.
        betas: decay rates b1, b2, in [0, 1).
        eps: added to the denominator, > 0.
        every: steps between two updates of the bases, at least 1.
        longest_side: rows or columns beyond which that side has no basis, at least 1.
        weight_decay: wd, >= 0.

    State per matrix: ``step`` (0-d), ``exp_avg`` and ``exp_avg_sq`` (the parameter's shape, the latter in the basis),
    ``rows``, ``columns`` (P, S, S) and ``rows_basis``, ``columns_basis`` (P, S, S) of the sides that have one; per
    other tensor AdamW's; all float32.

    Raises:
        ValueError: a setting out of its range, or a tensor without rows and columns among the matrices.

    Source: Vyas et al. 2024 (arXiv 2409.11321), algorithm 3. pytorch-optimizer's SOAP is the oracle of the tests; it is
    not used, because it counts steps per group (a layer that appears later would never set its bases first) and keeps
    lists in its state, which a checkpoint without pickle cannot hold.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 3e-3,
        betas: tuple[float, float] = (0.95, 0.95),
        eps: float = 1e-8,
        every: int = 10,
        longest_side: int = 10_000,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "every": every, "longest_side": longest_side,
            "weight_decay": weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start_matrix(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return moments in the parameter's shape, preconditioners and bases (P, S, S), all zero."""
        state = {"step": no_steps(), "exp_avg": zeros(parameter), "exp_avg_sq": zeros(parameter)}
        parts, rows, columns = _stacked(state["exp_avg"], group).shape
        for name, side in (("rows", rows), ("columns", columns)):
            if side <= group["longest_side"]:
                for key in (name, f"{name}_basis"):
                    state[key] = torch.zeros(parts, side, side, dtype=torch.float32, device=parameter.device)
        return state

    def update_matrices(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """One step of float32 matrices, (R, C), in place."""
        for weight, grad, state in zip(weights, grads, states, strict=True):
            _step_matrix(weight, grad, state, group)


def _stacked(matrix: Tensor, group: dict[str, Any]) -> Tensor:
    """Return (outputs, inputs), or its transpose, -> a view (P, R, C)."""
    rows_first = matrix.mT if group["transposed"] else matrix
    return rows_first.unflatten(0, (group["parts"], -1))


def _step_matrix(weight: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    """The formula for one weight, (R, C) or P of them stacked; the last line follows the bases."""
    (beta1, beta2), decay, lr = group["betas"], group["weight_decay"], group["lr"]
    state["step"] += 1
    # The step that only sets the bases does not count.
    step = int(state["step"].item()) - 1
    g = _stacked(grad, group)
    _accumulate(g, state, beta2)
    if step == 0:
        for name in ("rows", "columns"):
            if name in state:
                state[f"{name}_basis"].copy_(_eigenvectors(state[name]))
        return
    m, v = _stacked(state["exp_avg"], group), _stacked(state["exp_avg_sq"], group)
    m.lerp_(g, 1 - beta1)
    v.lerp_(_rotate(g, state).square(), 1 - beta2)
    denominator = (v / (1 - beta2**step)).sqrt_().add_(group["eps"])
    update = _rotate(_rotate(m, state).div_(denominator), state, back=True).div_(1 - beta1**step)
    if decay:
        weight.mul_(1 - lr * decay)
    _stacked(weight, group).sub_(update.mul_(lr))
    if step % group["every"] == 0:
        _follow(v, state)


def _accumulate(g_PRC: Tensor, state: dict[str, Any], beta2: float) -> None:
    """Let the preconditioners (P, S, S) decay towards G G^T and G^T G."""
    if "rows" in state:
        state["rows"].lerp_(g_PRC @ g_PRC.mT, 1 - beta2)
    if "columns" in state:
        state["columns"].lerp_(g_PRC.mT @ g_PRC, 1 - beta2)


def _conditioned(matrix_PSS: Tensor) -> Tensor:
    """Return M / tr M + RIDGE I, (P, S, S): the same eigenvectors; the identity's share alone where M is zero."""
    trace_P = matrix_PSS.diagonal(dim1=-2, dim2=-1).sum(-1)
    scaled = matrix_PSS / torch.where(trace_P > 0, trace_P, 1.0)[:, None, None]
    scaled.diagonal(dim1=-2, dim2=-1).add_(RIDGE)
    return scaled


def _eigenvectors(matrix_PSS: Tensor) -> Tensor:
    """Return orthonormal eigenvectors as columns, (P, S, S), largest eigenvalue first;
    the identity where none are found.
    """
    conditioned = _conditioned(matrix_PSS)
    # Then in float64 on the CPU, which every machine has: libraries differ in what they fail on.
    for attempt in (conditioned, conditioned.double().cpu()):
        try:
            vectors = torch.linalg.eigh(attempt).eigenvectors
        except torch.linalg.LinAlgError:
            continue
        if vectors.isfinite().all():
            return vectors.flip(-1).to(matrix_PSS)
    # Adam's own basis; `_follow` turns it towards the eigenvectors.
    return torch.eye(matrix_PSS.shape[-1]).to(matrix_PSS).expand_as(matrix_PSS)


def _rotate(x_PRC: Tensor, state: dict[str, Any], back: bool = False) -> Tensor:
    """Return Q_L^T X Q_K, or ``back``: Q_L X Q_K^T, (P, R, C); a new tensor also where neither side has a basis."""
    result = x_PRC
    if "rows_basis" in state:
        basis = state["rows_basis"]
        result = (basis if back else basis.mT) @ result
    if "columns_basis" in state:
        basis = state["columns_basis"]
        result = result @ (basis.mT if back else basis)
    return result.clone() if result is x_PRC else result


def _follow(v_PRC: Tensor, state: dict[str, Any]) -> None:
    """One step of power iteration: bases (P, S, S) move towards the present eigenvectors, V (P, R, C) along with them.

    Eigenvectors stay in the order of their eigenvalues, because QR leaves the first ones nearest to where they were.
    """
    for name, dimension in (("rows", 1), ("columns", 2)):
        if name not in state:
            continue
        basis = state[f"{name}_basis"]
        product = _conditioned(state[name]) @ basis
        order_PS = (basis * product).sum(1).argsort(dim=-1, descending=True, stable=True)
        index = order_PS[:, :, None] if dimension == 1 else order_PS[:, None, :]
        # V is a view of the state, hence in place; gather makes the copy that this needs.
        v_PRC.copy_(v_PRC.gather(dimension, index.expand_as(v_PRC)))
        basis.copy_(torch.linalg.qr(product.gather(2, order_PS[:, None, :].expand_as(product))).Q)


class Soap(OptimizerChoice):
    """Adam in the eigenbasis of each matrix's gradient covariances (Shampoo's), AdamW for everything else.

    W <- W - lr (Q_L [(Q_L^T M Q_K) / (sqrt(V) + eps)] Q_K^T + wd W), W (R, C), Q_L (R, R), Q_K (C, C). See
    :class:`SoapOptimizer`.

    Source: Vyas et al. 2024 (arXiv 2409.11321), algorithm 3.
    """

    kind: Literal["soap"] = "soap"
    lr: float = knob(3e-3, "peak learning rate", gt=0, le=100, scale="log")
    beta1: float = knob(0.95, "decay of the first moment", ge=0, lt=1)
    beta2: float = knob(0.95, "decay of the second moment and of the covariances", ge=0, lt=1)
    eps: float = knob(1e-8, "added to the denominator", gt=0, scale="log")
    basis_every: int = knob(10, "steps between updates of the eigenbases", ge=1, unit="steps", scale="log")
    longest_side: int = knob(
        10_000, "sides of a matrix longer than this get no eigenbasis", ge=1, unit="rows or columns", scale="log"
    )

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return a :class:`SoapOptimizer`; two moments of a matrix's shape (R, C) and 2 R^2 + 2 C^2 numbers more,
        float32.
        """
        return SoapOptimizer(
            groups,
            lr=self.lr,
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            every=self.basis_every,
            longest_side=self.longest_side,
        )
