"""Settle what an engine decides by the memory there is: the run's own rule, with a trace in place of its two passes."""

from __future__ import annotations

from typing import NamedTuple

from workbench.base.errors import RecipeError
from workbench.choices.execution import SHARE, MemoryPlan
from workbench.choices.execution.foreseen import Foreseen
from workbench.choices.execution.memory_fit import Kept, fewest_layers, fitting_rows, step_bytes
from workbench.choices.execution.micro_batches import divisors
from workbench.forecasting.footprint import sizes, trained_numbers
from workbench.forecasting.meta_tensors import ModelSpec
from workbench.forecasting.trace import trace


class Settled(NamedTuple):
    """The micro-batch and memory plan that a run will begin with.

    Attributes:
        rows: of a micro-batch, at most; None for any number.
        memory: with the layers that are computed again.
        refusal: why it will most likely be refused at its start, with the way out; empty where it will not be.
    """

    rows: int | None
    memory: MemoryPlan
    refusal: str = ""


def settled(engine: Foreseen, spec: ModelSpec, memory_bytes: int) -> Settled:
    """See :meth:`Engine.fit`.

    Args:
        spec: of the model.
        memory_bytes: of the device.
    """
    plan, rows, recipe = engine.memory, engine.micro_batch_size, engine.recipe
    if not (plan.largest or plan.recompute == "budget"):
        return Settled(rows, plan)
    taken = 4 * sizes(spec).parameters + step_bytes(trained_numbers(spec), plan, len(recipe.optimizer.moments))
    room, kept = (plan.budget or SHARE * memory_bytes) - taken, _kept(engine, spec)
    limit = f" under a limit of {plan.budget / 2**30:.3g} GiB" if plan.budget else ""
    legal = divisors(recipe.data.fewest_rows, recipe.data.most_rows)
    try:
        if plan.largest:
            return Settled(fitting_rows(legal, room, kept)[0], plan)
        first = fewest_layers(room, kept, engine.rows, _stream(spec, 1))
        return Settled(rows, plan._replace(first=first))
    except RecipeError as error:
        refusal = f"expected to be refused at its start{limit}: {error}"
    return Settled(legal[0] if plan.largest else rows, plan._replace(first=len(kept.blocks)), refusal)


def _kept(engine: Foreseen, spec: ModelSpec) -> Kept:
    def of(rows: int) -> tuple[int, list[int]]:
        found = trace(spec, rows, spec.longest, engine.dtype)
        layers = [*(found.layers[sort].kept for sort in found.sorts), found.last.kept]
        # Of a layer that is computed again, its input.
        blocks = [_stream(spec, rows) if engine.memory.recomputes(n) else kept for n, kept in enumerate(layers)]
        return found.shared.kept + sum(blocks) + found.head.kept, blocks

    return Kept.between(of(1), of(2))


def _stream(spec: ModelSpec, rows: int) -> int:
    """Return bytes of a layer's input; the residual stream is float32."""
    return 4 * spec.architecture.width * spec.longest * rows
