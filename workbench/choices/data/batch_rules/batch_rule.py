"""Base of the batch rules: rows of the coming step from those of the schedule and two halves of a gradient."""

from __future__ import annotations

from typing import ClassVar, Literal

from workbench.choices.choice import Choice, knob

POWERS = {"none": 0.0, "sqrt": 0.5, "linear": 1.0}
"""``lr_scaling`` -> power of the batch that the learning rate follows."""


class BatchRule(Choice):
    """Base of the batch rules. A rule is a pure function; its state, the rows it has come to, is the training's."""

    axis: ClassVar[str] = "batch_rule"
    follows_schedule: ClassVar[bool] = True
    """True if ``data.batch_size`` is read at every step, rather than as the batch to begin with."""
    lr_scaling: Literal["none", "sqrt", "linear"] = knob(
        "none", "how the learning rate follows the batch size; optimizer.lr applies to the largest of data.batch_size"
    )

    def rows(self, scheduled: int, adapted: float | None) -> float:
        """Return rows of the coming step, not yet rounded to whole micro-batches.

        Args:
            scheduled: what ``data.batch_size`` says at this point of the run.
            adapted: what :meth:`adapt` gave last, None before it was ever asked.
        """
        return float(scheduled)

    def compares(self, step: int) -> bool:
        """Return whether the gradients of both halves of the batch of ``step`` (from 0) are to be compared."""
        return False

    def adapt(self, rows: float, cosine: float) -> float:
        """Return rows from the next step on, where a step of ``rows`` rows had halves whose gradients have this
        cosine.
        """
        return rows

    def rate_factor(self, rows: int, reference: int) -> float:
        """Return factor of the learning rate for a batch of ``rows`` rows where it was set for ``reference`` rows.

        Example:
            >>> from workbench.choices.data.batch_rules import AsScheduled
            >>> AsScheduled(lr_scaling="sqrt").rate_factor(8, 32)
            0.5
        """
        # Exactly 1 for the reference, whatever the power: a rule that changes nothing must change no bit.
        return scaled_rate(1.0, reference, rows, self.lr_scaling)


def scaled_rate(rate: float, tuned_rows: int, rows: int, scaling: Literal["none", "sqrt", "linear"] = "sqrt") -> float:
    """Return a learning rate brought from the batch it was tuned at to the batch in use: rate (rows / tuned_rows)^a.

    Args:
        tuned_rows: rows of the batch it was tuned at.
        scaling: a = 0, 1/2 or 1. The square root keeps the noise of the weights' path, as You et al. 2020
            (arXiv 1904.00962) found for layerwise rates; linear is Goyal et al. 2017 (arXiv 1706.02677).

    Example:
        >>> scaled_rate(0.005, 32_768, 512)
        0.000625
    """
    return rate * float((rows / tuned_rows) ** POWERS[scaling])
