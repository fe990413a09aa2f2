"""Answers out of scores for their first and last token, and a baseline that knows no language."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from workbench.choices.tasks.encoding import Encoded
from workbench.choices.tasks.files import Example
from workbench.choices.tasks.scores import normalised

LONGEST_TOKENS = 30
"""Longest answer that is looked for, as in SQuAD's script of BERT."""
LIKELIEST = 20
"""Starts and ends of a window that are tried."""


def best_answers(scores: Sequence[np.ndarray], encoded: Encoded) -> list[str]:
    """Return the likeliest answer to every question, over all windows of its passage.

    The best sum of a start's and an end's score, start not behind end, both in the passage.

    Args:
        scores: by window of T tokens, (T, 2): of start and end.
    """
    best: dict[int, tuple[float, str]] = {}
    for found_T2, place, context, characters in zip(
        scores, encoded.example_W, encoded.context_W, encoded.spans, strict=True
    ):
        passage_T2 = found_T2[context : context + len(characters)]
        starts, ends = (np.argsort(-passage_T2[:, side], kind="stable")[:LIKELIEST] for side in (0, 1))
        for start in starts:
            for end in ends[(ends >= start) & (ends < start + LONGEST_TOKENS)]:
                score = float(passage_T2[start, 0] + passage_T2[end, 1])
                if score > best.get(int(place), (-np.inf, ""))[0]:
                    text = encoded.examples[place].texts[1][characters[start, 0] : characters[end, 1]]
                    best[int(place)] = score, text
    return [best.get(place, (0.0, ""))[1] for place in range(len(encoded.examples))]


def overlapping_sentence(example: Example) -> str:
    """Return the sentence of a passage that shares the most words with the question, the first of several.

    Example:
        >>> overlapping_sentence(Example("", "", ("Who sat?", "It rained. The cat sat. Dogs ran."), ()))
        'The cat sat.'
    """
    question, passage = example.texts
    asked = set(normalised(question).split())
    sentences = re.split(r"(?<=[.!?])\s+", passage)
    return max(sentences, key=lambda sentence: len(asked & set(normalised(sentence).split())))
