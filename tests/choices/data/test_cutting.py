"""Cutting long texts: nothing is lost, no word is torn where there is white space."""

from __future__ import annotations

import pytest

from workbench.choices.data.cutting import batched, cut

SENTENCE = "日本語の文章には空白がありません。"


@pytest.mark.parametrize(
    "text", ["", "short", "word " * 999, "line of words\n" * 300, "x" * 5000, SENTENCE * 300, ("p" * 90 + "\n\n") * 40]
)
@pytest.mark.parametrize("characters", [1, 50, 333])
def test_pieces_are_the_text_and_bounded(text: str, characters: int) -> None:
    pieces = list(cut(text, characters))
    assert "".join(pieces) == text
    assert all(characters <= len(piece) <= 2 * characters for piece in pieces[:-1])
    assert len(pieces[-1]) < max(2 * characters, 1)


def test_the_best_boundary_is_taken() -> None:
    assert next(cut("aa bb. cc\ndd\n\nee ff gg hh", 8)) == "aa bb. cc\ndd"
    assert next(cut("aaaa bb cc\ndd. ee ff", 8)) == "aaaa bb cc"
    assert next(cut("aaaa bb cc dd. ee ff", 8)) == "aaaa bb cc dd."
    assert next(cut("aaaa bbbbbb cc dd ee", 8)) == "aaaa bbbbbb"
    assert all(piece.endswith("。") for piece in cut(SENTENCE * 300, 50))


def test_batches_hold_everything_in_order_and_end_at_their_size() -> None:
    texts = ["aaa", "bbb", "c" * 9, "", "dd"]
    assert list(batched(texts, 5)) == [["aaa", "bbb"], ["c" * 9], ["", "dd"]]
    assert list(batched(texts, 5, size=lambda text: 5)) == [[text] for text in texts]
    assert list(batched([], 5)) == []
