"""Text to tune on: the training text of a corpus, a part of it held back, and its results' held-out text left alone."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, TypeVar

from workbench.choices.choice import Problem, knob, one_of
from workbench.choices.data.after_steps import AfterSteps
from workbench.choices.data.data import Data, Say, Sourced
from workbench.choices.data.split import Labelled, Split, choose_split, document_hash

# A recipe, which stands above choices.
R = TypeVar("R", bound=Any)
SALT = "tuning"
"""Salt of the hash that splits the training text anew; without it the same documents would stay in training."""
_OF_THE_CORPUS = ("heldout_fraction", "steps")


class TuningText(Data):
    """The training text of another corpus, of which ``heldout_fraction`` is held back to choose settings on.

    What the corpus itself holds out, on which results are scored, is neither trained on nor scored.
    """

    listed: ClassVar[bool] = False
    kind: Literal["tuning_text"] = "tuning_text"
    text: one_of(Data) = knob("embedded", "the corpus; its tokenizer and rows are not used")  # type: ignore[valid-type]

    def documents(self) -> Iterator[str]:
        """Yield the documents left to train on.

        Raises:
            DataError: as the corpus.
        """
        return (side.text for side in self._sides() if not side.heldout)

    def heldout_documents(self) -> Iterator[str]:
        """Return the documents on which settings are chosen."""
        return (side.text for side in self._sides() if side.heldout)

    def problems_here(self) -> Iterator[Problem]:
        """Yield the problems of the tokenizer and of the corpus' text."""
        yield from super().problems_here()
        for path, message in self.text.problems_here():
            yield Problem(path.replace("data.", "data.text.", 1), message)

    def collect(self, say: Say) -> None:
        """As the corpus."""
        self.text.collect(say)

    def sources(self) -> dict[str, Any]:
        """Return those of the corpus, and the share that it holds out for results."""
        steps = {"steps": [step.key() for step in self.text.steps]} if self.text.steps else {}
        return {"salt": SALT, "results": self.text.heldout_fraction, self.text.kind: self.text.sources(), **steps}

    def _sides(self) -> Iterator[Labelled]:
        return (side for sources, text in self._training() for side in self._split.sides(sources, text))

    def _training(self) -> Iterator[Sourced]:
        """Yield the corpus' training text, after its preparation steps."""
        split = self._split_for_results
        for sources, text in self._documents:
            if isinstance(split, Split):
                yield from ((sources, side.text) for side in split.sides(sources, text) if not side.heldout)
            elif document_hash(text) not in split:
                yield sources, text

    @functools.cached_property
    def _own(self) -> set[int] | None:
        """Return the hashes of the held-out documents that the corpus brings; None where it is split."""
        own = self.text.heldout_documents()
        return None if own is None else {document_hash(text) for text in own}

    @functools.cached_property
    def _documents(self) -> AfterSteps:
        return AfterSteps(self.text, self._own or (), lambda line: None)

    @functools.cached_property
    def _split_for_results(self) -> Split | set[int]:
        """Return how the corpus is split, or the hashes of the held-out documents that it brings."""
        if self._own is not None:
            return self._own
        return choose_split(self._documents, self.text.heldout_fraction, by_source=self.text.split_by_source)

    @functools.cached_property
    def _split(self) -> Split:
        return choose_split(self._training(), self.heldout_fraction, SALT, by_source=self.text.split_by_source)


def on_tuning_text(recipe: R) -> R:
    """Return a recipe with its tokenizer and rows, trained and scored on the tuning text of its corpus."""
    data = recipe.data
    if isinstance(data, TuningText):
        return recipe
    shared = {name: getattr(data, name) for name in Data.model_fields if name not in _OF_THE_CORPUS}
    # What decides the results' held-out text stays with the corpus.
    text = _with(data, {name: getattr(data, name) for name in _OF_THE_CORPUS})
    shared["heldout_fraction"] = data.heldout_fraction
    changed: R = recipe.with_(data=TuningText(text=text, **shared))
    return changed


def on_own_text(recipe: R) -> R:
    """Return the recipe that :func:`on_tuning_text` began from; any other as it is."""
    data = recipe.data
    if not isinstance(data, TuningText):
        return recipe
    shared = {name: getattr(data.text if name in _OF_THE_CORPUS else data, name) for name in Data.model_fields}
    changed: R = recipe.with_(data=_with(data.text, shared))
    return changed


def _with(data: Data, shared: dict[str, Any]) -> Data:
    """Return the corpus with these of the knobs that all corpora share, the others as by default."""
    own = {name: getattr(data, name) for name in type(data).model_fields if name not in Data.model_fields}
    return type(data)(**own, **shared)
