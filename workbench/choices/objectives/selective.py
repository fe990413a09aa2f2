"""Learning from chosen tokens, those that cost most beyond a reference model; here of next-token prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.flops import step_flops
from workbench.choices.choice import Problem, knob
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.causal import follows, next_tokens
from workbench.choices.objectives.objective import Builder, Labelled, Loss, Objective, TrainingModel
from workbench.choices.objectives.preview import START, Preview, Shown, shown_next
from workbench.choices.objectives.token_prediction import TokenPrediction, hits_of
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Scheduled, at, scheduled_knob

# Shape legend: B rows, T positions, D width, K slots of a row, N = B * K; K = T where every next token is asked for.


class ChoosesTokens(Objective):
    """Base of the objectives that learn from some of the tokens (N,) that they ask for."""

    # A phase of another run of objectives would have to find the reference as well.
    one_network: ClassVar[bool] = False
    keep: Scheduled = scheduled_knob(0.6, "share of the labels of each row that count", gt=0, le=1)
    run: str = knob("", "run whose checkpoint is the reference model; empty: none, the highest losses count")
    step: int | None = knob(None, "step of that checkpoint; empty: the last of a finished run", ge=1, unit="steps")

    @property
    def added_parts(self) -> tuple[str, ...]:
        """The choice of tokens (N,), which needs every token's loss before their sum."""
        return ("the choice of tokens",)

    @property
    def reference(self) -> tuple[str, int | None] | None:
        """Return run and step of the reference model, (B, T) -> nats; None for none."""
        return (self.run, self.step) if self.run else None

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a step without a run, for rows (B, T)."""
        yield from super().problems(recipe)
        if self.step is not None and not self.run:
            yield Problem("objective.step", "is the step of a checkpoint; name its run with objective.run")

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that a reference model, rows (B, T) -> nats, is read by one process."""
        if self.run:
            yield Problem("objective.run", "one process alone reads a reference model; leave it out")

    def flops(
        self, architecture: Architecture, vocabulary_size: int, plans: Sequence[LayerPlan], tokens: int, labelled: int,
        span: float, length: int,
    ) -> float:  # fmt: skip
        """Return the useful FLOPs of one step without the reference: every label (N,) goes through the head."""
        labelled = self.scored(tokens, length)
        return step_flops(architecture, vocabulary_size, plans, tokens, labelled, span, length)

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """See :meth:`Objective.previews`, row (T,)."""
        (row,) = super().previews(tokens, vocabulary, seed)
        beyond = f" beyond run '{self.run}'" if self.run else ""
        words = f"The model learns from {at(self.keep, START):.0%} of these answers: those that cost it most{beyond}."
        return [row._replace(words=words)]


class Selective(ChoosesTokens):
    """Predict the next token, and learn from those that cost most beyond a reference model (Rho-1).

    L = mean over chosen t of -log p(x_{t+1} | x_1 .. x_t),  e_t = -log p(x_{t+1}|..) + log p_ref(x_{t+1}|..)

    Chosen are, of the n tokens of a row that are asked for, the ceil(keep * n) with the highest excess e_t. The
    reference is a frozen checkpoint of another run with the same tokenizer; without one p_ref = 1, and the tokens with
    the highest loss are chosen.

    Source: Lin et al. 2024, Rho-1 (arXiv 2404.07965), equations 2 to 5. They rank the tokens of a batch, we those of
    each row, so that a step does not depend on how it is cut into micro-batches and over processes.
    """

    kind: Literal["selective"] = "selective"
    causal: ClassVar[bool] = True
    generates: ClassVar[Literal["next", "unmask"] | None] = "next"

    def build(self, builder: Builder) -> TrainingModel:
        """Return a causal backbone, states (B, T, D), with a head; training gives it the reference."""
        return SelectiveModel(self, builder)

    def labelled_fraction(self, progress: Progress) -> float:
        """Return ``keep``: the share of a row's T tokens that count."""
        return at(self.keep, progress)

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T) as they are: every token is asked for, and which of them count only the models know."""
        return shown_next(batch, follows(batch))


def kept(labels_B: Tensor, keep: float) -> Tensor:
    """Return how many labels of each row count, int64 (B,): ceil(keep * labels).

    Example:
        >>> kept(torch.tensor([10, 11, 0]), 0.6).tolist()
        [6, 7, 0]
    """
    # What is above a whole number by rounding alone is that number.
    return torch.ceil(labels_B.double() * keep - 1e-9).long()


def chosen(excess_BK: Tensor, weight_BK: Tensor, keep: float) -> Tensor:
    """Return 1 for the labels of each row with the highest excess, else 0, float32 (B, K); of equals the first.

    Args:
        excess_BK: nats beyond the reference's.
        weight_BK: 1 for a label, 0 for a slot without one.
    """
    ranked_BK = excess_BK.masked_fill(weight_BK == 0, -torch.inf).argsort(dim=1, descending=True, stable=True)
    place_BK = ranked_BK.argsort(dim=1)
    return (place_BK < kept(weight_BK.sum(1), keep)[:, None]).float()


class ChoosingModel(TokenPrediction):
    """Base of the models whose loss is over chosen tokens, logits (N, V); arguments as for :class:`TokenPrediction`."""

    choice: ChoosesTokens

    def asked(self, batch: Batch) -> Tensor:
        """Return how many labels each row has, (B,)."""
        raise NotImplementedError

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return how many labels of rows (B, T) count: known without knowing which."""
        return {"loss": int(kept(self.asked(batch), at(self.choice.keep, progress)).sum())}

    def lay_out(self, head: str, padding: str) -> None:
        """See :meth:`TrainingModel.lay_out`: tokens are ranked in packed rows (B, T) alone."""
        TrainingModel.lay_out(self, head, padding)

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return the nats of tokens (B, T) summed over those chosen; ``every_token_loss`` is the mean over all."""
        seen = self.labelled(batch, progress)
        nats_N, hits_N = self._score_region(self.states(seen, batch, plan), seen.labels_N, seen.weight_N)
        with torch.no_grad():
            excess_N = nats_N - self._reference_nats(seen, batch)
            shape = len(batch.tokens_BT), -1
            weight_BK = chosen(excess_N.view(shape), seen.weight_N.view(shape), at(self.choice.keep, progress))
        weight_N = weight_BK.flatten()
        return Loss(
            {"loss": (nats_N * weight_N).sum()},
            {"accuracy": (hits_N * weight_N).sum()},
            {"every_token_loss": (nats_N.detach().sum(), seen.weight_N.sum())},
        )

    def score(self, x_ND: Tensor, labels_N: Tensor, weight_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return nats and right predictions of each label, (N,) each, 0 where the weight is; states are (N, D)."""
        logits_NV = self.head(x_ND).float()
        nats_N = F.cross_entropy(logits_NV, labels_N, reduction="none")
        return nats_N * weight_N, hits_of(logits_NV, labels_N) * weight_N

    @torch.no_grad()
    def _reference_nats(self, seen: Labelled, batch: Batch) -> Tensor:
        """Return the reference's nats of each label, (N,)."""
        if self.reference is not None:
            return self.reference.model.heldout(batch, seen, self.reference.plan)
        # Without one, and in a forecast, which reads no other run.
        return torch.zeros_like(seen.weight_N)


class SelectiveModel(ChoosingModel):
    """A causal model whose loss is over chosen tokens, logits (N, V); arguments as for :class:`TokenPrediction`."""

    choice: Selective

    def asked(self, batch: Batch) -> Tensor:
        """Return how many tokens of each row follow another, (B,)."""
        return follows(batch).sum(1)

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return the batch as it is, tokens (B, T), and every next token: which of them count is decided later."""
        return next_tokens(batch)
