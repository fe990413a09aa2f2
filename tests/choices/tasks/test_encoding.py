"""Examples as tokens, windows of passages, packed rows."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from workbench.choices.data.tokens import Vocabulary
from workbench.choices.tasks.answers import best_answers
from workbench.choices.tasks.encoding import encode_questions, encode_texts
from workbench.choices.tasks.files import Answer, Example
from workbench.choices.tasks.rows import drawn, packed

VOCABULARY = Vocabulary(size=64, used=40, cls=1, sep=2, mask=3, pad=0, unk=4)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    words = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "[UNK]": 4, **{f"w{n}": 5 + n for n in range(35)}}
    found = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    return found


def words(first: int, count: int) -> str:
    return " ".join(f"w{n}" for n in range(first, first + count))


@pytest.mark.parametrize(("first", "second", "kept"), [(2, 3, (2, 3)), (9, 2, (5, 2)), (2, 9, (2, 5)), (9, 9, (4, 3))])
def test_the_longer_text_loses_its_end(tokenizer: Tokenizer, first: int, second: int, kept: tuple[int, int]) -> None:
    pair = Example("", "train", (words(0, first), words(10, second)), "0")
    (found,) = encode_texts([pair], np.array([0]), tokenizer, VOCABULARY, 10).ids
    assert len(found) <= 10
    longest_first = [first, second]
    while sum(longest_first) > 7:  # the slow way, as transformers' longest_first
        longest_first[longest_first[0] <= longest_first[1]] -= 1
    expected = [1, *range(5, 5 + longest_first[0]), 2, *range(15, 15 + longest_first[1]), 2]
    assert sorted(longest_first) == sorted(kept)
    assert len(found) == len(expected)
    assert found.tolist() == expected or first == second


def test_windows_hold_every_token_and_the_answer_where_it_is_whole(tokenizer: Tokenizer) -> None:
    passage = words(0, 30)
    answer = Answer("w12 w13 w14", passage.index("w12"))
    example = Example("1", "train", ("w33 w34", passage), (answer,))
    found = encode_questions([example], tokenizer, VOCABULARY, 16, stride=5)
    room = 16 - 5
    assert set().union(*(set(ids[4:-1].tolist()) for ids in found.ids)) == set(range(5, 35))
    for window, (ids, (first, last), spans) in enumerate(zip(found.ids, found.targets, found.spans, strict=True)):
        begin = 5 * window
        whole = begin <= 12 and begin + room > 14
        assert (first > 0) == whole, "a window says where the answer is if and only if it holds all of it"
        if whole:
            assert ids[first : last + 1].tolist() == [17, 18, 19]
            assert passage[spans[first - 4, 0] : spans[last - 4, 1]] == answer.text
    # An answer that no window holds is in none, and the question still counts.
    long = example._replace(label=(Answer(words(5, 20), passage.index("w5")),))
    found = encode_questions([long], tokenizer, VOCABULARY, 16, stride=5)
    assert not found.targets.any()
    assert len(found.examples) == 1


def test_the_best_answer_is_found_over_all_windows(tokenizer: Tokenizer) -> None:
    """Against every pair of start and end of every window, tried one by one."""
    examples = [Example(str(n), "dev", ("w33", words(n, 24)), (Answer("x", 0),)) for n in range(3)]
    encoded = encode_questions(examples, tokenizer, VOCABULARY, 16, stride=4)
    random = np.random.default_rng(0)
    scores = [random.normal(size=(len(ids), 2)) for ids in encoded.ids]
    slow = []
    for place, example in enumerate(examples):
        passage, tried = example.texts[1], []
        for window in np.flatnonzero(encoded.example_W == place):
            spans, score = encoded.spans[window], scores[window][3:-1]
            tried += [(score[s, 0] + score[e, 1], passage[spans[s, 0] : spans[e, 1]])
                      for s in range(len(spans)) for e in range(s, len(spans))]  # fmt: skip
        slow.append(max(tried)[1])
    assert best_answers(scores, encoded) == slow


def test_rows_are_packed_without_mixing_examples(tokenizer: Tokenizer) -> None:
    lengths = [3, 14, 7, 2, 5, 5, 9]
    examples = [Example(str(n), "train", (words(n, length),), "0") for n, length in enumerate(lengths)]
    encoded = encode_texts(examples, np.arange(7), tokenizer, VOCABULARY, 32)
    batch = packed(encoded, range(7), pad=0)
    assert batch.tokens_BT.shape == (4, 16)
    flat, documents = batch.tokens_BT.flatten(), batch.documents_BT.flatten()
    for place, (begin, length) in enumerate(zip(batch.begins_E, batch.lengths_E, strict=True)):
        span = slice(int(begin), int(begin + length))
        assert flat[span].tolist() == encoded.ids[place].tolist()
        assert set(documents[span].tolist()) == {place}
        assert batch.positions_BT.flatten()[span].tolist() == list(range(length))
    assert int((documents < 7).sum()) == batch.tokens == sum(lengths) + 14
    assert batch.targets_E.tolist() == list(range(7))


def test_every_epoch_holds_each_example_once() -> None:
    seen = np.concatenate([drawn(1, first, 4, 10) for first in range(0, 20, 4)])
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10].tolist() != seen[10:].tolist()
    assert drawn(1, 8, 4, 10).tolist() == seen[8:12].tolist()
