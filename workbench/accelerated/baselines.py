"""The baseline of a user's held-out loss where that predicts tokens: what word frequencies alone would reach."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from workbench.accelerated.batches import epoch_of, predicted_tokens

MOST_BATCHES = 200
"""Batches of training whose labels are counted: frequencies settle long before."""


def vocabulary_of(model: nn.Module) -> int | None:
    """Return rows of a language model's output matrix, as models of transformers tell; None of any other model."""
    found = getattr(model, "get_output_embeddings", lambda: None)()
    weight = getattr(found, "weight", None)
    return len(weight) if isinstance(weight, Tensor) else None


def unigram_baseline(model: nn.Module, loader: Iterable[Any], heldout: Iterable[Any], seed: int) -> float | None:
    """Return nats per held-out token of the training labels' frequencies, add-one;
    None where no tokens are predicted.
    """
    size = vocabulary_of(model)
    if size is None:
        return None
    counts = torch.ones(size, dtype=torch.float64)
    with torch.random.fork_rng(devices=[]):
        for content in itertools.islice(epoch_of(loader, seed, 0), MOST_BATCHES):
            labels = predicted_tokens(content)
            if labels is None:
                return None
            counts += torch.bincount(labels, minlength=size)
        nats, scored = -(counts / counts.sum()).log(), []
        torch.manual_seed(seed)
        for content in epoch_of(heldout, seed, 0):
            if (labels := predicted_tokens(content)) is None:
                return None
            scored.append(nats[labels])
    every = torch.cat(scored) if scored else nats[:0]
    return float(every.mean()) if len(every) else None
