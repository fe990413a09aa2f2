"""Scores of predictions: accuracy, F1, Matthews, Spearman, and SQuAD's exact match and F1."""

from __future__ import annotations

import collections
import re
import string
from collections.abc import Callable, Sequence

import numpy as np

# Shape legend: N examples, C classes.


def accuracy(predicted_N: np.ndarray, true_N: np.ndarray) -> float:
    """Return the share of right classes, (N,)."""
    return float((predicted_N == true_N).mean())


def f1(predicted_N: np.ndarray, true_N: np.ndarray) -> float:
    """Return F1 of class 1 where the classes (N,) are 0 and 1, else the mean of all classes' (macro).

    2 TP / (2 TP + FP + FN); 0 for a class that is never right.
    """
    highest = max(int(true_N.max()), int(predicted_N.max()), 1)

    def of(label: int) -> float:
        right = int(((predicted_N == label) & (true_N == label)).sum())
        said = int((predicted_N == label).sum()) + int((true_N == label).sum())
        return 2 * right / said if said else 0.0

    return of(1) if highest == 1 else float(np.mean([of(label) for label in range(highest + 1)]))


def matthews(predicted_N: np.ndarray, true_N: np.ndarray) -> float:
    """Return Matthews' correlation of classes, (N,), of any number (Gorodkin 2004); 0 where one side is constant."""
    size = int(max(predicted_N.max(), true_N.max())) + 1
    table_CC = np.zeros((size, size))
    np.add.at(table_CC, (true_N, predicted_N), 1)
    total, right = table_CC.sum(), np.trace(table_CC)
    true_C, said_C = table_CC.sum(1), table_CC.sum(0)
    spread = (total**2 - said_C @ said_C) * (total**2 - true_C @ true_C)
    return float((right * total - true_C @ said_C) / np.sqrt(spread)) if spread > 0 else 0.0


def spearman(predicted_N: np.ndarray, true_N: np.ndarray) -> float:
    """Return the correlation of ranks of numbers, (N,), ties at their mean rank; 0 where one side is constant."""
    first, second = _ranks(predicted_N), _ranks(true_N)
    first, second = first - first.mean(), second - second.mean()
    spread = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / spread) if spread > 0 else 0.0


def _ranks(values_N: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values_N, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse.ravel()])


def normalised(answer: str) -> str:
    """Return an answer in small letters without articles, punctuation and double spaces, as SQuAD's script compares.

    Example:
        >>> normalised("The  Denver Broncos!")
        'denver broncos'
    """
    plain = "".join(letter for letter in answer.lower() if letter not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def exact(predicted: str, answer: str) -> float:
    """Return 1 where two answers are equal once :func:`normalised`."""
    return float(normalised(predicted) == normalised(answer))


def overlap(predicted: str, answer: str) -> float:
    """Return F1 of the words that two answers share, once :func:`normalised`.

    Example:
        >>> overlap("the Denver Broncos", "Broncos")
        0.6666666666666666
    """
    said, true = normalised(predicted).split(), normalised(answer).split()
    shared = sum((collections.Counter(said) & collections.Counter(true)).values())
    return 2 * shared / (len(said) + len(true)) if shared else 0.0


def best_of_answers(
    score: Callable[[str, str], float], predicted: Sequence[str], answers: Sequence[Sequence[str]]
) -> float:
    """Return the mean over questions of the best score against any of a question's answers (Rajpurkar et al. 2016)."""
    return float(
        np.mean([max(score(said, each) for each in true) for said, true in zip(predicted, answers, strict=True)])
    )
