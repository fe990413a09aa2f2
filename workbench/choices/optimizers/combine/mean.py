"""One step with the mean gradient of the batch."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from workbench.choices.optimizers.combine.combine import Combine


class Mean(Combine):
    """One step with the mean gradient over all labels of the batch."""

    kind: Literal["mean"] = "mean"

    def pair(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        """Never asked, since there is one worker; gives the mean of updates of any shapes."""
        return [(a + b) / 2 for a, b in zip(left, right, strict=True)]
