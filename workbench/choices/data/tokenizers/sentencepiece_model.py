"""SentencePiece's ``.model`` files, read without its library: a fast tokenizer with the same ids.

The file is a protocol buffer (``sentencepiece_model.proto``). Its wire format is two kinds of number and strings of
bytes; that reader is shorter than a dependency, and users need none.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.base.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORD_START = "\u2581"
_UNIGRAM, _BPE = 1, 2
_UNKNOWN, _CONTROL, _UNUSED, _BYTE = 2, 3, 5, 6
"""Types of pieces that are never looked for in text."""


class _Piece(NamedTuple):
    name: str
    score: float
    type: int


def read_sentencepiece(file: Path) -> tuple[Tokenizer, dict[str, str]]:
    """Return the tokenizer of a ``.model`` file, and its special tokens by transformers' field.

    A symbol that the user of SentencePiece defined is found as any other piece: in a Unigram model always, in a BPE
    model where merges lead to it.

    Raises:
        DataError: the file is damaged or no SentencePiece model, or one of words or characters.
    """
    from tokenizers import Tokenizer

    try:
        model = list(_fields(file.read_bytes()))
        pieces = [_piece(value) for number, value in model if number == 1]
        trainer, normalizer = (dict(_fields(dict(model).get(number, b""))) for number in (2, 3))
    except (OSError, ValueError, IndexError, TypeError, struct.error) as error:
        raise DataError(f"tokenizer file '{file}' is not a SentencePiece model: {error}") from None
    sort = trainer.get(3, _UNIGRAM)
    if not pieces or sort not in (_UNIGRAM, _BPE) or trainer.get(24):
        why = "has no pieces" if not pieces else "has its space behind words" if trainer.get(24) else "counts no pieces"
        raise DataError(
            f"tokenizer file '{file}' {why}; legal are SentencePiece models of type unigram or bpe, with "
            "treat_whitespace_as_suffix=false"
        )
    tokenizer = Tokenizer(_unigram(pieces, trainer) if sort == _UNIGRAM else _bpe(pieces, trainer))
    _normalise(tokenizer, normalizer)
    _cut(tokenizer, pieces, unigram=sort == _UNIGRAM)
    names = [piece.name for piece in pieces]
    tokenizer.add_special_tokens([piece.name for piece in pieces if piece.type in (_UNKNOWN, _CONTROL)])
    roles = {"unk_token": trainer.get(40, 0), "bos_token": trainer.get(41, 1), "eos_token": trainer.get(42, 2),
             "pad_token": trainer.get(43, -1)}  # fmt: skip
    return tokenizer, {role: names[token] for role, token in roles.items() if 0 <= token < len(names)}


def _unigram(pieces: list[_Piece], trainer: dict[int, Any]) -> Any:
    from tokenizers import models

    vocabulary = [(piece.name, piece.score) for piece in pieces]
    return models.Unigram(vocabulary, trainer.get(40, 0), bool(trainer.get(35)))


def _bpe(pieces: list[_Piece], trainer: dict[int, Any]) -> Any:
    """Return the merges that scores mean: of two neighbours, those that make the likeliest piece first."""
    from tokenizers import models

    ordinary = {piece.name: piece.score for piece in pieces if piece.type not in (_UNKNOWN, _CONTROL, _UNUSED, _BYTE)}
    merges = [
        (score, name[:place], name[place:])
        for name, score in ordinary.items()
        for place in range(1, len(name))
        if name[:place] in ordinary and name[place:] in ordinary
    ]
    merges.sort(key=lambda merge: -merge[0])
    numbers = {piece.name: number for number, piece in enumerate(pieces)}
    unknown = pieces[trainer.get(40, 0)].name
    pairs = [(left, right) for _, left, right in merges]
    return models.BPE(numbers, pairs, unk_token=unknown, fuse_unk=True, byte_fallback=bool(trainer.get(35)))


def _normalise(tokenizer: Tokenizer, normalizer: dict[int, Any]) -> None:
    from tokenizers import Regex, decoders, normalizers

    steps: list[Any] = [normalizers.Precompiled(normalizer[2])] if normalizer.get(2) else []
    if normalizer.get(4, 1):
        steps += [normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    prefix = bool(normalizer.get(3, 1))
    steps += [normalizers.Replace(" ", WORD_START), *([normalizers.Prepend(WORD_START)] if prefix else [])]
    tokenizer.normalizer = normalizers.Sequence(steps)
    back: list[Any] = [decoders.Replace(WORD_START, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*back, *([decoders.Strip(" ", 1, 0)] if prefix else [])])


def _cut(tokenizer: Tokenizer, pieces: list[_Piece], *, unigram: bool) -> None:
    """Cut text at word starts, where no piece crosses one, and within the names of pieces that are no text."""
    from tokenizers import Regex, pre_tokenizers

    steps: list[Any] = []
    if unigram:
        # A Unigram model of the library would find them: their first sign goes with the text before it.
        hidden = {piece.name for piece in pieces if piece.type in (_UNKNOWN, _CONTROL, _UNUSED, _BYTE)}
        names = sorted(name for name in hidden if len(name) > 1 and not re.fullmatch("<0x[0-9A-F]{2}>", name))
        first = "|".join(["<(?=0x[0-9A-F]{2}>)", *(f"{re.escape(n[0])}(?={re.escape(n[1:])})" for n in names)])
        steps.append(pre_tokenizers.Split(Regex(first), "merged_with_previous"))
    if not any(WORD_START in piece.name[1:] for piece in pieces):
        steps.append(pre_tokenizers.Split(WORD_START, "merged_with_next"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)


def _piece(message: bytes) -> _Piece:
    fields = dict(_fields(message))
    score = struct.unpack("<f", fields[2])[0] if 2 in fields else 0.0
    return _Piece(fields.get(1, b"").decode("utf-8"), score, fields.get(3, 1))


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message: their numbers, and whole numbers or bytes.

    Raises:
        ValueError: a field ends behind the message, or is of a kind that no longer exists.
    """
    place = 0
    while place < len(message):
        key, place = _whole_number(message, place)
        wire = key & 7
        if wire == 0:
            value, place = _whole_number(message, place)
            # Negative numbers (pad_id -1) come as 64 bits.
            yield key >> 3, value - (1 << 64) if value >> 63 else value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"wire type {wire} at byte {place}")
        size, place = _whole_number(message, place) if wire == 2 else (8 if wire == 1 else 4, place)
        if place + size > len(message):
            raise ValueError(f"it ends within a field of {size} bytes at byte {place}")
        yield key >> 3, message[place : place + size]
        place += size


def _whole_number(message: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the lowest first, and the place behind it."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise ValueError(f"a number of more than ten bytes at byte {place}")
