"""Numbers for sentences or pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.objectives.fine_tuning import FineTuning
from workbench.choices.tasks.encoding import Encoded
from workbench.choices.tasks.files import Example
from workbench.choices.tasks.rows import ExampleBatch
from workbench.choices.tasks.scores import spearman

# Shape legend: E examples of a batch, N of a split.


class Regress(FineTuning):
    """Tell a number for a sentence or a pair of sentences, such as how alike two are.

    L = mean over examples of z^2 / 2 + log(2 pi) / 2, z = W x + b - (label - mean) / spread: nats of a Gaussian whose
    spread is the training labels', (E, 1).

    Source: Devlin et al. 2019 (arXiv 1810.04805), appendix B (STS-B), on standardised labels.
    """

    kind: Literal["regress"] = "regress"
    mean: float = knob(0.0, "mean of the training labels")
    spread: float = knob(1.0, "standard deviation of the training labels", gt=0)

    def target(self, label: float) -> np.float32:
        """Return a label as the head predicts it: 0 is the training labels' mean, 1 their spread (shape ())."""
        return np.float32((label - self.mean) / self.spread)

    def nats(self, outputs: Tensor, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return nats summed over the outputs (E, 1), 0-d."""
        off_E = outputs[:, 0] - batch.targets_E
        return (off_E.square() / 2 + math.log(2 * math.pi) / 2).sum(), {}

    def scores(self, outputs: Sequence[np.ndarray], encoded: Encoded) -> dict[str, float]:
        """Return Spearman's correlation of outputs (1,) and labels."""
        return {"spearman": spearman(np.array([float(each[0]) for each in outputs]), encoded.targets)}

    def baseline(self, train: Sequence[Example], examples: Sequence[Example]) -> dict[str, float]:
        """Return 0: the mean of the training labels, (1,) for all, is in no order."""
        return {"spearman": 0.0}
