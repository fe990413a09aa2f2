"""Telemetry's event of kind ``stage``: what layers do from here on, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.choices.depth.plan import LayerPlan, Transition
from workbench.training.assemble import Assembled


@dataclass(frozen=True)
class StageShape:
    """The facts of the event: one is due when any field changes. JSON-able by its fields.

    Attributes:
        stage: index of the stage in force. layers: that exist.
        trains: per layer, (layers,). embedding, head: whether they train.
        width, heads, inner_width: of the architecture.
    """

    stage: int
    layers: int
    trains: tuple[bool, ...]
    embedding: bool
    head: bool
    width: int
    heads: int
    inner_width: int

    @classmethod
    def of(cls, assembled: Assembled, plan: LayerPlan) -> StageShape:
        """Return the shape of the model as it is, under the plan of the coming step."""
        sizes = (getattr(assembled.architecture, name) for name in ("width", "heads", "inner_width"))
        return cls(assembled.stage, plan.layers, tuple(plan.trains), plan.embedding, plan.head, *sizes)

    @classmethod
    def restored(cls, saved: Any) -> StageShape | None:
        """From a checkpoint; an older one has the fields in a list, in this order."""
        if not saved:
            return None
        fields = saved if isinstance(saved, dict) else dict(zip(cls.__dataclass_fields__, saved, strict=True))
        return cls(**{**fields, "trains": tuple(fields["trains"])})


def stage_event(
    plan: LayerPlan, transition: Transition | None, stages: int, before: StageShape | None, now: StageShape
) -> tuple[str, dict[str, Any]]:
    """Return text and data, for example ``stage 2 of 4: layers 4-6 added as copies of 1-3; 1-3 frozen``.

    Args:
        plan: of the first micro-batch of the coming step; shape (layers,).
        transition: applied to the model, if any.
        stages: how many there are.
        before: of the last event; None at the beginning of a run. now: of the model as it is.

    Returns:
        The text, and by name, counted from 1: ``stage, stages``; ``layers`` that exist; ``frozen`` ones; ``copies``,
        pairs of a new layer and its source.
    """
    sources, first = (transition.sources, transition.first) if transition is not None else ((), 0)
    data = {
        "stage": now.stage + 1,
        "stages": stages,
        "layers": plan.layers,
        "frozen": [layer for layer, trains in enumerate(plan.trains, 1) if not trains],
        "copies": [[layer, source + 1] for layer, source in enumerate(sources, first + 1) if source is not None],
    }
    where = f"stage {now.stage + 1} of {stages}: " if stages > 1 else ""
    return where + "; ".join(_parts(plan, transition, before, now)), data


def _parts(plan: LayerPlan, transition: Transition | None, before: StageShape | None, now: StageShape) -> list[str]:
    parts = []
    if transition is not None and transition.sources:
        parts.append(_added(transition))
    if before is not None:
        sizes = ((name, getattr(before, name), getattr(now, name)) for name in ("width", "heads", "inner_width"))
        changed = [f"{name.replace('_', ' ')} {old} to {new}" for name, old, new in sizes if old != new]
        parts += [", ".join(changed)] if changed else []
    frozen = [layer for layer, trains in enumerate(plan.trains) if not trains]
    if frozen:
        # After the added layers, the word "layers" would repeat.
        noun = "" if parts else "layers " if len(frozen) > 1 else "layer "
        parts.append(f"{noun}{spans(frozen)} frozen")
    elif before is not None and not all(before.trains):
        parts.append(f"all {plan.layers} layers train")
    elif not parts and plan.layers < plan.total:
        parts.append(f"layers {spans(range(plan.layers))} of {plan.total} exist")
    mean = sum(plan.keep)
    if mean < plan.layers - 1e-9:
        parts.append(f"{mean:.3g} of {plan.layers} layers run on average")
    elif not parts:
        parts.append(f"all {plan.layers} layers run and train")
    rest = [name for name, trains in (("embedding", plan.embedding), ("head", plan.head)) if not trains]
    if rest:
        parts.append(f"{' and '.join(rest)} frozen")
    return parts


def spans(layers: Sequence[int]) -> str:
    """0-based layers in words that count from 1.

    Example:
        >>> spans([0, 1, 2, 6])
        '1-3, 7'
    """
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ", ".join(f"{run[0] + 1}-{run[-1] + 1}" if len(run) > 1 else f"{run[0] + 1}" for run in runs)


def _added(transition: Transition) -> str:
    new = range(transition.first, transition.first + len(transition.sources))
    sources = [source for source in transition.sources if source is not None]
    plural = "s" if len(new) > 1 else ""
    how = f"as {'copies' if plural else 'a copy'} of {spans(sources)}" if sources else "freshly initialised"
    return f"layer{plural} {spans(new)} added {how}" + (", silent at first" if transition.silent else "")
