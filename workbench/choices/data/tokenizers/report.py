"""A tokenizer on the text that it was prepared with: what it covers, how long its tokens are, which it never uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.choices.data.pieces import Pieces
from workbench.choices.data.tokens import PreparedData, TokenStore

# Shape legend: V ids of a vocabulary.

LISTED = 20
"""Entries of each list."""
_MORE = "\ufffd"
"""Stands for bytes that are no character."""


def tokenizer_report(prepared: PreparedData) -> dict[str, Any]:
    """Return a tokenizer's measures on the text that was prepared with it; frames ([CLS], [SEP]) are not counted.

    Returns:
        JSON-able:

        * ``vocabulary``: ``size`` (rows of the embedding), ``ids`` (names in the tokenizer), ``used`` (of them, ids
          that occur in the training text) and ``unused_share``;
        * ``train`` and ``heldout``: ``tokens``, ``bytes``, ``words`` (runs between white space), ``tokens_per_byte``,
          ``bytes_per_token``, ``tokens_per_word`` and ``unknown_share`` (of the tokens); None where an older cache
          entry does not hold it;
        * ``longest``, ``commonest``, ``unused``: up to 20 entries each, ``{"id", "text", "count"}``. The longest are
          those with most characters that occur; the unused are the last ids, which learning found least useful.
    """
    from tokenizers import Tokenizer

    tokenizer, vocabulary = Tokenizer.from_file(prepared.tokenizer_file), prepared.vocabulary
    counts_V = np.array(prepared.counts_V, np.int64)
    pieces = vocabulary.pieces or Pieces.of(prepared.tokenizer_file)
    special = {*vocabulary.special, vocabulary.unk}
    named = [token for token, name in enumerate(pieces.names) if name and token not in special]
    texts = {token: _text(tokenizer, pieces.names[token], token) for token in named}
    used = [token for token in named if counts_V[token]]
    unused = [token for token in named if not counts_V[token]]

    def entries(tokens: list[int]) -> list[dict[str, Any]]:
        return [{"id": token, "text": texts[token], "count": int(counts_V[token])} for token in tokens[:LISTED]]

    unknown = None if vocabulary.unk in vocabulary.special else int(counts_V[vocabulary.unk])
    text = prepared.fingerprint.get("text", {})
    heldout, bytes_N = prepared.heldout, prepared.heldout.bytes_N
    known = text.get("heldout") or {"bytes": None if bytes_N is None else int(bytes_N.sum(dtype=np.int64))}
    heldout_unknown = None if unknown is None else int(np.count_nonzero(heldout.ids_N == vocabulary.unk))
    return {
        "vocabulary": {
            "size": vocabulary.size, "ids": len(named), "used": len(used),
            "unused_share": _share(len(unused), len(named)),
        },
        "train": _measures(prepared.train, text.get("train", {}), unknown),
        "heldout": _measures(heldout, known, heldout_unknown),
        "longest": entries(sorted(used, key=lambda token: (-len(texts[token]), token))),
        "commonest": entries(sorted(used, key=lambda token: (-counts_V[token], token))),
        "unused": entries(unused[::-1]),
    }  # fmt: skip


def in_words(report: dict[str, Any]) -> str:
    """Return the measures of :func:`tokenizer_report` in a line.

    Example:
        >>> train = {"tokens_per_word": 1.31, "bytes_per_token": None, "unknown_share": 0.0002}
        >>> in_words({"vocabulary": {"ids": 8187, "used": 8100}, "train": train})
        'tokenizer: 8,100 of 8,187 entries occur in the training text; 1.31 tokens a word, 0.020% unknown'
    """
    vocabulary, train = report["vocabulary"], report["train"]
    forms = {"tokens_per_word": "{:.2f} tokens a word", "bytes_per_token": "{:.2f} bytes a token",
             "unknown_share": "{:.3%} unknown"}  # fmt: skip
    measures = ", ".join(form.format(train[name]) for name, form in forms.items() if train[name] is not None)
    used = f"tokenizer: {vocabulary['used']:,} of {vocabulary['ids']:,} entries occur in the training text"
    return f"{used}; {measures}" if measures else used


def _measures(store: TokenStore, text: dict[str, Any], unknown: int | None) -> dict[str, Any]:
    tokens, size, words = store.tokens - 2 * store.documents, text.get("bytes"), text.get("words")
    return {
        "tokens": tokens, "bytes": size, "words": words,
        "tokens_per_byte": _share(tokens, size), "bytes_per_token": _share(size, tokens),
        "tokens_per_word": _share(tokens, words), "unknown_share": 0.0 if unknown is None else _share(unknown, tokens),
    }  # fmt: skip


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _text(tokenizer: Any, name: str, token: int) -> str:
    """Return the text of a token; its name where it is part of a character only."""
    # A decoder takes the space before the first word away: it is that of the mark.
    text = str(tokenizer.decode([token], skip_special_tokens=False))
    return name if not text or _MORE in text else text
