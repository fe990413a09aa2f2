"""Objectives one after the other in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from pydantic import model_validator
from torch import Tensor, nn

from workbench.base.errors import RecipeError
from workbench.choices.choice import Problem, knob, one_of
from workbench.choices.data.tokens import Batch, PreparedData, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.causal import Causal
from workbench.choices.objectives.masked import Masked
from workbench.choices.objectives.objective import Builder, Labelled, Loss, Masks, Objective, TrainingModel
from workbench.choices.objectives.preview import Preview, Shown
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress

# Shape legend: B rows, T positions, N slots, V vocabulary rows.


class Phases(Objective):
    """Train one objective after another, each for its share of the budget, on the same weights.

    L(x) = the loss of ``parts[i]`` for until[i - 1] <= x < until[i], x the spent share of the budget.

    Backbone and head stay; the mask changes where the next objective reads otherwise. The held-out score is that of the
    last part from the beginning on, so one curve shows what each phase gives. Schedules of a part run over the whole
    budget.

    Source: Gisserot-Boukhlef et al. 2025 (arXiv 2507.00994), causal and then masked.

    Example:
        >>> Phases(parts=("causal", "masked"), until=(0.3,)).parts[1].kind
        'masked'
    """

    kind: Literal["phases"] = "phases"
    parts: tuple[one_of(Objective), ...] = knob(  # type: ignore[valid-type]
        help="objective of each phase (its kind, or JSON), in order",
        default_factory=lambda: (Causal(), Masked()),
        min_length=1,
        max_length=16,
    )
    until: tuple[float, ...] = knob((0.5,), "where each phase but the last ends, as a share of the budget")
    optimizer_state: Literal["keep", "fresh"] = knob(
        "keep", "the optimizer's state where a phase begins: kept, or none"
    )

    @model_validator(mode="after")
    def _phases_fit(self) -> Phases:
        count = len(self.parts)
        if len(self.until) != count - 1:
            raise ValueError(f"{count} parts need {count - 1} boundaries in `until`, got {len(self.until)}")
        # Equal ones are refused as well: a phase of no length trains nothing.
        if any(begin >= end for begin, end in pairwise([0.0, *self.until, 1.0])):
            raise ValueError(f"`until` must rise strictly between 0 and 1, got {list(self.until)}")
        return self

    @property
    def last(self) -> Any:
        """The objective of the last phase, which decides the score (nats) and what the model is used for."""
        return self.parts[-1]

    @property
    def causal(self) -> bool:  # type: ignore[override]
        """Return whether the last part's score reads tokens (N,) from those before them alone."""
        return bool(self.last.causal)

    @property
    def shifted(self) -> bool:  # type: ignore[override]
        """Return whether the last part reads a [MASK] of rows (B, T) from the position before it."""
        return bool(self.last.shifted)

    @property
    def generates(self) -> Literal["next", "unmask"] | None:  # type: ignore[override]
        """Return how the last part continues a text (T,)."""
        way: Literal["next", "unmask"] | None = self.last.generates
        return way

    @property
    def second_score(self) -> str:  # type: ignore[override]
        """Return the last part's second score, in nats."""
        return str(self.last.second_score)

    @property
    def masks(self) -> Masks:  # type: ignore[override]
        """Return ``by_step`` where parts read rows (B, T) in several ways, unless a part needs more."""
        most: Masks = max((part.masks for part in self.parts), key=get_args(Masks).index)
        return "by_step" if most == "built" and len({part.causal for part in self.parts}) > 1 else most

    @property
    def added_parts(self) -> tuple[str, ...]:
        """A loss for every phase: one graph of a step, (B, T) -> (), cannot hold them all."""
        return (f"{len(self.parts)} phases",)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse phases within phases, and what the parts refuse of rows (B, T) and models."""
        yield from dict.fromkeys(self._problems(recipe))

    def _problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse those, and again where several parts have the same."""
        if all(part.masks == "built" for part in self.parts):
            yield from super().problems(recipe)
        for index, part in enumerate(self.parts):
            if isinstance(part, Phases):
                yield Problem("objective.parts", f"part {index + 1} is 'phases' again; list its parts here")
            elif not part.one_network:
                yield Problem(
                    "objective.parts",
                    f"part {index + 1} is '{part.kind}', and phases share one network with one head over words; use "
                    "'masked', 'causal', 'hybrid', 'diffusion' or 'masked_permuted'",
                )
            elif getattr(part, "sentence", "none") != "none":
                yield Problem(
                    "objective.parts",
                    f"part {index + 1} has sentence '{part.sentence}', which lays out the rows of a whole run; set it "
                    "to 'none', or train 'masked' alone",
                )
            else:
                yield from part.problems(recipe)

    @property
    def reads_text(self) -> bool:
        """True where a part looks at the text of rows (B, T)."""
        return any(part.reads_text for part in self.parts)

    def check_data(self, prepared: PreparedData) -> None:
        """See :meth:`Objective.check_data`: rows (B, T) that every part can be trained on."""
        for part in self.parts:
            part.check_data(prepared)

    def build(self, builder: Builder) -> TrainingModel:
        """Return one backbone, states (B, T, D), and one head, with whatever each part adds to them."""
        return PhasesModel(self, builder)

    def phase(self, progress: Progress) -> int:
        """Return the number of the part in force, from 0; a phase begins exactly at its boundary."""
        return sum(progress.fraction >= boundary for boundary in self.until)

    def in_phase(self, number: int) -> Objective:
        """Return the part that rows (B, T) are trained with in a phase."""
        part: Objective = self.parts[number]
        return part

    def announced(self, number: int) -> str:
        """Return the sentence that a run says where a phase begins, of which rows (B, T) are trained from then on."""
        fresh = ", with a fresh optimizer" if self.renews_optimizer else ""
        return f"phase {number + 1}: objective '{self.parts[number].kind}'{fresh}"

    @property
    def renews_optimizer(self) -> bool:  # type: ignore[override]
        """Return whether the optimizer's state, of the weights' shapes, is dropped where a phase begins."""
        return self.optimizer_state == "fresh"

    def labelled_fraction(self, progress: Progress) -> float:
        """Return share of a row's T tokens that get a label, of the part in force."""
        return float(self.parts[self.phase(progress)].labelled_fraction(progress))

    def scheduled_values(self, progress: Progress) -> dict[str, float]:
        """Return knobs that move, () each, of the part in force, and which part that is, counted from 1."""
        number = self.phase(progress)
        return {**self.parts[number].scheduled_values(progress), "phase": number + 1.0}

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T) as the part in force shows them."""
        return self.in_phase(self.phase(progress)).shown_rows(batch, vocabulary, progress, seed)

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """See :meth:`Objective.previews`: the rows (T,) of each part."""
        return [
            Preview(f"Phase {number}, {part.kind}: {each.words}".rstrip(), each.places)
            for number, part in enumerate(self.parts, 1)
            for each in part.previews(tokens, vocabulary, seed)
        ]

    def context_free_loss(self, counts_V: np.ndarray, vocabulary: Vocabulary) -> float | None:
        """See :meth:`Objective.context_free_loss`, counts (V,): that of the last part."""
        found: float | None = self.last.context_free_loss(counts_V, vocabulary)
        return found


class PhasesModel(TokenPrediction):
    """Models of several objectives, logits (N, V), around one backbone and one head.

    Args:
        choice, builder: as for :class:`TokenPrediction`. The backbone is built to read both sides unless every part
            reads from the left.

    Raises:
        RecipeError: a part is no model of one backbone and one head.
    """

    choice: Phases

    def __init__(self, choice: Phases, builder: Builder) -> None:
        causal = choice.masks == "built" and choice.causal
        super().__init__(choice, Builder(**{**vars(builder), "causal": causal}))
        shared = Shared(**{**vars(builder), "made": self.backbone})
        # What a part adds (a head at the edges of spans, say) is trained and saved; what is shared, once.
        self.parts = nn.ModuleList()
        for part in choice.parts:
            model = part.build(shared)
            if not isinstance(model, TokenPrediction):
                raise RecipeError(f"objective.parts: '{part.kind}' is no model of one backbone and one head")
            model.head = self.head
            if choice.masks != "built":
                model.causal = bool(part.causal)
            self.parts.append(model)

    def part(self, number: int) -> TokenPrediction:
        """Return the model (B, T) -> loss of a phase, counted from 0; -1 is the last."""
        model = self.parts[number]
        assert isinstance(model, TokenPrediction)
        # A knob turned during the run replaces the choice.
        model.choice = self.choice.parts[number]
        return model

    def at(self, progress: Progress) -> TokenPrediction:
        """Return the model (B, T) -> loss of the phase in force."""
        return self.part(self.choice.phase(progress))

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """See :meth:`TrainingModel.counts`; rows (B, T)."""
        return self.at(progress).counts(batch, progress)

    def weights(self, progress: Progress) -> dict[str, float]:
        """See :meth:`TrainingModel.weights`; of rows (B, T)."""
        return self.at(progress).weights(progress)

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """See :meth:`TokenPrediction.labelled`; rows (B, T)."""
        return self.at(progress).labelled(batch, progress)

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return the loss of rows (B, T) in the phase in force."""
        loss: Loss = self.at(progress)(batch, plan, progress)
        return loss

    def heldout(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        """See :meth:`TrainingModel.heldout`: nats (N,) as the last part reads, whatever phase is in force."""
        return self.part(-1).heldout(batch, seen, plan)

    def second(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        """See :meth:`TrainingModel.second`: nats (N,) of the last part's second score."""
        return self.part(-1).second(batch, seen, plan)

    def shares(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> dict[str, tuple[Tensor, Tensor]]:
        """See :meth:`TrainingModel.shares`: further scores of rows (B, T), as the last part has them."""
        return self.part(-1).shares(batch, seen, plan)

    def token_logits(self, batch: Batch, seen: Labelled, plan: LayerPlan, *, causal: bool | None = None) -> Tensor:
        """See :meth:`TrainingModel.token_logits`; (N, V) as the last part reads."""
        return self.part(-1).token_logits(batch, seen, plan, causal=causal)

    def compile(self, **options: Any) -> None:
        """Compile blocks (B, T, D) and the head with the loss of every part."""
        for number in range(len(self.parts)):
            self.part(number).compile(**options)


class Shared(Builder):
    """Builder of models (B, T) -> loss around a backbone that is there already."""

    made: Any

    def __init__(self, made: Any, **fields: Any) -> None:
        super().__init__(**fields)
        object.__setattr__(self, "made", made)

    def backbone(self, architecture: Any = None, *, causal: bool | None = None) -> Any:
        """Return the one backbone, rows (B, T) -> states (B, T, D)."""
        return self.made
