"""Next-token prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from workbench.base.text import many
from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.flops import head_flops
from workbench.choices.choice import knob
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Builder, Labelled, Loss, TrainingModel
from workbench.choices.objectives.preview import Preview, Shown, shown_next
from workbench.choices.objectives.sampled_softmax import PredictsWords
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Scheduled, at, scheduled_knob


class Causal(PredictsWords):
    """Predict the next token from the left (GPT).

    L = mean over positions t of -log p(x_{t+1} | x_1 .. x_t) within one piece of a document: the last token of a
    piece predicts nothing, because what follows it in the packed row is another text.

    With ``further_tokens`` n, a further layer h_k = x + W_k x for each k = 2 .. n + 1 predicts x_{t+k} through the same
    output matrix, and L gains w * mean of -log p_k(x_{t+k} | x_1 .. x_t) for each. The held-out score is the next
    token's alone.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", equation 1. Further
    tokens: Gloeckle et al. 2024 (arXiv 2404.19737), with whole blocks where ours are one matrix each.
    """

    kind: Literal["causal"] = "causal"
    further_tokens: int = knob(
        0, "tokens behind the next that are predicted as well, each by a layer of its own", ge=0, le=3
    )
    further_weight: Scheduled = scheduled_knob(0.3, "weight of each further token's loss beside the next one's", ge=0)
    causal: ClassVar[bool] = True
    generates: ClassVar[Literal["next", "unmask"] | None] = "next"

    def build(self, builder: Builder) -> TrainingModel:
        """Return a causal backbone, states (B, T, D), with a head; nothing is drawn, so no seed matters."""
        return CausalModel(self, builder)

    @property
    def added_parts(self) -> tuple[str, ...]:
        """Names of the further tokens' losses, () each."""
        return tuple(f"ahead_{ahead}" for ahead in range(2, self.further_tokens + 2))

    def flops(
        self, architecture: Architecture, vocabulary_size: int, plans: Sequence[LayerPlan], tokens: int, labelled: int,
        span: float, length: int,
    ) -> float:  # fmt: skip
        """Return the useful FLOPs of one step; each further token adds the head and a matrix (D, D) for every label."""
        once = super().flops(architecture, vocabulary_size, plans, tokens, labelled, span, length)
        heads = sum(head_flops(architecture, self.compared(vocabulary_size), plan) for plan in plans) / len(plans)
        return once + self.further_tokens * labelled * (heads + 6.0 * architecture.width**2)

    def labelled_fraction(self, progress: Progress) -> float:
        """1: each of a row's T tokens predicts the next (ends of pieces do, with weight 0)."""
        return 1.0

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T) as they are: every token is asked for the next of its piece."""
        return shown_next(batch, follows(batch))

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """See :meth:`Objective.previews`, row (T,)."""
        (row,) = super().previews(tokens, vocabulary, seed)
        further = many(self.further_tokens, "token")
        words = f"Each place is asked for the {further} behind the next one as well." if self.further_tokens else ""
        return [row._replace(words=words)]


def follows(batch: Batch, ahead: int = 1) -> Tensor:
    """Return 1 where the token so many places behind belongs to the same piece, else 0, float32 (B, T)."""
    weight_BT = torch.zeros_like(batch.tokens_BT, dtype=torch.float32)
    # The last columns keep 0: what is behind them stands in another row.
    weight_BT[:, :-ahead] = batch.documents_BT[:, ahead:] == batch.documents_BT[:, :-ahead]
    return weight_BT


def next_tokens(batch: Batch) -> Labelled:
    """Return the batch as it is, tokens (B, T), and the next token at every slot; at ends of pieces it weighs 0."""
    # The first token wraps around to the last column, where the weight is 0; shapes stay (B, T).
    labels_BT = batch.tokens_BT.roll(-1, dims=1)
    return Labelled(batch.tokens_BT, None, labels_BT.flatten(), follows(batch).flatten())


class CausalModel(TokenPrediction):
    """A causal backbone that predicts the next token, logits (N, V); arguments as for :class:`TokenPrediction`."""

    choice: Causal

    def __init__(self, choice: Causal, builder: Builder, architecture: Architecture | None = None) -> None:
        super().__init__(choice, builder, architecture)
        width = self.backbone.embedding.weight.shape[1]
        self.further = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in choice.added_parts)
        for layer in self.further:
            nn.init.normal_(layer.weight, std=0.02)  # type: ignore[arg-type]

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the tokens of rows (B, T) that another one of the same piece follows, so many places behind."""
        if not self.further:
            return {"loss": int(follows(batch).sum())}
        return {f"ahead_{ahead}": int(follows(batch, ahead).sum()) for ahead in range(1, len(self.further) + 2)}

    def weights(self, progress: Progress) -> dict[str, float]:
        """Return the weight of the further tokens' losses; of rows (B, T)."""
        return dict.fromkeys(self.choice.added_parts, at(self.choice.further_weight, progress))

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return the nats of tokens (B, T) summed over labels, of the next and of every further token."""
        if not self.further:
            return super().forward(batch, plan, progress)
        seen = self.labelled(batch, progress)
        x_ND = self.states(seen, batch, plan)
        nats, hits = self.scores(x_ND, seen.labels_N, seen.weight_N, batch)
        parts, metrics = {"ahead_1": nats}, self.loss_of(nats, hits).metrics
        for ahead, layer in enumerate(self.further, 2):
            labels_N, weight_N = batch.tokens_BT.roll(-ahead, dims=1).flatten(), follows(batch, ahead).flatten()
            parts[f"ahead_{ahead}"], hits = self.scores(x_ND + layer(x_ND), labels_N, weight_N, batch)
            if hits is not None:
                metrics[f"ahead_{ahead}_accuracy"] = hits.detach()
        return Loss(parts, metrics)

    def lay_out(self, head: str, padding: str) -> None:
        """See :meth:`TrainingModel.lay_out`; further tokens are known in packed rows (B, T) alone."""
        (TrainingModel if self.further else TokenPrediction).lay_out(self, head, padding)

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return the batch as it is, tokens (B, T); labels at ends of pieces weigh 0."""
        return next_tokens(batch)
