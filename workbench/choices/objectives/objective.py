"""Objectives: corruption, heads and loss on top of backbones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from workbench.base.errors import RecipeError
from workbench.choices.architectures.architecture import Architecture, Backbone
from workbench.choices.architectures.flops import step_flops
from workbench.choices.choice import Choice, Problem
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch, PreparedData, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.preview import START, Preview, Shown, row_of
from workbench.choices.objectives.reference import Reference
from workbench.choices.progress import Progress
from workbench.ops.attention import Sight
from workbench.ops.parameter_groups import parameter_groups

Masks = Literal["built", "by_step", "by_row", "by_pair"]


@dataclass
class Loss:
    """One micro-batch's result, in sums: the step divides by how many labels all its micro-batches have.

    Attributes:
        parts: nats summed over the labels of each part of the loss, by name, shape (), with gradient.
        metrics: sums over the labels of the first part that are worth plotting (right predictions), shape (), detached.
        ratios: shares of a number that only the forward pass knows: pairs of a sum and that number, shape (), detached.
    """

    parts: dict[str, Tensor]
    metrics: dict[str, Tensor] = field(default_factory=dict)
    ratios: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def detached(self) -> Loss:
        """Return the same sums, 0-d, without gradients."""
        return Loss({name: nats.detach() for name, nats in self.parts.items()}, self.metrics, self.ratios)

    def tensors(self) -> list[Tensor]:
        """Return all sums, 0-d, parts first."""
        return [*self.parts.values(), *self.metrics.values(), *(sum_ for pair in self.ratios.values() for sum_ in pair)]

    def over(self, counts: Mapping[str, int], weights: Mapping[str, float] | None = None) -> Tensor:
        """Return the sum of weight * nats / count over the parts, shape (): this micro-batch's share of a loss.

        Args:
            counts: labels by part, of everything that the loss is a mean over.
            weights: by part; 1 where left out.

        Example:
            >>> float(Loss({"loss": torch.tensor(6.0)}).over({"loss": 4}))
            1.5
        """
        terms = []
        for name, nats in self.parts.items():
            # A step without any label has the loss 0, not NaN.
            mean, weight = nats / max(1, counts[name]), (weights or {}).get(name, 1.0)
            terms.append(mean if weight == 1.0 else mean * weight)
        return terms[0] if len(terms) == 1 else torch.stack(terms).sum()


class Labelled(NamedTuple):
    """A batch as an objective shows it to a backbone.

    Attributes:
        tokens_BT: ids that the backbone sees.
        index_N: labelled positions, as indices into the flattened (B * T) rows, rising; None for every position.
        labels_N: the true ids at those positions.
        weight_N: float32, 1 for a label that counts, 0 for a slot that only keeps the shape static.
        causal: see the past only, in all rows or, bool (B,), in some; None as the backbone was built; or who sees whom.
    """

    tokens_BT: Tensor
    index_N: Tensor | None
    labels_N: Tensor
    weight_N: Tensor
    causal: bool | Tensor | Sight | None = None

    def to(self, device: torch.device) -> Labelled:
        """Return the same on ``device``; shapes stay."""
        index_N = None if self.index_N is None else self.index_N.to(device)
        causal = self.causal.to(device) if isinstance(self.causal, Tensor) else self.causal
        return Labelled(self.tokens_BT.to(device), index_N, self.labels_N.to(device), self.weight_N.to(device), causal)


class TrainingModel(nn.Module):
    """A backbone with an objective's head(s), rows of tokens (B, T) -> loss: what the loop trains and checkpoints hold.

    Attributes:
        backbone: the part an architecture built.
        choice: the objective in force; replaced (never mutated) when a scheduled knob is changed during a run.
        predicts: name of the stack that predicts tokens, of those in :meth:`stacks`.
        planned: beginnings of the names of parameters that :meth:`freeze_outside` leaves alone.
        reference: the model that :attr:`Objective.reference` names, once training has read it; in no checkpoint.
    """

    backbone: Backbone
    choice: Objective
    vocabulary: Vocabulary
    reference: Reference | None = None
    predicts: ClassVar[str] = "main"
    planned: ClassVar[tuple[str, ...]] = ("backbone.blocks.",)

    def stacks(self) -> dict[str, Backbone]:
        """Return the stacks of blocks (B, T, D) -> (B, T, D) by name; ``main`` is first.

        Depth methods and layer telemetry are about ``main``. A model with several networks names the others here, so
        that memory, precision and optimizer groups cover them.
        """
        return {"main": self.backbone}

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return what the optimizer gets: parameters of any shape, by role; those that decay get ``weight_decay``."""
        hidden = [blocks for stack in self.stacks().values() if (blocks := getattr(stack, "blocks", None)) is not None]
        return parameter_groups(self, weight_decay, hidden)

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return how many labels each part of the loss has in a batch: known before the forward pass.

        Args:
            batch: rows of tokens, (B, T), on the CPU, so that nothing waits for a device.
            progress: where the run stands.
        """
        raise NotImplementedError

    def weights(self, progress: Progress) -> dict[str, float]:
        """Return the weight of each part of the loss of rows (B, T); parts left out weigh 1."""
        return {}

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Corrupt on the device, run the backbone under ``plan``, score the labelled positions.

        Args:
            batch: rows of tokens, (B, T), on the model's device.
            progress: where the run stands; scheduled knobs are read at it.
        """
        raise NotImplementedError

    def heldout(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        """Return the nats of each token that an evaluation scores, (N,) as ``seen.labels_N``, float32, 0 of weight 0.

        Args:
            batch: rows of the held-out set, (B, T), on the model's device.
            seen: what the backbone sees of them, and which tokens are scored; decided by the set
                (``objectives/heldout.py``), never by the objective's own corruption.
        """
        raise NotImplementedError

    def token_logits(self, batch: Batch, seen: Labelled, plan: LayerPlan, *, causal: bool | None = None) -> Tensor:
        """Return the logits of the token at every slot, (N, V), float32, without gradient.

        Scoring sentences, filling [MASK] and generating go through this, so every objective answers the same question:
        which token stands here? An objective with several networks answers with the one that predicts tokens; one that
        reads a [MASK] elsewhere than at its place (shifted by one, say) looks there by itself.

        Args:
            batch: rows of tokens, (B, T), on the model's device; positions and documents are read.
            seen: what the backbone sees, and the slots, as for :meth:`heldout`: the places of [MASK], or those before
                the tokens in question where the reading is causal. Labels and weights are not read.
            causal: whether a token is read from those before it alone; None as the objective's score does. Otherwise
                than the score only where :attr:`Objective.generates` is ``next``.
        """
        raise NotImplementedError

    def second(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        """Return the nats of the second score by token, (N,), float32, where the objective names one.

        Args:
            batch, plan: as for :meth:`heldout`.
            seen: rows as they are; every token but the first of a document is scored, from the slot before it.
        """
        raise NotImplementedError

    def shares(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> dict[str, tuple[Tensor, Tensor]]:
        """Return further scores of held-out rows (B, T) by name: each a sum and the number it is a share of, 0-d.

        Names of sums in nats end in ``_loss``.

        Args:
            batch, seen, plan: as for :meth:`heldout`.
        """
        return {}

    def lay_out(self, head: str, padding: str) -> None:
        """Train from now on with these layouts of rows (B, T), which change what a step costs and not its loss.

        Args:
            head: ``labelled`` positions alone, or ``all``.
            padding: ``removed``, rows packed with documents; or ``kept``, a padded row for every document's piece.

        Raises:
            RecipeError: this model has only the first of each.
        """
        if (head, padding) != ("labelled", "removed"):
            raise RecipeError(
                f"objective '{self.choice.kind}' lays out its rows itself; set execution.head to 'labelled' and "  # type: ignore[attr-defined]
                "execution.padding to 'removed'"
            )

    def freeze_outside(self, plan: LayerPlan) -> None:
        """Switch gradients of all but the blocks (B, T, D) -> (B, T, D) as ``plan`` says; frozen ones lose theirs."""
        for name, parameter in self.named_parameters():
            if name.startswith(self.planned):
                continue
            # The final norm of our own blocks stands above every layer and learns with the head.
            below = name.startswith("backbone.") and not name.startswith("backbone.final.")
            trains = plan.embedding if below else plan.head
            parameter.requires_grad_(trains)
            if not trains:
                parameter.grad = None

    def compile(self, **options: object) -> None:
        """Compile block by block (and the head), so that a skipped layer costs nothing."""
        raise NotImplementedError


@dataclass(frozen=True)
class Builder:
    """Everything that an objective may ask for while it makes its model.

    Attributes:
        architecture: of the recipe, in the stage that is built; gives the head.
        vocabulary: special ids, and V.
        longest: tokens per row, at most.
        seed: the recipe's; decides whatever the objective draws.
        causal: whether a position sees only those before it, as the objective says.
        attention: implementation, by name.
    """

    architecture: Architecture
    vocabulary: Vocabulary
    longest: int
    seed: int = 0
    causal: bool = False
    attention: str = "plain"

    def backbone(self, architecture: Architecture | None = None, *, causal: bool | None = None) -> Backbone:
        """Return a new stack, rows (B, T) of ids -> states (B, T, D), with fresh weights.

        Args:
            architecture: another one than the recipe's, for a second network.
            causal: otherwise than the objective says.
        """
        return (architecture or self.architecture).build(
            self.vocabulary, self.longest, causal=self.causal if causal is None else causal, attention=self.attention
        )


class Objective(Choice):
    """Base of the training objectives."""

    axis: ClassVar[str] = "objective"
    provides: ClassVar[tuple[str, ...]] = ("build",)
    # How the score reads a token: from those before it alone, or behind a [MASK] from both sides. Read by the
    # architecture's build as well: the mask belongs to the backbone, the reason for it to the objective.
    causal: ClassVar[bool] = False
    # How a text is continued: token by token, by unmasking a row of [MASK], or not at all.
    generates: ClassVar[Literal["next", "unmask"] | None] = None
    # Which mask the backbone needs: the one that it was built with, another by step, by row, or by pair of columns.
    masks: ClassVar[Masks] = "built"
    # Whether backbone and head over words are one network that another objective can go on with.
    one_network: ClassVar[bool] = True
    # Whether the optimizer starts anew where a phase begins.
    renews_optimizer: ClassVar[bool] = False
    # Whether the score reads a [MASK] from the position before it.
    shifted: ClassVar[bool] = False
    # Name of a second score, in nats per token of the held-out text (``TrainingModel.second``); empty for none.
    second_score: ClassVar[str] = ""

    @property
    def added_parts(self) -> tuple[str, ...]:
        """Names of what it adds to one head and one mean, such as parts of its loss beside the first, shape () each.

        Engines and optimizers that know one head and one mean refuse a recipe that has any.
        """
        return ()

    @property
    def reference(self) -> tuple[str, int | None] | None:
        """Return run and step of a frozen model that scores rows (B, T) in training; None for none."""
        return None

    def scored(self, tokens: int, length: int) -> int:
        """Return how many of so many tokens, in rows of T = ``length``, a reference scores."""
        return tokens

    @property
    def reads_text(self) -> bool:
        """True where :meth:`check_data` looks at the text of rows (B, T): a launch asks it where text is prepared."""
        return False

    def arrange(self, order: RowOrder, vocabulary: Vocabulary) -> RowOrder:
        """Return the order of the rows (B, T) that training reads: this one, or one that lays out its rows anew."""
        return order

    def check_data(self, prepared: PreparedData) -> None:
        """Refuse prepared text whose rows (B, T) this objective cannot be trained on.

        Raises:
            DataError: says what is missing and the way out.
        """

    @property
    def exports_causal(self) -> bool:
        """Return whether transformers' classes use the model (B, T, V) to continue texts, not to fill in [MASK]."""
        return self.causal or self.shifted

    def build(self, builder: Builder) -> TrainingModel:
        """Return the trainable model: as many backbones (B, T, D) as the objective needs, and its heads, all fresh.

        Args:
            builder: makes backbones; knows vocabulary, longest row and seed.
        """
        raise NotImplementedError

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a model whose mask stays as it was built, where this objective needs several for rows (B, T)."""
        yield from super().problems(recipe)
        architecture = recipe.architecture
        if self.masks != "built" and not architecture.switches_mask():
            yield Problem(
                "architecture.kind",
                f"'{architecture.kind}' cannot change its mask, and objective "
                f"'{self.kind}' sees the past alone in some rows or steps and both sides in others; "  # type: ignore[attr-defined]
                "use architecture 'pre_ln' or 'post_ln', or objective 'masked' or 'causal'",
            )

    def phase(self, progress: Progress) -> int:
        """Return the number of the phase that rows (B, T) are trained in at ``progress``, from 0."""
        return 0

    def in_phase(self, number: int) -> Objective:
        """Return the objective that rows (B, T) are trained with in a phase: this one, unless it has several."""
        return self

    def labelled_fraction(self, progress: Progress) -> float:
        """Return share of a row's tokens that get a label at ``progress`` (for FLOPs and the forecast)."""
        raise NotImplementedError

    def labels_in(self, counts: Mapping[str, int]) -> int:
        """Return how many labels of a step on rows (B, T) the FLOPs count: the first part's; others share or judge it.

        Args:
            counts: by part of the loss.
        """
        return next(iter(counts.values()))

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return what training at ``progress`` shows of rows (B, T), place by place, for people to look at.

        Args:
            batch: as training reads it, on the CPU.
            seed: of the run.
        """
        return [[Shown(token, "read") for token in row] for row in batch.tokens_BT.tolist()]

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """Return the kinds of rows (T,) that a run makes of a document, for people to look at.

        Args:
            tokens: ids (T,) of the document with its frame, ``[cls] ... [sep]``.
            seed: another one draws anew.
        """
        return [Preview("", self.shown_rows(row_of(tokens), vocabulary, START, seed)[0])]

    def flops(
        self,
        architecture: Architecture,
        vocabulary_size: int,
        plans: Sequence[LayerPlan],
        tokens: int,
        labelled: int,
        span: float,
        length: int,
    ) -> float:
        """Return the useful FLOPs of one step; arguments as for ``step_flops``, rows of T = ``length``.

        An objective with several networks sums over them here, each with the head and the labels that it has.
        """
        return step_flops(architecture, vocabulary_size, plans, tokens, labelled, span, length)

    def context_free_loss(self, counts_V: np.ndarray, vocabulary: Vocabulary) -> float | None:
        """Return the lowest training loss in nats that a model without context can reach,
        where it can copy what is asked for.

        None where training shows nothing of that, as the held-out score: word frequencies are the floor of both.

        Args:
            counts_V: occurrences of each id in the training text.
        """
        return None
