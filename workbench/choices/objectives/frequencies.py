"""Word frequencies of the training text: what a model that reads no context can know."""

from __future__ import annotations

import numpy as np

from workbench.choices.data.tokens import Vocabulary

# Shape legend: V ids of the vocabulary.


def predictable(vocabulary: Vocabulary, *, causal: bool) -> np.ndarray:
    """Return the ids that can be asked for, bool (V,): the ordinary ones, for causal models also a document's end."""
    legal_V = np.arange(vocabulary.size) < vocabulary.used
    legal_V[list(vocabulary.special)] = False
    if causal:
        legal_V[vocabulary.sep] = True
    return legal_V


def frequencies(counts_V: np.ndarray, legal_V: np.ndarray) -> np.ndarray:
    """Return add-one shares of the legal ids, float64 of shape (V,); 0 for the others, 1 in all.

    Args:
        counts_V: occurrences of each id.
        legal_V: from :func:`predictable`.

    Example:
        >>> frequencies(np.array([9, 2, 0]), np.array([False, True, True])).tolist()
        [0.0, 0.75, 0.25]
    """
    smoothed_V = np.where(legal_V, counts_V + 1.0, 0.0)
    shares_V: np.ndarray = smoothed_V / smoothed_V.sum()
    return shares_V


def entropy(shares: np.ndarray) -> float:
    """Return entropy in nats of probabilities that sum to 1, of any shape; zeros count for nothing."""
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())
