"""The base of the optimizers written here: float32 state per tensor, steps counted per tensor, pieces that fit a cache.

Libraries count steps per group and keep state in the parameter's type. Here layers are dropped, frozen and grown: a
tensor that first gets a gradient at step 500 needs the bias correction of its own first step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from workbench.choices.optimizers.adamw import FUSED_DEVICES

BLOCK = 262_144
"""Elements worked on at a time on a CPU: half a dozen float32 blocks of 1 MiB stay in the cache that cores share, while
whole tensors would travel to memory and back for every operation. Blocks for a core's own cache are too small: they
cost more calls, and torch gives fewer than 32,768 elements to one thread alone. Against blocks of 32,768, the step of
the optimizers here took 0.53 to 0.70 of its time on one thread and 0.40 to 0.70 on two (11M and 38M parameters)."""

Tensors = list[Tensor]
States = list[dict[str, Any]]
"""State by tensor: its tensors by name."""
Group = dict[str, Any]
"""A parameter group, as torch has it."""

_LEGAL: tuple[tuple[str, Callable[[float], bool], tuple[str, ...]], ...] = (
    (">= 0", lambda number: number >= 0, ("lr", "adamw_lr", "weight_decay")),
    ("> 0", lambda number: number > 0, ("eps", "clip", "decay", "gamma")),
    ("in [0, 1)", lambda number: 0 <= number < 1, ("betas", "beta1", "momentum")),
    (">= 1", lambda number: number >= 1, ("steps", "every", "longest_side")),
)
"""Legal ranges, their tests, and the settings that they hold for."""


class TensorwiseOptimizer(torch.optim.Optimizer):
    """Base of the optimizers written here: a subclass says what state a tensor has and how tensors move.

    Parameters may have any shape and floating type; the arithmetic and the state are float32. Those without a gradient
    are left alone: weight, state and step count. Nothing waits for the device.

    Raises:
        ValueError: a setting out of its range.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        for legal, fits, names in _LEGAL:
            for name in names:
                given = defaults.get(name, ())
                if not all(fits(float(number)) for number in (given if isinstance(given, tuple) else (given,))):
                    raise ValueError(f"{type(self).__name__}: {name} must be {legal}, got {given}")
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """State of a tensor before its first step: float32, on its device (``step``, if there is one: see below).

        A ``step`` is a 0-d float32 tensor on the CPU, where reading it costs nothing, unless the group is ``fused``.
        """
        raise NotImplementedError

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """Move ``weights`` in place; the lists run parallel: float32, contiguous, any shapes, one device, not empty."""
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; returns what ``closure`` (which recomputes the loss) returns, or None.

        Raises:
            RuntimeError: a sparse gradient or a complex parameter.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            # By device: operations on lists of tensors want them all in one place.
            by_device: dict[torch.device, list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_device.setdefault(parameter.device, []).append(parameter)
            for parameters in by_device.values():
                states = [self.state_of(parameter, group) for parameter in parameters]
                weights = [in_float32(parameter.detach()) for parameter in parameters]
                self.update(weights, [in_float32(p.grad) for p in parameters], states, group)
                for parameter, weight in zip(parameters, weights, strict=True):
                    if weight.data_ptr() != parameter.data_ptr():
                        parameter.copy_(weight)
        return loss

    def state_of(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a tensor that has a gradient, of the shapes :meth:`start` gives it,
        made when it has none.
        """
        assert parameter.grad is not None
        if parameter.grad.is_sparse or parameter.is_complex():
            name = type(self).__name__
            raise RuntimeError(f"{name}: sparse gradients and complex parameters are not covered; use dense real ones")
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state.update(self.start(parameter, group))
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; its float32 tensors, of any shape, are never rounded to the parameters' type."""
        super().load_state_dict(state_dict)
        # What super() has just cast to the parameters' type is taken from the saved state once more, unrounded.
        saved_order = [key for group in state_dict["param_groups"] for key in group["params"]]
        held = [(parameter, group) for group in self.param_groups for parameter in group["params"]]
        for key, (parameter, group) in zip(saved_order, held, strict=True):
            for name, value in state_dict["state"].get(key, {}).items():
                device = parameter.device if name != "step" or group.get("fused") else "cpu"
                self.state[parameter][name] = torch.as_tensor(value).to(device, torch.float32).clone()


def in_float32(tensor: Any) -> Tensor:
    """Return the tensor itself where it is float32 and contiguous, such a copy of the same shape elsewhere."""
    # Contiguous, since the fused AdamW walks through memory, and a transposed weight's moments are stored straight.
    return tensor.float().contiguous()


def zeros(parameter: Tensor) -> Tensor:
    """Return a float32 zero tensor of the parameter's shape, on its device."""
    return torch.zeros(parameter.shape, dtype=torch.float32, device=parameter.device)


def no_steps(device: torch.device | str = "cpu") -> Tensor:
    """Return a step count of 0, 0-d float32: a tensor, as in torch's own optimizers,
    so that checkpoints need no exception.
    """
    return torch.zeros((), dtype=torch.float32, device=device)


def pieces(*columns: Sequence[Tensor]) -> Iterator[tuple[list[Tensor], ...]]:
    """Yield parallel lists of tensors, cut so that elementwise work on them is fast;
    in-place work reaches the originals.

    On an accelerator that is everything at once: few launches. On a CPU it is one cache-sized block of one tensor at a
    time, as lists of length 1.

    Args:
        columns: lists of equal length; tensors at one index have one shape and are contiguous.

    Yields:
        For every piece, one list per column.
    """
    if columns[0][0].device.type != "cpu":
        yield tuple(list(column) for column in columns)
        return
    for tensors in zip(*columns, strict=True):
        for block in zip(*(tensor.view(-1).split(BLOCK) for tensor in tensors), strict=True):
            yield tuple([part] for part in block)


def descend(weights: list[Tensor], updates: list[Tensor], lr: float | Tensor) -> None:
    """weights <- weights - lr * updates, in place, any shapes; ``updates`` are used up."""
    if isinstance(lr, Tensor):
        # Not read: on a GPU that would wait for it.
        torch._foreach_mul_(updates, lr)
        torch._foreach_sub_(weights, updates)
    else:
        torch._foreach_add_(weights, updates, alpha=-lr)


def adamw_update(weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
    """One step of torch's AdamW on float32 tensors of any shape, for the tensors that a matrix method leaves over.

    Args:
        weights, grads: in place, and read.
        states: with ``exp_avg``, ``exp_avg_sq`` and ``step``, as :func:`adamw_start` makes them.
        group: reads ``lr``, ``betas``, ``eps``, ``weight_decay`` and ``fused``.
    """
    first, second, steps = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step"))
    (beta1, beta2), settings = group["betas"], {name: group[name] for name in ("fused", "lr", "weight_decay", "eps")}
    adamw(weights, grads, first, second, [], steps, amsgrad=False, beta1=beta1, beta2=beta2, maximize=False, **settings)


def adamw_start(parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
    """State for :func:`adamw_update`: two moments of the parameter's shape and a step count."""
    # The fused kernel counts on the device.
    step = no_steps(parameter.device if group["fused"] else "cpu")
    return {"step": step, "exp_avg": zeros(parameter), "exp_avg_sq": zeros(parameter)}


class MatrixOptimizer(TensorwiseOptimizer):
    """Base of the methods for hidden matrices, (R, C), which leave all other tensors to AdamW.

    Groups of role ``matrix`` are a subclass's (:meth:`start_matrix`, :meth:`update_matrices`); those of any other role
    take torch's AdamW step, at whatever rate, ``betas`` and ``eps`` they bring.

    Raises:
        ValueError: a tensor without rows and columns in a group of role ``matrix``; says where it belongs.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        super().__init__(params, {"role": "matrix", "parts": 1, "transposed": False, "fused": False, **defaults})

    def start_matrix(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """State of a matrix (R, C) before its first step, as :meth:`start`."""
        raise NotImplementedError

    def update_matrices(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """Move matrices, (R, C) each, in place, as :meth:`update`."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of matrices, (R, C), or of tensors of any shape with another role."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        if group["role"] != "matrix":
            group["fused"] = all(parameter.device.type in FUSED_DEVICES for parameter in group["params"])
            return
        for parameter in group["params"]:
            if parameter.ndim != 2:
                raise ValueError(
                    f"{type(self).__name__}: a group with role 'matrix' holds matrices only, got shape "
                    f"{tuple(parameter.shape)}; put other tensors into a group with role 'vector' or 'embedding', as "
                    "parameter_groups(model, weight_decay) does"
                )

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return a matrix's state, or AdamW's for a tensor of any shape in another role."""
        return (self.start_matrix if group["role"] == "matrix" else adamw_start)(parameter, group)

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """One step of float32 tensors, in place: matrices (R, C), or any shapes where AdamW does it."""
        step = self.update_matrices if group["role"] == "matrix" else adamw_update
        step(weights, grads, states, group)
