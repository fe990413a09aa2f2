"""Answers out of passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.choices.objectives.fine_tuning import FineTuning, within
from workbench.choices.tasks.answers import best_answers, overlapping_sentence
from workbench.choices.tasks.encoding import Encoded
from workbench.choices.tasks.files import Example
from workbench.choices.tasks.rows import ExampleBatch
from workbench.choices.tasks.scores import best_of_answers, exact, overlap

# Shape legend: E windows of a batch, T tokens of the longest.


class AnswerSpan(FineTuning):
    """Find the answer to a question in a passage: its first and its last token.

    L = mean over windows of -(log p(first) + log p(last)) / 2, each a softmax over [CLS] and the passage's tokens,
    (E, T); a window without the whole answer points at [CLS].

    Source: Devlin et al. 2019 (arXiv 1810.04805), section 4.2, and its script run_squad.py.
    """

    kind: Literal["answer"] = "answer"
    whole: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        """Scores of first and last token, (E, T, 2)."""
        return 2

    def nats(self, outputs: Tensor, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return nats and right windows, 0-d each, summed over the outputs (E, T, 2)."""
        place_T = torch.arange(outputs.shape[1], device=outputs.device)
        # The last token is [SEP].
        passage_ET = (place_T >= batch.context_E[:, None]) & within(batch.lengths_E - 1, len(place_T))
        scores_ET2 = outputs.masked_fill(~(passage_ET | (place_T == 0))[..., None], -torch.inf)
        nats = F.cross_entropy(scores_ET2.transpose(1, 2).flatten(0, 1),
                               batch.targets_E.flatten(), reduction="sum") / 2  # fmt: skip
        right_E = (scores_ET2.argmax(1) == batch.targets_E).all(-1)
        return nats, {"accuracy": right_E.sum().float()}

    def scores(self, outputs: Sequence[np.ndarray], encoded: Encoded) -> dict[str, float]:
        """Return SQuAD's F1 and exact match of outputs (T, 2), the best against any of a question's answers."""
        return self._scores(best_answers(outputs, encoded), encoded.examples)

    def baseline(self, train: Sequence[Example], examples: Sequence[Example]) -> dict[str, float]:
        """Return the scores of the sentence that shares the most words with the question, out of (T, 2) nothing."""
        return self._scores([overlapping_sentence(each) for each in examples], examples)

    def _scores(self, said: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
        true = [[answer.text for answer in each.label] for each in examples]
        return {"f1": best_of_answers(overlap, said, true), "exact_match": best_of_answers(exact, said, true)}
