"""Base of masked and causal models: a head over a vocabulary and the cross-entropy of labelled positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.layout import everywhere, padded
from workbench.choices.objectives.objective import Builder, Labelled, Loss, Objective, TrainingModel
from workbench.choices.objectives.sampled_softmax import draw_words, sampled_nats
from workbench.choices.progress import Progress

# Shape legend: B rows, T positions, D width, N labelled slots, V vocabulary rows.

_EAGER_ROWS = 1024
"""Rows that go through the head at once where it is not compiled: bounds the float32 logits to 1024 x V."""


class TokenPrediction(TrainingModel):
    """A backbone whose labelled positions are scored against one token each.

    Subclasses say which positions and tokens (:meth:`labelled`). The head runs on labelled rows only, unless
    :meth:`lay_out` says otherwise. Head and loss are one region, compiled as one: the float32 logits, their
    exponentials and the label's one-hot never reach memory, and accuracy costs nothing beside the maximum that the
    softmax needs anyway.
    """

    def __init__(self, choice: Objective, builder: Builder, architecture: Architecture | None = None) -> None:
        super().__init__()
        self.choice = choice
        architecture = architecture or builder.architecture
        self.backbone = builder.backbone(architecture)
        self.head = architecture.build_head(self.backbone)
        self.vocabulary = builder.vocabulary
        self.seed = builder.seed
        self._score_region: Callable[..., tuple[Tensor, Tensor]] = self.score
        self._sampled_region: Callable[..., Tensor] = sampled_nats
        self._everywhere = self._padded = False
        # The mask of a part of several, whose backbone may have been built for another; None as it was built.
        self.causal: bool | None = None

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return the tokens (B, T) that the backbone sees and the N tokens that it must predict."""
        raise NotImplementedError

    def lay_out(self, head: str, padding: str) -> None:
        """See :meth:`TrainingModel.lay_out`, which is about steps on rows (B, T); scoring keeps its own layout."""
        self._everywhere, self._padded = head == "all", padding == "kept"

    def inputs(self, batch: Batch, progress: Progress) -> tuple[Labelled, Batch]:
        """Return (B, T) tokens and N slots for backbone and head, in the layout of :meth:`lay_out`."""
        seen = self.labelled(batch, progress)
        if self._padded:
            seen, batch = padded(seen, batch, self.vocabulary.pad)
        return everywhere(seen) if self._everywhere else seen, batch

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return the nats of tokens (B, T) summed over labels that count; ``accuracy`` sums right predictions."""
        seen, batch = self.inputs(batch, progress)
        return self.loss_of(*self.scores(self.states(seen, batch, plan), seen.labels_N, seen.weight_N, batch))

    def scores(self, x_ND: Tensor, labels_N: Tensor, weight_N: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return what :meth:`score` gives; with sampled words their nats, and None, for which guess is best is unknown.

        Args:
            x_ND: states of the slots. labels_N, weight_N: of the slots. batch: decides which words are drawn.
        """
        many = getattr(self.choice, "sampled_words", 0)
        if not many:
            return self._score_region(x_ND, labels_N, weight_N)
        words = draw_words(many, self.vocabulary.size, self.seed, batch.samples_B)
        return self._sampled_region(self.head, x_ND, labels_N, weight_N, *words), None

    @staticmethod
    def loss_of(nats: Tensor, hits: Tensor | None) -> Loss:
        """Return what :meth:`scores` gives, 0-d each, as a loss with one part."""
        return Loss({"loss": nats}, {} if hits is None else {"accuracy": hits.detach()})

    @torch.no_grad()
    def heldout(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        """Return the nats of each scored token of rows (B, T), (N,), float32.

        The head runs in float32 whatever precision the blocks run in.
        """
        return self.nats(self.read(seen, None), batch, plan)

    def nats(self, seen: Labelled, batch: Batch, plan: LayerPlan) -> Tensor:
        """Return the weighted nats of each label, (N,), with the head in float32, without gradient wanted."""
        chunks = self._exact_logits(self.states(seen, batch, plan))
        nats = [
            F.cross_entropy(logits_RV, labels_R, reduction="none")
            for logits_RV, labels_R in zip(chunks, seen.labels_N.split(_EAGER_ROWS), strict=True)
        ]
        return torch.cat(nats) * seen.weight_N

    @torch.no_grad()
    def token_logits(self, batch: Batch, seen: Labelled, plan: LayerPlan, *, causal: bool | None = None) -> Tensor:
        """See :meth:`TrainingModel.token_logits`; (N, V)."""
        return torch.cat(list(self._exact_logits(self.states(self.read(seen, causal), batch, plan))))

    def read(self, seen: Labelled, causal: bool | None) -> Labelled:
        """Return the slots (N,) from whose states the tokens in question are read, and the mask to read them under.

        Args:
            seen, causal: as for :meth:`token_logits`.
        """
        assert causal in (None, self.choice.causal), f"'{self.choice.kind}' reads tokens in one way alone"  # type: ignore[attr-defined]
        return seen

    def _exact_logits(self, x_ND: Tensor) -> Iterator[Tensor]:
        """Yield float32 logits (R, V) of states (N, D), a chunk of rows at a time."""
        for x_RD in x_ND.split(_EAGER_ROWS):
            # A logit near 10 rounded to bf16 is off by up to 1/32: as much as the verdict "equivalent" allows.
            with torch.autocast(x_ND.device.type, enabled=False):
                logits_RV = self.head(x_RD.float())
            yield logits_RV

    def compile(self, **options: Any) -> None:
        """Compile every block by itself, and head with loss as one region. Weights keep their names."""
        self.backbone.compile_blocks(**options)
        self._score_region = torch.compile(self.score, **options)
        self._sampled_region = torch.compile(sampled_nats, **options)

    def states(self, seen: Labelled, batch: Batch, plan: LayerPlan) -> Tensor:
        """Return final hidden states of the labelled slots, (N, D);
        the backbone skips what only other positions need.
        """
        causal = self.causal if seen.causal is None else seen.causal
        if seen.index_N is None:
            # (B, T, D) -> (N, D) with N = B * T.
            return self.backbone(seen.tokens_BT, batch, plan, None, causal).flatten(0, 1)
        return self.backbone(seen.tokens_BT, batch, plan, seen.index_N, causal)

    def score(self, x_ND: Tensor, labels_N: Tensor, weight_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return nats and right predictions, 0-d, summed over the labels (N,) that count; states are (N, D).

        Of several weights for each label, (P, N), a sum for each: (P,).
        """
        # Under bf16 autocast the product is rounded to bf16 (steps of 1/16 between 8 and 16), and float32 from here on:
        # softmax and loss add no rounding of their own. Evaluation computes the product in float32 as well.
        return self.scored(self.head(x_ND).float(), labels_N, weight_N)

    @staticmethod
    def scored(logits_NV: Tensor, labels_N: Tensor, weight_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return nats and right predictions, 0-d, of float32 logits (N, V); see :meth:`score`."""
        nats_N = F.cross_entropy(logits_NV, labels_N, reduction="none")
        return (nats_N * weight_N).sum(-1), (hits_of(logits_NV, labels_N) * weight_N).sum(-1)


@torch.no_grad()
def hits_of(logits_NV: Tensor, labels_N: Tensor) -> Tensor:
    """Return 1 for labels with the highest logit, else 0, (N,); of k equal maxima the label is one in k."""
    # Against the maximum, which the softmax needs anyway. bf16 leaves few enough values that ties are common (1.75% of
    # random rows).
    best_N1 = logits_NV.amax(-1, keepdim=True)
    return (logits_NV.gather(1, labels_N[:, None]) >= best_N1)[:, 0] / (logits_NV >= best_N1).sum(-1)
