"""Several corpora in one run, by weights that may move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import field_serializer, model_validator

from workbench.choices.choice import Choice, Problem, knob, one_of
from workbench.choices.data.cache import key_of
from workbench.choices.data.data import Data, Say, Sourced
from workbench.choices.data.embedded import Embedded
from workbench.choices.data.mixture_order import MixtureOrder
from workbench.choices.data.order import RowOrder
from workbench.choices.data.sides import HELD_FILE
from workbench.choices.data.stream import Streamed
from workbench.choices.data.tokens import PreparedData
from workbench.choices.progress import LOOK_AHEAD, Budget, Progress
from workbench.choices.schedules.schedule import Schedule, Scheduled, at, scheduled_knob

OF_THE_MIXTURE = tuple(name for name in Data.model_fields if name != "kind")
"""Knobs that a mixture has once, for all of its parts."""


def _shared(source: Data) -> set[str]:
    """Return names of the knobs that a part leaves to the mixture."""
    return set(OF_THE_MIXTURE) - ({"tokenizer"} if source.decodes else set())


class Part(Choice):
    """One corpus of a mixture.

    Example:
        >>> Part(name="library", source=Embedded(packages=("python",)), weight=2.0).epochs is None
        True
    """

    name: str = knob(..., "name of the part in scores and curves", pattern=r"^[\w.-]{1,40}$")
    source: one_of(Data) = knob(..., "its text: any data but a mixture")  # type: ignore[valid-type]
    weight: Scheduled = scheduled_knob(1.0, "its share of the rows, relative to the other parts' weights", ge=0)
    epochs: float | None = knob(None, "passes over its training text at most, then it leaves; empty: any", gt=0)

    @field_serializer("source")
    def _own_knobs(self, source: Data) -> dict[str, Any]:
        """Leave out the knobs that the mixture decides: nobody reads them here."""
        return source.model_dump(mode="json", exclude=_shared(source))

    @model_validator(mode="after")
    def _is_a_part(self) -> Part:
        if self.source.kind == "mixture":
            raise ValueError(f"part '{self.name}' is a mixture again; list its parts here")
        if not self.source.listed:
            raise ValueError(f"part '{self.name}': data '{self.source.kind}' is no text to train on")
        if self.streams and self.epochs is not None:
            raise ValueError(f"part '{self.name}' is a stream, whose epochs nobody can limit: leave `epochs` empty, or "
                             "prepare it (stream 0)")  # fmt: skip
        # By value: a recipe of an older version writes all of them down.
        for name in sorted(_shared(self.source)):
            default = type(self.source).model_fields[name].get_default(call_default_factory=True, validated_data={})
            if getattr(self.source, name) != default:
                raise ValueError(f"part '{self.name}' sets {name}, which a mixture has once: set data.{name}")
        return self

    @property
    def streams(self) -> bool:
        """Return whether its text is read while the run trains."""
        return isinstance(self.source, Streamed) and self.source.stream > 0


class Mixture(Data):
    """Several corpora mixed row by row, with weights that may move and a limit of epochs for each.

    share_k(n) = w_k(n) / sum over the parts that are not used up of w(n), after n tokens of training.

    Args:
        parts: name, source, weight and epochs of each.

    Example:
        >>> mixture = Mixture(parts=({"name": "a", "source": "embedded"},), span_tokens=1000)
        >>> mixture.parts[0].weight
        1.0
    """

    kind: Literal["mixture"] = "mixture"
    parts: tuple[Part, ...] = knob(
        help="corpora, each as JSON: name, source, weight, epochs",
        default_factory=lambda: (
            Part(name="library", source=Embedded(packages=("python",))),
            Part(name="torch", source=Embedded(packages=("torch",))),
        ),
        min_length=1,
        max_length=64,
    )
    span_tokens: int | None = knob(
        None, "tokens of training over which weights that are schedules run; not needed for numbers",
        unit="tokens", ge=1, scale="log",
    )  # fmt: skip

    @model_validator(mode="after")
    def _parts_fit(self) -> Mixture:
        names = [part.name for part in self.parts]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two parts are named '{min(twice)}'; give each a name of its own")
        for first, second in combinations(self.parts, 2):
            if first.source == second.source:
                raise ValueError(
                    f"parts '{first.name}' and '{second.name}' are the same text; keep one, with the sum of the weights"
                )
        if self.span_tokens is None and (moving := [part.name for part in self.parts if _over_span(part)]):
            # Not the budget: a fork that goes on for longer would read other rows of the past.
            raise ValueError(
                f"span_tokens: the weight of part '{moving[0]}' moves; give the tokens of training over which it does, "
                "for example all that the run will read"
            )
        for part in self.parts:
            if isinstance(part.weight, Schedule) and part.weight.over in ("steps", "seconds"):
                raise ValueError(
                    f"the weight of part '{part.name}' counts {part.weight.over}; rows follow from tokens alone: set "
                    "its `over` to 'budget' (a share of span_tokens) or 'tokens'"
                )
        span = self.span_tokens or 1
        weights_SK = self.weights(np.linspace(0, span, LOOK_AHEAD + 1))
        if (empty := weights_SK.sum(axis=1) <= 0).any():
            where = "" if empty.all() else f" after {empty.argmax() / LOOK_AHEAD:.0%} of span_tokens"
            raise ValueError(f"the weights of parts sum to nothing{where}; one must be above 0")
        return self

    def weights(self, tokens_S: np.ndarray) -> np.ndarray:
        """Return the weights of the parts, float64 (S, K), after so many tokens of training, (S,)."""
        if not any(isinstance(part.weight, Schedule) for part in self.parts):
            return np.tile(np.array([part.weight for part in self.parts], np.float64), (len(tokens_S), 1))
        budget = Budget(amount=float(self.span_tokens or 1), unit="tokens")
        places = [Progress(step=0, tokens=int(tokens), seconds=0.0, budget=budget) for tokens in tokens_S]
        return np.array([[at(part.weight, place) for part in self.parts] for place in places], np.float64)

    def corpora(self) -> dict[str, Data]:
        """Return the sources of the parts by name."""
        return {part.name: part.source for part in self.parts}

    def documents(self) -> Iterator[str]:
        """Yield documents of every part, one part after the other.

        Raises:
            DataError: as the source of a part.
        """
        return (text for part in self.parts for text in part.source.documents())

    def sourced_documents(self) -> Iterator[Sourced]:
        """Yield the same with the part's name before the names of its source."""
        return (((part.name, *names), text) for part in self.parts for names, text in part.source.sourced_documents())

    def collect(self, say: Say) -> None:
        """Harvest or fetch the text of every part."""
        for part in self.parts:
            part.source.collect(say)

    def sources(self) -> dict[str, Any]:
        """Return what the text of each part is made from; weights and epochs decide no token."""
        return {"parts": [{"kind": part.source.kind, **part.source.sources()} for part in self.parts]}

    def located(self) -> dict[str, Any]:
        """Return the tokenizer's path, and the parts with absolute ones where any has a path."""
        located = {part.name: part.source.located() for part in self.parts}
        if not any(located.values()):
            return super().located()
        parts = [part.model_dump(mode="json") for part in self.parts]
        for part in parts:
            part["source"] |= located[part["name"]]
        return super().located() | {"parts": parts}

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield what is wrong with parts that are streams, too."""
        yield from super().problems(recipe)
        for part in self.parts:
            for path, message in self._alone(part).stream_problems() if part.streams else ():
                yield Problem("data.parts", f"part '{part.name}': {path.removeprefix('data.')}: {message}")

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that a stream is for one process."""
        yield from super().problems_together(recipe, processes)
        for part in self.parts:
            if part.streams:
                yield Problem("data.parts", f"part '{part.name}' is a stream, which one process reads; prepare it "
                                            "(stream 0), or train in one process")  # fmt: skip

    def problems_here(self) -> Iterator[Problem]:
        """Yield what of a part's text is not here."""
        yield from super().problems_here()
        for part in self.parts:
            for path, message in part.source.problems_here():
                yield Problem("data.parts", f"part '{part.name}': {path.removeprefix('data.')}: {message}")

    def notices(self) -> Iterator[Problem]:
        """Yield what is said of the tokenizer and of each part."""
        yield from super().notices()
        for part in self.parts:
            for _, message in part.source.notices():
                yield Problem("data.parts", f"part '{part.name}': {message}")

    def row_order(self, prepared: PreparedData, seed: int) -> RowOrder:
        """Return the rows (B, T) of all parts, mixed; the rows of a part are those it would have alone.

        Raises:
            DataError: a part holds fewer tokens than one row.
        """
        own = {name: replace(prepared, train=prepared.train.part(part.train)) for name, part in prepared.parts.items()}
        orders = {part.name: self._order_of(part, own[part.name], seed) for part in self.parts}
        return MixtureOrder(prepared.train, orders, self.weights, [part.epochs for part in self.parts], seed)

    def _order_of(self, part: Part, prepared: PreparedData, seed: int) -> RowOrder:
        if not part.streams:
            return Data.row_order(self, prepared, seed)
        held = Path(prepared.tokenizer_file).with_name(HELD_FILE)
        foreign = frozenset(np.load(held).tolist()) if len(self.parts) > 1 else frozenset()
        key = key_of([prepared.fingerprint["key"], part.name])
        stream: Streamed = self._alone(part)
        return stream.stream_order(replace(prepared, fingerprint=prepared.fingerprint | {"key": key}), seed, foreign)

    def _alone(self, part: Part) -> Any:
        """Return the source of a part with the knobs that the mixture has for it."""
        return part.source.model_copy(update={name: getattr(self, name) for name in _shared(part.source)})

    @property
    def limited(self) -> bool:
        """Return whether every part has a limit of epochs."""
        return all(part.epochs is not None for part in self.parts)

    def check_budget(self, prepared: PreparedData, recipe: Any) -> None:
        """See :meth:`Data.check_budget`; a budget in seconds, or batches that adapt, are found out by the run."""
        budget = recipe.budget
        steady = not isinstance(self.batch_size, Schedule) and not isinstance(self.sequence_length, Schedule)
        each = self.most_rows * self.longest if steady and self.batch_rule.kind == "as_scheduled" else 0
        tokens = int(budget.amount * {"tokens": 1, "steps": each, "seconds": 0}[budget.unit])
        if self.limited and tokens:
            order = self.row_order(prepared, recipe.seed)
            order.read(order.first_sample(tokens))


def _over_span(part: Part) -> bool:
    return isinstance(part.weight, Schedule) and part.weight.over == "budget"
