"""Muon: orthogonalised momentum for hidden matrices, AdamW for the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.optimizers.tensorwise import Group, MatrixOptimizer, States, Tensors, descend, zeros

# Shape legend: N matrices, R rows, C columns.

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""(a, b, c) of X <- a X + (b A + c A^2) X, A = X X^T: steepest at 0 among those that keep [0, 1] near 1 (Jordan)."""

SCALINGS = ("spectral", "match_rms_adamw")
"""Scalings of the step with the shape: sqrt(max(1, R / C)) as published first, or 0.2 sqrt(max(R, C)), which gives the
entries the root mean square of a typical AdamW update, so that AdamW's learning rate and decay can be kept."""


def orthogonalise(matrices_NRC: Tensor, steps: int = 5, precision: torch.dtype = torch.bfloat16) -> Tensor:
    """Replace the singular values of each matrix by values near 1, without a decomposition.

    X <- X / ||X||_F, then ``steps`` times X <- a X + (b A + c A^2) X with A = X X^T. The polynomial moves every
    singular value s > 0 towards 1 and settles for [0.68, 1.14] rather than 1; s < .001 of the norm do not get there in
    5 steps.

    Args:
        matrices_NRC: (N, R, C), or one matrix (R, C); any floating type.
        steps: of the iteration.
        precision: of the products.

    Returns:
        The same shape, in ``precision``; an all-zero matrix stays zero.

    Source: Jordan et al. 2024 (kellerjordan.github.io/posts/muon).

    Example:
        >>> x = orthogonalise(torch.tensor([[3.0, 0.0], [0.0, 1.0]]), precision=torch.float32)
        >>> bool((torch.linalg.svdvals(x) > 0.65).all() and (torch.linalg.svdvals(x) < 1.2).all())
        True
    """
    a, b, c = COEFFICIENTS
    # The norm in float32: the squares of a bf16 gradient lose digits and those of a float16 one overflow.
    norm = torch.linalg.matrix_norm(matrices_NRC.float(), keepdim=True)
    x = (matrices_NRC / norm.clamp(min=1e-20)).to(precision)
    # X X^T of the short side: (R, C) tall -> (C, R) wide.
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class MuonOptimizer(MatrixOptimizer):
    r"""Muon with its AdamW in one object; a plain optimizer, usable without the rest of the workbench.

    For every matrix W (rows are outputs) with gradient G of a group with role ``matrix``:

        M = mu M + (1 - mu) G;  U = mu M + (1 - mu) G (Nesterov; U = M without)
        W <- W - lr (scale orthogonalise(U) + wd W),  scale = sqrt(max(1, R / C)) or 0.2 sqrt(max(R, C))

    Every other tensor takes a step of AdamW at ``adamw_lr``.

    Args:
        params: parameter groups. ``role`` (as ``parameter_groups`` sets it) decides: ``matrix``, the default, must hold
            matrices only; ``parts`` matrices may be stacked along the outputs and are then orthogonalised one by one,
            ``transposed`` says that the columns are the outputs.
        lr: learning rate of matrices, >= 0.
        momentum: mu, in [0, 1).
        nesterov: look ahead along the gradient.
        steps: of the Newton-Schulz iteration, at least 1.
        scaling: one of :data:`SCALINGS`.
        precision: of the iteration; None takes bfloat16 on accelerators and float32 on a CPU.
        weight_decay: wd, >= 0, of both parts.
        adamw_lr: learning rate of all other tensors, >= 0.
        betas, eps: of AdamW.

    State per matrix: ``momentum_buffer``; per other tensor ``step``, ``exp_avg``, ``exp_avg_sq``; all float32.

    Raises:
        ValueError: a setting out of its range, or a tensor without rows and columns among the matrices.

    Source: Jordan et al. 2024 (kellerjordan.github.io/posts/muon); ``match_rms_adamw``: Liu et al. 2025 (arXiv
    2502.16982), section 2.2. torch.optim.Muon is the oracle of the tests; it is not used, because it takes matrices
    alone, one at a time, keeps the momentum in their type, and orthogonalises fused queries, keys and values as one.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 0.02,
        momentum: float = 0.95,
        nesterov: bool = True,
        steps: int = 5,
        scaling: str = "spectral",
        precision: torch.dtype | None = None,
        weight_decay: float = 0.01,
        adamw_lr: float | Tensor = 3e-3,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-8,
    ) -> None:
        if scaling not in SCALINGS:
            raise ValueError(f"MuonOptimizer: scaling must be one of {', '.join(SCALINGS)}, got {scaling}")
        self.precision = precision
        defaults = {
            "lr": lr, "momentum": momentum, "nesterov": nesterov, "steps": steps, "scaling": scaling, "betas": betas,
            "eps": eps, "weight_decay": weight_decay, "adamw_lr": adamw_lr,
        }  # fmt: skip
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of matrices, (R, C), or of tensors of any shape with another role, at AdamW's rate."""
        if param_group.get("role", "matrix") != "matrix":
            param_group.setdefault("lr", self.defaults["adamw_lr"])
        super().add_param_group(param_group)

    def start_matrix(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return momentum in the parameter's shape, (R, C)."""
        return {"momentum_buffer": zeros(parameter)}

    def update_matrices(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """One step of float32 matrices, (R, C), in place."""
        momentum, lr, decay = group["momentum"], group["lr"], group["weight_decay"]
        buffers = [state["momentum_buffer"] for state in states]
        torch._foreach_lerp_(buffers, grads, 1 - momentum)
        directions = list(torch._foreach_lerp(grads, buffers, momentum)) if group["nesterov"] else buffers
        updates = self._orthogonalised(directions, group)
        if decay:
            torch._foreach_mul_(weights, 1 - lr * decay)
        descend(weights, updates, lr)

    def _orthogonalised(self, directions: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Return scaled, orthogonalised copies, (R, C) each, float32;
        equal shapes go through the iteration together.
        """
        precision = self.precision or (torch.float32 if directions[0].device.type == "cpu" else torch.bfloat16)
        by_shape: dict[torch.Size, list[int]] = {}
        for index, direction in enumerate(directions):
            by_shape.setdefault(direction.shape, []).append(index)
        results = list(directions)
        for indices in by_shape.values():
            stacked = torch.stack([directions[index] for index in indices])
            # Outputs to the rows; then (N, parts R, C) -> (N parts, R, C), which for rows is a view.
            rows_first = stacked.mT if group["transposed"] else stacked
            matrices_NRC = rows_first.unflatten(1, (group["parts"], -1)).flatten(0, 1)
            rows, columns = matrices_NRC.shape[1:]
            if group["scaling"] == "spectral":
                scale = math.sqrt(max(1.0, rows / columns))
            else:
                scale = 0.2 * math.sqrt(max(rows, columns))
            found = orthogonalise(matrices_NRC, group["steps"], precision).float().mul_(scale).view_as(rows_first)
            for index, result in zip(indices, found.mT if group["transposed"] else found, strict=True):
                results[index] = result
        return results


class Muon(OptimizerChoice):
    """Orthogonalised momentum for the matrices of the blocks, AdamW for embeddings, heads, biases and norms.

    W <- W - lr (scale O + wd W), O = U V^T (about) for the momentum U S V^T; W is (outputs, inputs). Queries, keys and
    values are three matrices even where they are stored as one. See :class:`MuonOptimizer`.

    Source: Jordan et al. 2024 (kellerjordan.github.io/posts/muon).
    """

    kind: Literal["muon"] = "muon"
    moments: ClassVar[tuple[str, ...]] = ("momentum_buffer", "exp_avg", "exp_avg_sq")
    lr: float = knob(0.02, "peak learning rate of the blocks' matrices", gt=0, le=100, scale="log")
    momentum: float = knob(0.95, "decay of the momentum", ge=0, lt=1)
    nesterov: bool = knob(True, "look ahead along the gradient")
    newton_schulz_steps: int = knob(5, "steps of the orthogonalisation", ge=1, le=20, unit="iterations")
    scaling: Literal["spectral", "match_rms_adamw"] = knob(
        "spectral", "step by shape: sqrt(max(1, rows/columns)), or 0.2 sqrt(max(rows, columns)) to keep AdamW's lr"
    )
    precision: Literal["auto", "bf16", "fp32"] = knob(
        "auto", "precision of the orthogonalisation; auto: bf16 on accelerators, fp32 on a CPU"
    )
    adamw_lr: float = knob(3e-3, "peak learning rate of everything else", gt=0, le=100, scale="log")
    beta1: float = knob(0.9, "AdamW's decay of the first moment", ge=0, lt=1)
    beta2: float = knob(0.98, "AdamW's decay of the second moment", ge=0, lt=1)
    eps: float = knob(1e-8, "added to AdamW's denominator", gt=0, scale="log")

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return a :class:`MuonOptimizer`; its state has the parameters' shapes,
        in float32 whatever their precision.
        """
        return MuonOptimizer(
            groups,
            lr=self.lr,
            momentum=self.momentum,
            nesterov=self.nesterov,
            steps=self.newton_schulz_steps,
            scaling=self.scaling,
            precision={"auto": None, "bf16": torch.bfloat16, "fp32": torch.float32}[self.precision],
            adamw_lr=self.adamw_lr,
            betas=(self.beta1, self.beta2),
            eps=self.eps,
        )

    def rate_scale(self, group: dict[str, Any]) -> float:
        """1 for matrices, (R, C); elsewhere ``adamw_lr`` / ``lr``: both rates follow the one schedule."""
        return super().rate_scale(group) * (1.0 if group["role"] == "matrix" else self.adamw_lr / self.lr)
