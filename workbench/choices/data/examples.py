"""Labelled examples of a task to fine-tune on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from workbench.choices.choice import Problem, knob
from workbench.choices.data.data import Data
from workbench.choices.data.files import listing
from workbench.choices.data.order import shuffled
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.tasks.encoding import Encoded, encode_questions, encode_texts
from workbench.choices.tasks.files import Example, read_examples
from workbench.choices.tasks.rows import STREAM
from workbench.choices.tasks.splits import divide

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Examples(Data):
    """Labelled examples of a task: sentences or pairs with a class or a number, or questions about a passage.

    The tokenizer is that of the encoder that is fine-tuned. A batch has ``batch_size`` examples, packed into rows of at
    most ``sequence_length`` tokens; texts that are longer lose their end, passages are read in windows.
    """

    listed: ClassVar[bool] = False
    kind: Literal["examples"] = "examples"
    task: str = knob(..., "name of the task in scores", min_length=1)
    paths: tuple[str, ...] = knob(..., "files with the examples", min_length=1)
    form: Literal["classes", "numbers", "answers"] = knob("classes", "what is predicted")
    text: tuple[str, ...] = knob((), "columns of the texts, one or two; of SQuAD's files none")
    label: str = knob("", "column of the label; of SQuAD's files none")
    score: Literal["accuracy", "f1", "matthews", "spearman"] = knob("accuracy", "by which settings are chosen")
    limit: int | None = knob(None, "examples to train on, a sample; empty: all", ge=1)
    stride: int | None = knob(
        None, "tokens by which the windows of a long passage move on; empty: a third of a row", unit="tokens", ge=1
    )

    def documents(self) -> Iterator[str]:
        """Yield the texts of the training examples.

        Raises:
            DataError: as :meth:`splits`.
        """
        return (" ".join(example.texts) for example in self.splits()["train"])

    def sources(self) -> dict[str, Any]:
        """Return sizes and times of change of the files, and which columns are read."""
        read = {name: getattr(self, name) for name in ("form", "text", "label", "limit")}
        return {"files": listing([Path(path) for path in self.paths]), **read}

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield an optimizer of several workers: they share the rows of a text."""
        yield from super().problems(recipe)
        if recipe.optimizer.combine.count > 1:
            why = f"workers share the rows of a text, and '{self.kind}' are no rows; use 'mean'"
            yield Problem("optimizer.combine.kind", why)

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that fine-tuning cannot."""
        yield Problem("data.kind", f"'{self.kind}' trains in one process, which takes each example once")

    def problems_here(self) -> Iterator[Problem]:
        """Yield the files that are not there; the tokenizer is kept in the run's folder."""
        for path in self.paths:
            if not Path(path).expanduser().is_file():
                yield Problem("data.paths", f"'{path}' is not there")

    def notices(self) -> Iterator[Problem]:
        """Yield nothing: the tokenizer is the encoder's, as it is."""
        return iter(())

    def located(self) -> dict[str, Any]:
        """Return absolute paths of the files."""
        return {"paths": [str(Path(path).expanduser().absolute()) for path in self.paths]}

    def splits(self) -> dict[str, list[Example]]:
        """Return the examples of ``train``, ``dev`` and ``test`` (:func:`workbench.choices.tasks.splits.divide`).

        Raises:
            DataError: a file that cannot be read, lacks a column, or holds too few examples.
        """
        files = (Path(path).expanduser() for path in self.paths)
        found = divide([each for path in files for each in read_examples(path, self.form, self.text, self.label)])
        train = found["train"]
        # Files are often sorted by label: a sample of everything, the same for every recipe.
        sample = sorted(shuffled(0, 0, STREAM, len(train))[: self.limit])
        return {**found, "train": [train[place] for place in sample]}

    def encode(self, examples: list[Example], tokenizer: Tokenizer, vocabulary: Vocabulary, objective: Any) -> Encoded:
        """Return examples as tokens, W windows of at most ``sequence_length``, with what ``objective`` predicts.

        Raises:
            DataError: rows too short for a question, or a label that the objective does not know.
        """
        if self.form == "answers":
            stride = self.stride or max(1, self.longest // 3)
            return encode_questions(examples, tokenizer, vocabulary, self.longest, stride)
        targets = np.array([objective.target(each.label) for each in examples])
        return encode_texts(examples, targets, tokenizer, vocabulary, self.longest)
