"""Removal of the documents whose words are the rarest, or the commonest, of the corpus."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np

from workbench.choices.choice import knob
from workbench.choices.data.steps.step import Document, Step, Verdict, kept, removed

MOST_WORDS = 2_000_000
"""With more different words those seen once are forgotten: some 300 MB of memory at most."""
_WORD = re.compile(r"[^\W\d_]+")


class Prevalence(Step):
    """Removes a share of the documents by the mean log frequency of their words in this corpus.

    s(d) = 1/n sum_i log p(w_i), with p from the counts of all documents.

    Source: Geiping and Goldstein 2022, Cramming (arXiv 2212.14034), section 4.4, which orders by it.
    """

    kind: Literal["prevalence"] = "prevalence"
    share: float = knob(0.1, "share of the documents to remove", gt=0, lt=1)
    end: Literal["rarest", "commonest"] = knob("rarest", "which end is removed: rare words, or common ones alone")

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts after two passes: counts of words, then scores. Memory holds 8 bytes a document."""
        counts = word_counts(documents)
        total = counts.total()
        scores_D = np.array([mean_log_share(counts, total, document.text) for document in documents])
        sign = 1 if self.end == "rarest" else -1
        gone = int(self.share * len(scores_D))
        # Stable: of equal scores the later documents stay.
        order_D = np.argsort(sign * scores_D, kind="stable")[:gone]
        gone_D = np.zeros(len(scores_D), bool)
        gone_D[order_D] = True
        reason = f"{'rare' if self.end == 'rarest' else 'common'} words"
        for document, score, is_gone in zip(documents, scores_D.tolist(), gone_D.tolist(), strict=True):
            yield removed(document, reason, f"mean log share {score:.2f}") if is_gone else kept(document)


def words_of(text: str) -> list[str]:
    """Return the runs of letters of a text, in small letters."""
    return _WORD.findall(text.lower())


def word_counts(documents: Iterable[Document]) -> Counter[str]:
    """Return how often each word occurs; of more than :data:`MOST_WORDS` those that occur once are left out."""
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(words_of(document.text))
        if len(counts) > MOST_WORDS:
            counts = Counter({word: count for word, count in counts.items() if count > 1})
    return counts


def mean_log_share(counts: Counter[str], total: int, text: str) -> float:
    """Return the mean natural logarithm of its words' shares of the corpus; a word not counted counts as seen once.

    A text without words has that of a word seen once.

    Args:
        counts: occurrences of each word. total: of all words.
    """
    words = words_of(text)
    return sum(math.log(counts.get(word, 1)) for word in words) / max(1, len(words)) - math.log(max(1, total))
