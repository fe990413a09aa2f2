"""Classes of sentences or pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from workbench.base.errors import DataError
from workbench.choices.choice import knob
from workbench.choices.objectives.fine_tuning import FineTuning
from workbench.choices.tasks.encoding import Encoded
from workbench.choices.tasks.files import Example
from workbench.choices.tasks.rows import ExampleBatch
from workbench.choices.tasks.scores import accuracy, f1, matthews

# Shape legend: E examples of a batch, N of a split, C classes.


class Classify(FineTuning):
    """Tell the class of a sentence or a pair of sentences.

    L = mean over examples of -log softmax(W x + b)[class], with x the state of the first token (D,).

    Source: Devlin et al. 2019 (arXiv 1810.04805), section 4.1, without BERT's pooler.
    """

    kind: Literal["classify"] = "classify"
    labels: tuple[str, ...] = knob(..., "names of the classes", min_length=2)

    @property
    def outputs(self) -> int:
        """One per class, (E, C)."""
        return len(self.labels)

    def target(self, label: str) -> int:
        """Return the place of a label among the C classes.

        Raises:
            DataError: training has none like it.
        """
        if label not in self.labels:
            raise DataError(f"label '{label}' was never seen in training; it has {', '.join(self.labels)}")
        return self.labels.index(label)

    def nats(self, outputs: Tensor, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return cross-entropy and right classes, 0-d each, summed over the outputs (E, C)."""
        right_E = outputs.argmax(-1) == batch.targets_E
        return F.cross_entropy(outputs, batch.targets_E, reduction="sum"), {"accuracy": right_E.sum().float()}

    def scores(self, outputs: Sequence[np.ndarray], encoded: Encoded) -> dict[str, float]:
        """Return accuracy, F1 and Matthews' correlation of outputs (C,)."""
        return self._scores(np.array([int(each.argmax()) for each in outputs]), encoded.targets)

    def baseline(self, train: Sequence[Example], examples: Sequence[Example]) -> dict[str, float]:
        """Return the scores of the class that training has most often, of C."""
        ((most, _),) = Counter(each.label for each in train).most_common(1)
        true_N = np.array([self.target(each.label) for each in examples])
        return self._scores(np.full(len(true_N), self.target(most)), true_N)

    def _scores(self, said_N: np.ndarray, true_N: np.ndarray) -> dict[str, float]:
        return {"accuracy": accuracy(said_N, true_N), "f1": f1(said_N, true_N), "matthews": matthews(said_N, true_N)}
