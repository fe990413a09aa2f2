"""The baselines of a held-out set: losses of word frequencies and of neighbouring words, counted in the training text.

*Unigram*: p(w) = (c(w) + 1) / (C + W), over the W ids that can be labels. *Neighbours*: Witten-Bell interpolation,

    p(w | v) = (c(v, w) + T(v) p(w)) / (c(v) + T(v)),    T(v) different words seen next to v,

with v the token before (causal). For masked models the token before and the token behind, each where it is visible:
p(w | v, u) ~ p(w | v) p(w | u) / p(w), made to sum to 1 over the vocabulary.

Source: Witten & Bell 1991, "The zero-frequency problem", method C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.choices.data.cache import cache_entry, key_of
from workbench.choices.data.data import Say
from workbench.choices.data.tokens import PreparedData, TokenStore
from workbench.choices.objectives.frequencies import frequencies, predictable
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.choices.objectives.windows import seen_windows
from workbench.telemetry.baselines import Baselines

# Shape legend: V ids, S scored tokens, N tokens of a text, E different pairs, K contexts.

VERSION = 2
"""Part of the cache key: raise it whenever the same text and set would give other baselines."""
WINDOWS_FILE = "seen_windows.npy"
CHUNK_TOKENS = 1 << 22
PART_PAIRS = 1 << 24
"""Pairs that are sorted at once (128 MiB of keys). Longer texts are read several times, for a few contexts each."""
MOST_PARTS = 32


def text_baselines(prepared: PreparedData, heldout: HeldoutSet, say: Say) -> Baselines:
    """Return the baselines of a set in nats per scored token, counted once per text and set, then read from the cache.

    Raises:
        DataError: the cache cannot be written.
    """
    _, content = _counted(prepared, heldout, say)
    return Baselines(content["unigram"], content["neighbours"])


def with_windows(prepared: PreparedData, heldout: HeldoutSet, say: Say) -> HeldoutSet:
    """Return the set with ``seen_S``, (S,): looked up in the training text once, then read from the cache.

    Raises:
        DataError: the cache cannot be written.
    """
    folder, _ = _counted(prepared, heldout, say)
    return replace(heldout, seen_S=np.load(folder / WINDOWS_FILE))


def _counted(prepared: PreparedData, heldout: HeldoutSet, say: Say) -> tuple[Path, dict[str, Any]]:
    """Return the cache's folder and manifest of a text and a set."""
    made_from = {"version": VERSION, "tokens": prepared.fingerprint["key"], "score": heldout.described()}
    if limit := prepared.fingerprint.get("tokens_limit"):
        made_from["tokens_limit"] = limit

    def build(folder: Path) -> dict[str, Any]:
        say("counting neighbouring tokens of the training text")
        np.save(folder / WINDOWS_FILE, seen_windows(prepared.train, heldout))
        return {"made_from": made_from, **count_baselines(prepared.train, prepared.counts_V, heldout)._asdict()}

    return cache_entry("floors", key_of(made_from), build, say)


def count_baselines(train: TokenStore, counts_V: np.ndarray, heldout: HeldoutSet) -> Baselines:
    """Return the baselines of a set in nats per scored token; NaN where it has none."""
    p_V = frequencies(counts_V, predictable(heldout.vocabulary, causal=heldout.causal))
    p_S = p_V[heldout.ids_N[heldout.scored_S]]
    if not len(p_S):
        return Baselines(float("nan"))
    probability = _left if heldout.causal else _both
    neighbours_S = probability(train, counts_V, p_V, heldout)
    return Baselines(float(-np.log(p_S).mean()), float(-np.log(neighbours_S).mean()))


@dataclass(frozen=True)
class Bigrams:
    """Counts of the words beside some contexts.

    Attributes:
        keys_E: context * V + word, rising. counts_E: occurrences of each.
        total_V: words seen beside each context. kinds_V: different ones.
        p_V: word frequencies.
    """

    keys_E: np.ndarray
    counts_E: np.ndarray
    total_V: np.ndarray
    kinds_V: np.ndarray
    p_V: np.ndarray

    def backoff(self, contexts: np.ndarray) -> np.ndarray:
        """Return weight of the word frequencies beside each context: 1 for unseen contexts."""
        kinds = self.kinds_V[contexts]
        return np.asarray(np.where(kinds > 0, kinds / np.maximum(1, self.total_V[contexts] + kinds), 1.0))

    def probability(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return p(word | context), all of one shape."""
        keys = contexts * len(self.p_V) + words
        begin, end = np.searchsorted(self.keys_E, keys), np.searchsorted(self.keys_E, keys, side="right")
        # One more entry: a key above all others points behind the last count.
        found = np.append(self.counts_E, 0)[begin] * (end > begin)
        seen = np.maximum(1, self.total_V[contexts] + self.kinds_V[contexts])
        return np.asarray(found / seen + self.backoff(contexts) * self.p_V[words])

    def beside(self, context: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the words seen beside a context, and the part of their probability that does not come from ``p_V``."""
        size = len(self.p_V)
        begin, end = np.searchsorted(self.keys_E, [context * size, (context + 1) * size])
        words = self.keys_E[begin:end] - context * size
        return words, self.counts_E[begin:end] / (self.total_V[context] + self.kinds_V[context])


def count_bigrams(
    train: TokenStore, counts_V: np.ndarray, p_V: np.ndarray, contexts: np.ndarray, *, after: bool
) -> Bigrams:
    """Count the words behind (or before) some contexts, within documents.

    Memory holds :data:`PART_PAIRS` pairs (or one part in :data:`MOST_PARTS` of the text) and the different pairs.

    Args:
        p_V: word frequencies; words of frequency 0 are not counted.
        contexts: ids beside which words are counted.
        after: count words behind their context, else before it.
    """
    size = len(p_V)
    wanted_V = np.zeros(size, bool)
    wanted_V[contexts] = True
    ends_V = np.cumsum(np.where(wanted_V, counts_V, 0))
    part_V = ends_V // max(PART_PAIRS, int(ends_V[-1]) // MOST_PARTS)
    keys, counts = [np.empty(0, np.int64)], [np.empty(0, np.uint32)]
    for part in np.unique(part_V[wanted_V]):
        found = list(_pair_keys(train, wanted_V & (part_V == part), p_V > 0, after))
        part_keys, part_counts = np.unique(np.concatenate(found), return_counts=True)
        keys.append(part_keys)
        counts.append(part_counts.astype(np.uint32))
    # Parts follow one another as their contexts do, so the keys are rising in all.
    keys_E, counts_E = np.concatenate(keys), np.concatenate(counts)
    total_V = np.bincount(keys_E // size, weights=counts_E, minlength=size)
    return Bigrams(keys_E, counts_E, total_V, np.bincount(keys_E // size, minlength=size), p_V)


def _pair_keys(train: TokenStore, contexts_V: np.ndarray, words_V: np.ndarray, after: bool) -> Iterator[np.ndarray]:
    """Yield ``context * V + word`` of every pair of neighbours in one document, a chunk of the text at a time."""
    for begin in range(0, train.tokens - 1, CHUNK_TOKENS):
        ids = np.asarray(train.ids_N[begin : begin + CHUNK_TOKENS + 1], np.int64)
        first, second = ids[:-1], ids[1:]
        context, word = (first, second) if after else (second, first)
        wanted = contexts_V[context] & words_V[word]
        # A pair whose second token begins a document spans two texts.
        low, high = np.searchsorted(train.offsets_D1, [begin + 1, begin + len(ids)])
        wanted[train.offsets_D1[low:high] - begin - 1] = False
        yield context[wanted] * len(words_V) + word[wanted]


def _left(train: TokenStore, counts_V: np.ndarray, p_V: np.ndarray, heldout: HeldoutSet) -> np.ndarray:
    """Return probability of each scored token behind the one before it, (S,)."""
    left_S = heldout.ids_N[heldout.scored_S - 1]
    bigrams = count_bigrams(train, counts_V, p_V, np.unique(left_S), after=True)
    return bigrams.probability(left_S, heldout.ids_N[heldout.scored_S])


def _both(train: TokenStore, counts_V: np.ndarray, p_V: np.ndarray, heldout: HeldoutSet) -> np.ndarray:
    """Return probability of each scored token between its two neighbours, where they are not scored themselves,
    (S,).
    """
    place_S = heldout.scored_S
    word_S, left_S = heldout.ids_N[place_S], heldout.ids_N[place_S - 1]
    # The set may end within a document: its last token has no right neighbour.
    right_S = np.append(heldout.ids_N, heldout.vocabulary.pad)[place_S + 1]
    has_left_S = ~np.isin(place_S - 1, place_S)
    has_right_S = ~np.isin(place_S + 1, place_S) & (place_S + 1 < heldout.tokens)
    before = count_bigrams(train, counts_V, p_V, np.unique(left_S[has_left_S]), after=True)
    behind = count_bigrams(train, counts_V, p_V, np.unique(right_S[has_right_S]), after=False)
    p_S = p_V[word_S]
    found_S = p_S.copy()
    found_S[has_left_S] = before.probability(left_S[has_left_S], word_S[has_left_S])
    found_S[has_right_S] *= behind.probability(right_S[has_right_S], word_S[has_right_S]) / p_S[has_right_S]
    both_S = has_left_S & has_right_S
    found_S[both_S] /= _sums_of_products(before, behind, left_S[both_S], right_S[both_S])
    return found_S


def _sums_of_products(before: Bigrams, behind: Bigrams, left_S: np.ndarray, right_S: np.ndarray) -> np.ndarray:
    """Sum over all words w of p(w | left) p(w | right) / p(w), (S,).

    With p(w | left) = a(w) + x p(w) and p(w | right) = b(w) + y p(w), where a sums to 1 - x and b to 1 - y, it is
    x + y - x y + sum of a(w) b(w) / p(w): only words seen beside both contexts count.
    """
    size = len(before.p_V)
    x_S, y_S = before.backoff(left_S), behind.backoff(right_S)
    pairs, inverse_S = np.unique(right_S * size + left_S, return_inverse=True)
    overlap = np.zeros(len(pairs))
    ratio_V, right_now, used = np.zeros(size), -1, np.empty(0, np.int64)
    seen_beside: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for number, pair in enumerate(pairs.tolist()):
        right, left = divmod(pair, size)
        if right != right_now:
            ratio_V[used] = 0.0
            used, share = behind.beside(right)
            ratio_V[used] = share / before.p_V[used]
            right_now = right
        if left not in seen_beside:
            seen_beside[left] = before.beside(left)
        words, share = seen_beside[left]
        overlap[number] = share @ ratio_V[words]
    return np.asarray(x_S + y_S - x_S * y_S + overlap[inverse_S])
