"""Scheduled[float]: a number that stays, or a shape over the run's progress. One base, one evaluator."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, SerializeAsAny
from pydantic_core import PydanticCustomError

from workbench.choices.choice import Choice, knob, resolve
from workbench.choices.knob import MOVES
from workbench.choices.progress import Progress


class Schedule(Choice):
    """Base of the shapes a scheduled knob can follow.

    ``over`` says what its lengths count: with ``budget`` they are fractions of the run's budget (so the shape
    ends when the run does), otherwise absolute steps, tokens or seconds.
    """

    axis: ClassVar[str] = "schedule"
    provides: ClassVar[tuple[str, ...]] = ("value",)
    levels: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that hold values of the knob (not lengths); their defaults are for a knob of 1.0."""
    over: Literal["budget", "steps", "tokens", "seconds"] = knob("budget", "unit of this shape's lengths")

    @classmethod
    def shared_knobs(cls, other: type[Choice]) -> tuple[str, ...]:
        """None: ``over`` is the unit of lengths that every shape has by itself."""
        return ()

    @classmethod
    def around(cls, value: float) -> Self:
        """This shape for a knob that was the constant ``value`` so far: its defaults, every level times ``value``.

        Example:
            >>> from workbench.choices.schedules import Linear
            >>> Linear.around(0.003).start
            0.003
        """
        return cls(**{name: _scaled(cls.model_fields[name].default, value) for name in cls.levels})

    def at(self, progress: Progress) -> float:
        """Return the value at ``progress``, whose steps, tokens, seconds or spent share ``over`` picks."""
        return self.value(progress.fraction if self.over == "budget" else progress.amount(self.over))

    def value(self, x: float) -> float:
        """Return the value at ``x``: a share of the budget, or steps, tokens or seconds, as ``over`` says."""
        raise NotImplementedError

    def extremes(self) -> tuple[float, float]:
        """Return (lowest, highest) value this shape can reach, however long the run: what bounds are checked against.

        Those of :attr:`levels`, and 0 where it warms up from there; a shape that goes beyond them says so itself.
        """
        given = [getattr(self, name) for name in self.levels]
        reached = [value for level in given for value in (level if isinstance(level, tuple) else (level,))]
        reached += [0.0] if getattr(self, "warmup", 0.0) else []
        return min(reached), max(reached)


def _scaled(default: Any, factor: float) -> Any:
    if isinstance(default, tuple):
        return tuple(_scaled(each, factor) for each in default)
    # Twelve digits: 0.1 * 0.003 is to stand as 0.0003 in the form and in the recipe's JSON.
    return float(f"{default * factor:.12g}")


def _number_or_schedule(value: Any) -> Any:
    # A string names a kind, a dictionary is a schedule's JSON; numbers are left to pydantic, which checks them.
    return (
        value if isinstance(value, bool) or not isinstance(value, (dict, str, Schedule)) else resolve("schedule", value)
    )


Scheduled = Annotated[float | SerializeAsAny[Schedule], BeforeValidator(_number_or_schedule), MOVES]
"""Field type of a knob that may move during training: a number, or a :class:`Schedule` (or its JSON)."""


def _whole_or_schedule(value: Any) -> Any:
    resolved = _number_or_schedule(value)
    whole = isinstance(resolved, int) or (isinstance(resolved, float) and resolved.is_integer())
    # Here rather than by pydantic, whose answer to 32.5 speaks of the arms of a union.
    if not isinstance(resolved, Schedule) and not whole:
        raise PydanticCustomError("whole", "must be a whole number or a schedule")
    return resolved


ScheduledInt = Annotated[int | SerializeAsAny[Schedule], BeforeValidator(_whole_or_schedule), MOVES]
"""As :data:`Scheduled` for what is counted in whole numbers; whoever reads a schedule's value rounds it."""


def scheduled_knob(
    default: Any,
    help: str,
    *,
    gt: float | None = None,
    ge: float | None = None,
    lt: float | None = None,
    le: float | None = None,
    unit: str = "",
    scale: str = "linear",
) -> Any:
    """Declare a field of type :data:`Scheduled`: as ``knob``, with bounds that also hold all along a schedule."""
    field = knob(default, help, unit=unit, scale=scale)
    bounds = {"exclusiveMinimum": gt, "minimum": ge, "exclusiveMaximum": lt, "maximum": le}
    # pydantic's own bounds would compare a Schedule with a number; these stand in the JSON schema as any bounds do.
    field.json_schema_extra |= {word: bound for word, bound in bounds.items() if bound is not None}
    return field


def at(value: float | Schedule, progress: Progress) -> float:
    """Return the value of a scheduled knob at ``progress``.

    Example:
        >>> from workbench.choices.progress import Budget
        >>> at(0.15, Progress(step=3, tokens=0, seconds=0.0, budget=Budget()))
        0.15
    """
    return value.at(progress) if isinstance(value, Schedule) else float(value)
