"""Examples as tokens: ``[CLS] a [SEP]``, ``[CLS] a [SEP] b [SEP]``, or windows of a passage behind its question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.errors import DataError
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.tasks.files import Answer, Example

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Shape legend: W encoded windows (one per example but for long passages), T tokens of one.

QUESTION_TOKENS = 64
"""A longer question is cut, as SQuAD's script of BERT does; at most half of a row."""
NO_ANSWER = (0, 0)
"""Start and end in a window that does not hold the whole answer: its [CLS]."""


@dataclass(frozen=True)
class Encoded:
    """Examples of one split, encoded.

    Attributes:
        examples: as read.
        ids: tokens of each window, int64 (T,).
        example_W: place in ``examples`` of each window's.
        targets: by window: class (W,) int64, number (W,) float32, or first and last token of the answer (W, 2) int64.
        context_W: place in the window of the passage's first token; 1 of examples without a passage.
        spans: by window of a passage, characters [start, end) of each of its tokens there, (T, 2); empty else.
    """

    examples: Sequence[Example]
    ids: list[np.ndarray]
    example_W: np.ndarray
    targets: np.ndarray
    context_W: np.ndarray
    spans: list[np.ndarray] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tokens(self) -> int:
        """Tokens of all windows."""
        return sum(map(len, self.ids))


def encode_texts(
    examples: Sequence[Example], targets: np.ndarray, tokenizer: Tokenizer, vocabulary: Vocabulary, length: int
) -> Encoded:
    """Encode examples of one or two texts; of too long ones the longer text loses its end.

    Args:
        targets: one per example, (W,). length: tokens of a row, at most.
    """
    texts = [[found.ids for found in _encoded(tokenizer, [each.texts[part] for each in examples])]
             for part in range(len(examples[0].texts))]  # fmt: skip
    ids = [_framed(parts, vocabulary, length) for parts in zip(*texts, strict=True)]
    places = np.arange(len(examples))
    return Encoded(examples, ids, places, targets, np.ones(len(examples), np.int64))


def _framed(parts: Sequence[list[int]], vocabulary: Vocabulary, length: int) -> np.ndarray:
    room, kept = length - 1 - len(parts), [len(part) for part in parts]
    if len(kept) == 2 and sum(kept) > room:
        # Both lose down to the half, then the longer one alone, as transformers' "longest_first".
        short = min(min(kept), max(room // 2, room - max(kept)))
        kept = [short, room - short] if kept[0] <= kept[1] else [room - short, short]
    found = [vocabulary.cls]
    for part, most in zip(parts, kept, strict=True):
        found += [*part[: min(most, room)], vocabulary.sep]
    return np.array(found, np.int64)


def encode_questions(
    examples: Sequence[Example], tokenizer: Tokenizer, vocabulary: Vocabulary, length: int, stride: int
) -> Encoded:
    """Encode questions with their passages, a window each ``stride`` tokens of a passage that is too long for one.

    A window that does not hold the whole answer says so by its [CLS], as in SQuAD's script of BERT (Devlin et al.
    2019); an answer longer than a window is in none.

    Args:
        length: tokens of a window, at most. stride: tokens by which windows move on.

    Raises:
        DataError: rows too short for a question and a part of its passage.
    """
    asked_at_most = min(QUESTION_TOKENS, length // 2)
    if length < 16:
        raise DataError(f"data.sequence_length {length} is too short for a question and its passage; use at least 16")
    questions = _encoded(tokenizer, [each.texts[0] for each in examples])
    passages: dict[str, Any] = dict.fromkeys(each.texts[1] for each in examples)
    passages = dict(zip(passages, _encoded(tokenizer, list(passages)), strict=True))
    ids, places, targets, contexts, spans = [], [], [], [], []
    for place, (example, question) in enumerate(zip(examples, questions, strict=True)):
        passage = passages[example.texts[1]]
        before = [vocabulary.cls, *question.ids[:asked_at_most], vocabulary.sep]
        room = length - len(before) - 1
        characters = np.array(passage.offsets, np.int64).reshape(-1, 2)
        # No gaps: a window begins at the latest where the one before it ends.
        step = min(stride, room)
        for begin in range(0, max(1, len(passage.ids) - room + step), step):
            window = slice(begin, begin + room)
            ids.append(np.array([*before, *passage.ids[window], vocabulary.sep], np.int64))
            places.append(place)
            contexts.append(len(before))
            spans.append(characters[window])
            first_last = tokens_of(example.label[0], characters[window])
            targets.append(NO_ANSWER if first_last is None else tuple(len(before) + each for each in first_last))
    return Encoded(
        examples, ids, np.array(places), np.array(targets, np.int64).reshape(-1, 2), np.array(contexts), spans
    )


def tokens_of(answer: Answer, characters: np.ndarray) -> tuple[int, int] | None:
    """Return first and last token of an answer in a window, (T, 2) characters; None where it is not wholly in it.

    Example:
        >>> tokens_of(Answer("black cat", 4), np.array([[0, 3], [4, 9], [10, 13], [14, 17]]))
        (1, 2)
    """
    end = answer.start + len(answer.text)
    if not len(characters) or characters[0, 0] > answer.start or characters[-1, 1] < end:
        return None
    first = int(np.searchsorted(characters[:, 1], answer.start, side="right"))
    last = int(np.searchsorted(characters[:, 0], end, side="left")) - 1
    return (first, last) if first <= last else None


def _encoded(tokenizer: Tokenizer, texts: list[str]) -> list[Any]:
    return tokenizer.encode_batch(texts, add_special_tokens=False)
