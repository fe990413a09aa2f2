"""Sampled softmax: the loss of a large vocabulary from the label and some drawn words, in training alone.

    log Z ~ log( exp(s_label) + sum over drawn w_j != label of exp(s_j - log(k q(w_j))) )

With words drawn with replacement from q, the sum inside is an unbiased estimate of the softmax's denominator, so that
loss and gradient approach the full ones as k grows (Bengio & Senecal 2008; Jean et al. 2015, arXiv 1412.2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.flops import step_flops
from workbench.choices.architectures.heads import LinearHead
from workbench.choices.architectures.modular import Modular
from workbench.choices.choice import Problem, knob
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.draws import WORDS, uniforms
from workbench.choices.objectives.objective import Objective

# Shape legend: N labelled slots, D width, V vocabulary rows, K drawn words.


class PredictsWords(Objective):
    """Base of the objectives whose head over the vocabulary may train on drawn words."""

    sampled_words: int = knob(
        0, "words drawn per micro-batch that training compares each label with; 0: all words. Scores use all", ge=0,
        le=1 << 20,
    )  # fmt: skip

    def compared(self, vocabulary_size: int) -> int:
        """Return how many words a label is compared with in training, of V."""
        return self.sampled_words + 1 if self.sampled_words else vocabulary_size

    def flops(
        self, architecture: Architecture, vocabulary_size: int, plans: Sequence[LayerPlan], tokens: int, labelled: int,
        span: float, length: int,
    ) -> float:  # fmt: skip
        """Return the useful FLOPs of one step; of sampled words the label and the drawn ones count, not all V."""
        return step_flops(architecture, self.compared(vocabulary_size), plans, tokens, labelled, span, length)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a head that cannot be asked for some words (N, K) alone, as one of another library."""
        yield from super().problems(recipe)
        if self.sampled_words and not isinstance(recipe.architecture, Modular):
            yield Problem(
                "objective.sampled_words",
                f"architecture '{recipe.architecture.kind}' brings a head that computes all words; use 0, or "
                "architecture 'pre_ln' or 'post_ln'",
            )


def draw_words(count: int, size: int, seed: int, samples_B: Tensor) -> tuple[Tensor, Tensor]:
    """Draw words with replacement, log-uniformly: q(w) = log((w + 2) / (w + 1)) / log(V + 1).

    Tokenizers give small ids to what is frequent, so q follows the words' frequencies roughly (Zipf). Whatever q is,
    the correction makes up for it.

    Args:
        count: K.
        size: V.
        seed: of the recipe.
        samples_B: global sample indices of the micro-batch; the first one decides the draw.

    Returns:
        int64 ids, (K,), and log(K q(w)) of each, (K,), float32.
    """
    uniform_K = uniforms(seed, WORDS, samples_B[:1], count)[0]
    words_K = (torch.exp(uniform_K * math.log(size + 1)) - 1).long().clamp(max=size - 1)
    chance_K = torch.log1p(1 / (words_K.double() + 1)) / math.log(size + 1)
    return words_K, torch.log(count * chance_K).float()


def sampled_nats(
    head: LinearHead, x_ND: Tensor, labels_N: Tensor, weight_N: Tensor, words_K: Tensor, expected_K: Tensor
) -> Tensor:
    """Return the nats of labels against drawn words, summed over those that count, 0-d.

    Args:
        head: over the vocabulary.
        x_ND: states.
        labels_N, weight_N: as of :class:`~workbench.choices.objectives.objective.Labelled`.
        words_K, expected_K: as :func:`draw_words` gives them.
    """
    found_ND = head.features(x_ND)
    right_N = (found_ND.float() * F.embedding(labels_N, head.weight).float()).sum(-1)
    logits_NK = F.linear(found_ND, F.embedding(words_K, head.weight)).float() - expected_K
    if head.bias is not None:
        right_N, logits_NK = right_N + head.bias[labels_N], logits_NK + head.bias[words_K]
    # A drawn word that is the label stands there already.
    logits_NK = logits_NK.masked_fill(words_K == labels_N[:, None], -torch.inf)
    nats_N = torch.logaddexp(right_N, logits_NK.logsumexp(-1)) - right_N
    return (nats_N * weight_N).sum()
