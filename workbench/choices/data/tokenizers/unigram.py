"""A Unigram vocabulary with bytes, learned from a sample of text.

Not the library's UnigramTrainer (tokenizers 0.23): its pieces are those that several different words share, so that
common words that are part of no other are missing ("from"), and its sums follow a randomly seeded table.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from workbench.choices.data.tokenizers.alphabet import COVERED_SHARE, byte_names, commonest, counted
from workbench.choices.data.tokenizers.lattice import Lattice, Substrings
from workbench.choices.data.tokenizers.vocabulary import SPECIAL_TOKENS

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

# Shape legend: W words, P pieces, S substrings.

WORD_START = "\u2581"
PIECE_CHARACTERS = 16
WORD_CHARACTERS = 32
"""Longest stretch that is cut as a whole: the product of its probabilities stays far above the smallest float64."""
MOST_CHARACTERS = 2_000_000
"""Characters of different words, at most: scripts without spaces have few equal ones."""
SEEDS_PER_ID = 20
KEPT_SHARE = 0.75
"""Share of the pieces that stay, in each round."""
_DIGITS = 6
_SIGNS = rf"[\p{{P}}\p{{S}}&&[^{WORD_START}]]"
_CUTS = rf"{WORD_START}?(?:[^\s{WORD_START}\p{{P}}\p{{S}}]+|{_SIGNS}+)|{WORD_START}|\s+"
"""Words with the space before them; signs with theirs, in one or several."""


def learn_unigram(sample: list[str], size: int) -> Tokenizer:
    """Return a tokenizer of at most ``size`` ids: special tokens, 256 bytes, letters and pieces.

    A space becomes the mark of the word behind it; a character without an id becomes its UTF-8 bytes. So every text
    without U+2581 comes back as it was.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers

    # Names of bytes and special tokens are never found in text, which is cut at every [ and <: they need no score.
    names = [*SPECIAL_TOKENS, *byte_names()]
    vocabulary = [*((name, 0.0) for name in names), *learned_pieces(sample, size - len(names))]
    tokenizer = Tokenizer(models.Unigram(vocabulary, SPECIAL_TOKENS.index("[UNK]"), True))
    tokenizer.normalizer = normalizers.Replace(" ", WORD_START)
    tokenizer.pre_tokenizer = _cutting()
    tokenizer.decoder = decoders.Sequence([decoders.Replace(WORD_START, " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def learned_pieces(sample: list[str], room: int) -> list[tuple[str, float]]:
    """Return at most ``room`` pieces with their log-probabilities, the likeliest first.

    Letters are among them, as many as cover 99.99% of the text: they may fill half of the room (Chinese), and no more.

    Source: Kudo 2018, arXiv 1804.10959, section 3.2; steps and constants are those of SentencePiece's trainer.
    """
    sample = [text.replace(" ", WORD_START) for text in sample]
    counts = _words(sample, set(commonest(counted(sample), room // 2, COVERED_SHARE)))
    if not counts:
        return []
    words, counts_W = list(counts), np.array(list(counts.values()), np.float64)
    names, hashes, used_P = _seeds(words, counts_W, room * SEEDS_PER_ID)
    is_letter_P = np.array([len(name) == 1 for name in names])
    cuts, others = Lattice.of(words, hashes), Lattice.of(names, hashes, whole=False)
    p_P = used_P / used_P.sum()
    # A tenth more than asked for: the least likely of them go at the end.
    enough = int(1.1 * room)
    while True:
        for _ in range(2):
            used_P = cuts.expected(p_P, counts_W)
            p_P = _maximised(used_P, is_letter_P)
        size = np.count_nonzero(p_P)
        if size <= enough:
            break
        worth_P = np.where(is_letter_P, np.inf, _worth(cuts, others, p_P, counts_W))
        worth_P[p_P == 0] = -np.inf
        kept_P = np.zeros(len(p_P), bool)
        kept_P[np.argsort(-worth_P, kind="stable")[: max(enough, int(KEPT_SHARE * size))]] = True
        p_P = np.where(kept_P, p_P, 0)
        cuts, others = cuts.keep(p_P > 0), others.keep(p_P > 0)
    order_P = np.lexsort((-p_P, ~is_letter_P))[: min(room, size)]
    # Rounded: the last digits may differ between machines.
    found = [(names[piece], round(float(np.log(p_P[piece])), _DIGITS)) for piece in order_P]
    return sorted(found, key=lambda piece: (-piece[1], piece[0]))


def _cutting() -> PreTokenizer:
    """Return what cuts text before pieces are looked for: into words, numbers, punctuation and breaks of line."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Split(Regex(_CUTS), "isolated")


def _words(sample: list[str], letters: set[str]) -> dict[str, int]:
    """Return the words of a text with their counts, the commonest first; cut at what is no letter, and where long."""
    cutting = _cutting()
    found = Counter(word for text in sample for word, _ in cutting.pre_tokenize_str(text))
    stretch = re.compile(rf"[{re.escape(''.join(sorted(letters)))}]{{1,{WORD_CHARACTERS}}}") if letters else None
    counts: Counter[str] = Counter()
    for word, count in found.items():
        for part in stretch.findall(word) if stretch else ():
            counts[part] += count
    kept: dict[str, int] = {}
    characters = 0
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        characters += len(word)
        if kept and characters > MOST_CHARACTERS:
            break
        kept[word] = counts[word]
    return kept


def _seeds(words: list[str], counts_W: np.ndarray, most: int) -> tuple[list[str], list[np.ndarray], np.ndarray]:
    """Return all letters and the substrings that save most: names, sorted hashes by length, and occurrences (P,)."""
    substrings = Substrings(words)
    found = []
    for length, begin_S, hash_S in substrings.hashes(PIECE_CHARACTERS):
        hash_U, first_U, inverse_S = np.unique(hash_S, return_index=True, return_inverse=True)
        count_U = np.bincount(inverse_S, counts_W[substrings.word_C[begin_S]], len(hash_U))
        kept_U = (count_U >= 2) | (length == 1)
        found.append((hash_U[kept_U], begin_S[first_U][kept_U], count_U[kept_U]))
    saved = [count_U * (length if length > 1 else np.inf) for length, (_, _, count_U) in enumerate(found, 1)]
    order = np.argsort(-np.concatenate(saved), kind="stable")
    is_seed = np.zeros(len(order), bool)
    is_seed[order[: max(most, len(saved[0]))]] = True
    names, hashes, used = [], [], []
    bounds = np.cumsum([len(each) for each in saved])[:-1]
    for length, (hash_U, begin_U, count_U), kept_U in zip(
        range(1, PIECE_CHARACTERS + 1), found, np.split(is_seed, bounds), strict=False
    ):
        hashes.append(hash_U[kept_U])
        names += [substrings.text[begin : begin + length] for begin in begin_U[kept_U].tolist()]
        used.append(count_U[kept_U] * length)
    return names, hashes, np.concatenate(used)


def _maximised(used_P: np.ndarray, is_letter_P: np.ndarray) -> np.ndarray:
    """Return probabilities from expected counts, with a prior that prefers few pieces; unused ones get 0."""
    from scipy.special import digamma

    # A letter stays, however rare.
    used_P = np.where(is_letter_P, np.maximum(used_P, 0.5), used_P)
    kept_P = used_P >= 0.5
    p_P = np.zeros(len(used_P))
    p_P[kept_P] = np.exp(digamma(used_P[kept_P]) - digamma(used_P[kept_P].sum()))
    return p_P


def _worth(cuts: Lattice, others: Lattice, p_P: np.ndarray, counts_W: np.ndarray) -> np.ndarray:
    """Return the likelihood that the text would lose without each piece, with its next best cut instead, (P,)."""
    used_P = np.zeros(len(p_P))
    for word_A, piece_A in cuts.likeliest(p_P):
        used_P += np.bincount(piece_A, counts_W[word_A], len(p_P))
    total = used_P.sum()
    parts_P, instead_P = np.zeros(len(p_P)), np.zeros(len(p_P))
    with np.errstate(divide="ignore", invalid="ignore"):
        for piece_A, part_A in others.likeliest(p_P):
            parts_P[piece_A] += 1
            instead_P[piece_A] += np.log(used_P[part_A] + used_P[piece_A])
        instead_P -= parts_P * np.log(total + used_P * (parts_P - 1))
        worth_P = used_P / total * (np.log(used_P / total) - instead_P)
    return np.where(used_P > 0, worth_P, 0)
