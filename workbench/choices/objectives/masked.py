"""Masked language modelling."""

from __future__ import annotations

from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.objectives.objective import Objective
from workbench.choices.schedules.schedule import Scheduled


class Masked(Objective):
    """Predict masked tokens from both sides (BERT)."""

    kind: Literal["masked"] = "masked"
    mask_rate: Scheduled = knob(0.15, "share of positions that are labelled")
    corruption: Literal["80-10-10", "all_mask"] = knob("80-10-10", "what stands at a labelled position: [MASK] / a random token / the token itself, or always [MASK]")
