"""Learning a Unigram vocabulary, against every way to cut a word, and against SentencePiece."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

import workbench
from workbench.choices.data.tokenizers.lattice import Lattice, Substrings
from workbench.choices.data.tokenizers.trained import TrainedTokenizer
from workbench.choices.data.tokenizers.unigram import learned_pieces

WORDS = ("abab", "ba", "a", "abba")
PIECES = ("a", "b", "ab", "ba", "bab")


def cuts(word: str) -> list[list[str]]:
    """Every way to write a word in pieces, one by one."""
    found = []
    for ends in itertools.product((False, True), repeat=len(word) - 1):
        places = [0, *(place for place, end in enumerate(ends, 1) if end), len(word)]
        parts = [word[low:high] for low, high in itertools.pairwise(places)]
        if set(parts) <= set(PIECES):
            found.append(parts)
    return found


def lattice(words: tuple[str, ...], **options: bool) -> tuple[Lattice, list[str]]:
    """The lattice and the pieces in the order of their numbers."""
    hashes, names = [], []
    for length in (1, 2, 3):
        alike = [piece for piece in PIECES if len(piece) == length]
        known = {}
        for piece in alike:
            known[int(list(Substrings([piece]).hashes(length))[-1][2][0])] = piece
        hashes.append(np.array(sorted(known), np.uint64))
        names += [known[key] for key in sorted(known)]
    return Lattice.of(words, hashes, **options), names


def expected(p: dict[str, float], counts: dict[str, float], *, whole: bool = True) -> dict[str, float]:
    """Return how often each piece is used, on average."""
    used = dict.fromkeys(p, 0.0)
    for word, count in counts.items():
        ways = [parts for parts in cuts(word) if whole or len(word) == 1 or len(parts) > 1]
        chances = [math.prod(p[part] for part in parts) for parts in ways]
        for chance, parts in zip(chances, ways, strict=True):
            for part in parts:
                used[part] += count * chance / sum(chances)
    return used


COUNTS = dict(zip(WORDS, (3.0, 2.0, 5.0, 1.0), strict=True))
COUNTS_W = np.array(list(COUNTS.values()))


def test_expected_counts_and_likeliest_cuts_are_those_of_all_cuts() -> None:
    found, names = lattice(WORDS)
    p = dict(zip(names, (0.3, 0.2, 0.25, 0.15, 0.1), strict=True))
    p_P = np.array(list(p.values()))
    assert dict(zip(names, found.expected(p_P, COUNTS_W), strict=True)) == pytest.approx(expected(p, COUNTS))
    paths: dict[int, list[str]] = {number: [] for number in range(len(WORDS))}
    for word_A, piece_A in found.likeliest(p_P):
        for word, piece in zip(word_A.tolist(), piece_A.tolist(), strict=True):
            paths[word].insert(0, names[piece])
    best = [max(cuts(word), key=lambda parts: math.prod(p[part] for part in parts)) for word in WORDS]
    assert list(paths.values()) == best


def test_pieces_that_are_left_out_are_in_no_cut() -> None:
    found, names = lattice(WORDS)
    p = {name: 0.0 if name in ("ab", "bab") else 0.2 for name in names}
    p_P = np.array(list(p.values()))
    used_P = found.keep(p_P > 0).expected(p_P, COUNTS_W)
    assert dict(zip(names, used_P, strict=True)) == pytest.approx(expected(p, COUNTS))
    without, names = lattice(WORDS, whole=False)
    p = dict.fromkeys(names, 0.2)
    used_P = without.expected(np.full(len(names), 0.2), COUNTS_W)
    assert dict(zip(names, used_P, strict=True)) == pytest.approx(expected(p, COUNTS, whole=False))


def test_common_words_are_pieces_and_letters_stay() -> None:
    text = ["from those who came, from those who went: Ω"] * 50
    pieces = dict(learned_pieces(text, 40))
    assert {"\u2581from", "\u2581those", "\u2581who", "Ω"} <= set(pieces)
    assert set("fromthsewancw:,Ω\u2581") <= set(pieces)
    assert sum(math.exp(score) for score in pieces.values()) == pytest.approx(1, abs=0.1)
    assert learned_pieces([], 40) == learned_pieces(["\n"], 0) == []
    assert len(learned_pieces(["".join(map(chr, range(0x4E00, 0x4E80)))] * 3, 40)) <= 40


def test_as_few_tokens_as_sentencepiece(tmp_path: Path) -> None:
    """On the cards of the choices: a megabyte of English with names and numbers."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    texts = [path.read_text() for path in sorted(Path(workbench.__file__).parent.rglob("*.md"))]
    lines = [" ".join(line.split()) for text in texts for line in text.splitlines() if line.strip()]
    TrainedTokenizer(algorithm="unigram", vocabulary_size=1200).make(iter(lines), tmp_path / "tokenizer.json")
    ours = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(tmp_path / "theirs"), vocab_size=1200, byte_fallback=True,
        normalization_rule_name="identity", minloglevel=2, num_threads=1,
    )  # fmt: skip
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "theirs.model"))
    count = sum(len(ours.encode(text, add_special_tokens=False).ids) for text in lines)
    assert count <= 1.03 * sum(map(len, theirs.encode(lines)))
