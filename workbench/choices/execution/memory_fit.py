"""Fitting a run into memory: what one pass keeps is measured on one and two rows, and the rest follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from workbench.base.errors import RecipeError
from workbench.choices.execution.memory_plan import MemoryPlan
from workbench.choices.objectives.objective import TrainingModel
from workbench.ops.free_memory import free_bytes, ran_out
from workbench.ops.recompute import KeptBytes

Rehearse = Callable[[int], Tensor]
"""The loss, 0-d, of a forward pass over so many rows of the longest length."""

LOOSE = 1.2
"""A heap is not packed tight: over what passes keep, in the median of 24 recipes (``forecasting/footprint.py``)."""
SHARE = 0.9
"""Share of the free memory that a run may plan with."""
_GIB = 2**30


class Kept(NamedTuple):
    """Bytes that a forward pass keeps, for any number of rows; eager, and so at least what compiled blocks keep.

    Attributes:
        fixed, per_row: of everything.
        blocks: by layer, per row.
    """

    fixed: float
    per_row: float
    blocks: tuple[float, ...]

    @classmethod
    def between(cls, one: tuple[float, Sequence[float]], two: tuple[float, Sequence[float]]) -> Kept:
        """From what is kept of one row and of two: of everything, and by layer."""
        per_row = two[0] - one[0]
        return cls(one[0] - per_row, per_row, tuple(b - a for a, b in zip(one[1], two[1], strict=True)))

    def at(self, rows: int) -> float:
        """Return the bytes of so many rows, loose as a heap is."""
        return LOOSE * (self.fixed + self.per_row * rows)


def measured(model: TrainingModel, rehearse: Rehearse) -> Kept:
    """Return two passes, of one row and of two; nothing is allocated beyond them."""
    blocks = list(model.stacks()["main"].blocks)
    one, two = KeptBytes(), KeptBytes()
    for rows, count in enumerate((one, two), start=1):
        with count.counting(model, blocks):
            rehearse(rows)
    return Kept.between((one.total, one.inside), (two.total, two.inside))


def step_bytes(trained: Iterable[int], plan: MemoryPlan, moments: int) -> int:
    """Return bytes of gradients and of the optimizer's state; the weights come on top.

    Args:
        trained: numbers in each parameter that trains.
        moments: that the optimizer names; one that names none is taken for one with two.
    """
    return sum(4 * numbers + (moments or 2) * plan.moment_bytes(numbers) for numbers in trained)


def state_bytes(optimizer: torch.optim.Optimizer, device: torch.device) -> int:
    """Return bytes of the state that an optimizer has on a device already: none before its first step,
    but in a fork.
    """
    found = (value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor))
    return sum(value.numel() * value.element_size() for value in found if value.device.type == device.type)


def room_now(plan: MemoryPlan, device: torch.device, whole: int, here: bool) -> tuple[int, str]:
    """Return bytes of a device that a run may count on if it began now, and in words,
    where it will fill what is free then.

    Args:
        whole: bytes of the device. here: it is this machine's.
    """
    if not plan.largest or plan.budget:
        return whole, ""
    # Asking a GPU would take some of its memory.
    free = here and device.type == "cpu"
    room, there = (min(whole, free_bytes(device)), "are free now") if free else (whole, "the device has in all")
    takes = "execution.micro_batch_size 'auto' takes what is free when the run begins"
    return room, f"{takes}; this counts with the {room / _GIB:.3g} GiB that {there}"


def fitting_rows(legal: Iterable[int], room: float, kept: Kept) -> list[int]:
    """Return legal numbers of rows whose pass fits into ``room`` bytes, the largest first.

    Raises:
        RecipeError: not even the least fits; says what is missing.
    """
    rows = sorted(legal, reverse=True)
    fitting = [each for each in rows if kept.at(each) <= room]
    if not fitting:
        raise _too_little(rows[-1], room, kept)
    return fitting


def largest_rows(
    legal: Iterable[int], room: float, kept: Kept, rehearse: Rehearse, backward: Callable[[Tensor], None]
) -> int:
    """Return the largest legal number of rows whose pass fits into ``room`` bytes, and did when it was tried.

    Raises:
        RecipeError: not even the least fits; says what is missing.
    """
    fitting = fitting_rows(legal, room, kept)
    for tried in fitting:
        try:
            backward(rehearse(tried))
        # Only what says that memory ran out: anything else would be an error of the model's.
        except (RuntimeError, MemoryError) as error:
            if not ran_out(error):
                raise
            continue
        return tried
    raise _too_little(fitting[-1], room, kept)


def _too_little(rows: int, room: float, kept: Kept) -> RecipeError:
    return RecipeError(
        f"execution.micro_batch_size: a pass of {counted_rows(rows)} takes {kept.at(rows) / _GIB:.3f} GiB beside "
        f"weights, gradients and optimizer states, and {max(0.0, room) / _GIB:.3f} GiB are left for it; set "
        "execution.recompute, shorten data.sequence_length, or make the model smaller"
    )


def counted_rows(rows: int) -> str:
    """In words: ``1 row``, ``2 rows``."""
    return "1 row" if rows == 1 else f"{rows} rows"


def fewest_layers(room: float, kept: Kept, rows: int, stream: float) -> int:
    """Return the number of layers to compute again, for a pass of so many rows to fit into ``room`` bytes.

    Args:
        stream: bytes of a layer's input per row.

    Raises:
        RecipeError: it does not fit though all are; says what is missing.
    """
    whole = max(kept.blocks, default=0.0)
    for layers in range(len(kept.blocks) + 1):
        # One of them is there as a whole while it goes backward.
        saved = sum(kept.blocks[:layers]) - layers * stream - (whole if layers else 0.0)
        needed = kept.at(rows) - LOOSE * rows * saved
        if needed <= room:
            return layers
    raise RecipeError(
        f"execution.memory_gib: with every layer computed again a pass of {counted_rows(rows)} still takes "
        f"{needed / _GIB:.3f} GiB beside weights, gradients and optimizer states, and the budget leaves "
        f"{max(0.0, room) / _GIB:.3f}; raise it by {(needed - room) / _GIB:.3f}, or lower execution.micro_batch_size"
    )
