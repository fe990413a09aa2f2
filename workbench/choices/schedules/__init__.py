"""Shapes a scheduled knob (learning rate, mask rate, keep probability, ...) can follow over a run."""

from workbench.choices.schedules.cosine import Cosine
from workbench.choices.schedules.inverse_sqrt import InverseSqrt
from workbench.choices.schedules.linear import Linear
from workbench.choices.schedules.one_cycle import OneCycle
from workbench.choices.schedules.phases import Phases
from workbench.choices.schedules.points import Points
from workbench.choices.schedules.polynomial import Polynomial
from workbench.choices.schedules.schedule import Schedule, Scheduled, ScheduledInt, at, scheduled_knob
from workbench.choices.schedules.stages import Stages
from workbench.choices.schedules.warmup_hold_decay import WarmupHoldDecay
from workbench.choices.schedules.warmup_stable_decay import WarmupStableDecay

__all__ = [
    "Cosine", "InverseSqrt", "Linear", "OneCycle", "Phases", "Points", "Polynomial", "Schedule",
    "Scheduled", "ScheduledInt", "Stages", "WarmupHoldDecay", "WarmupStableDecay", "at", "scheduled_knob",
]  # fmt: skip
