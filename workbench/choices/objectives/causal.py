"""Next-token prediction."""

from __future__ import annotations

from typing import ClassVar, Literal

from workbench.choices.objectives.objective import Objective


class Causal(Objective):
    """Predict the next token from the left (GPT)."""

    kind: Literal["causal"] = "causal"
    causal: ClassVar[bool] = True
