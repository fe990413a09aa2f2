"""BLiMP and its supplement: of two sentences that differ in one point of grammar, the model prefers the good one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.scoring.benchmark import Benchmark, Subject, register
from workbench.scoring.evaluation_files import Source
from workbench.store.evaluations import Measured

# Shape legend: P pairs of sentences.


@dataclass(frozen=True)
class MinimalPairs(Benchmark):
    """Pairs of a good and a bad sentence, in paradigms, which belong to groups.

    score = mean over paradigms of the share of pairs whose good sentence is likelier; a tie counts half. A sentence's
    likelihood is the sum over its tokens after [CLS]; the [SEP] at its end is not counted.

    Source: Warstadt et al. 2020, "BLiMP" (arXiv 1912.00582); the supplement is of the BabyLM challenge (Warstadt et al.
    2023). Pseudo-log-likelihood: Salazar et al. 2020 (arXiv 1910.14659).
    """

    name: str
    summary: str
    source: Source
    paradigm: str
    group: str

    def chosen(self, subject: Subject) -> dict[str, list[dict[str, Any]]]:
        """Return the pairs by paradigm, the first of each."""
        found: dict[str, list[dict[str, Any]]] = {}
        for item in subject.items(self.name, self.source):
            found.setdefault(str(item[self.paradigm]), []).append(item)
        return {name: pairs[: subject.size.pairs] for name, pairs in found.items()}

    def texts(self, subject: Subject) -> list[str]:
        """See :meth:`Benchmark.texts`."""
        return [pair[side] for pairs in self.chosen(subject).values() for pair in pairs for side in _SIDES]

    def measure(self, subject: Subject) -> dict[str, Measured]:
        """See :meth:`Benchmark.measure`; a share for the whole, and for each group of paradigms."""
        paradigms, reader = self.chosen(subject), subject.reader
        pairs = [pair for each in paradigms.values() for pair in each]
        # Both sides in one call: the progress is that of the whole, and equal sentences get equal numbers.
        sentences = reader.pairs([("", pair[side]) for side in _SIDES for pair in pairs])
        said = reader.likelihoods(sentences, tell=subject.tell)
        right_P = preferred(*np.split(said.nats_P, 2))
        counts_V = subject.counts_V
        plain_P = None if counts_V is None else preferred(
            *np.split(_by_frequency([ids for _, ids in sentences], counts_V), 2))  # fmt: skip
        groups: dict[str, list[tuple[float, float | None, int]]] = {}
        begin = 0
        for each in paradigms.values():
            end = begin + len(each)
            plain = None if plain_P is None else float(plain_P[begin:end].mean())
            result = (float(right_P[begin:end].mean()), plain, len(each))
            groups.setdefault(str(each[0][self.group]), []).append(result)
            begin = end
        cut = f"; {int(said.cut_P.sum()):,} sentences are longer than a row" if said.cut_P.any() else ""
        whole = _mean([result for group in groups.values() for result in group], reader.how + cut)
        return {self.name: whole} | {f"{self.name}/{name}": _mean(group) for name, group in sorted(groups.items())}


_SIDES = ("sentence_good", "sentence_bad")


def preferred(good_P: np.ndarray, bad_P: np.ndarray) -> np.ndarray:
    """Return 1 where the good sentence is likelier, 0.5 for a tie, else 0; float64 of shape (P,).

    Example:
        >>> preferred(np.array([-1.0, -2.0, -3.0]), np.array([-2.0, -2.0, -2.0])).tolist()
        [1.0, 0.5, 0.0]
    """
    return (np.sign(good_P - bad_P) + 1) / 2


def _by_frequency(sentences: Sequence[Sequence[int]], counts_V: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of sentences under add-one word frequencies."""
    nats_V = np.log(counts_V + 1.0) - math.log(float(counts_V.sum()) + len(counts_V))
    # Exactly rounded: the same words in another order are a tie.
    return np.array([math.fsum(nats_V[list(ids)]) for ids in sentences])


def _mean(results: Sequence[tuple[float, float | None, int]], note: str = "") -> Measured:
    """Return the mean over paradigms, each with its share, that of word frequencies, and its number of pairs."""
    shares, plain, counts = zip(*results, strict=True)
    beside = {"chance": 0.5}
    if None not in plain:
        beside["word frequencies"] = float(np.mean(plain))
    return Measured(float(np.mean(shares)), "share right", sum(counts), "higher", beside, note)


register(
    MinimalPairs(
        name="blimp",
        summary="67 kinds of minimal pairs of English grammar, 1,000 each",
        source=Source(
            ("blimp.jsonl*", "blimp/*.jsonl*", "blimp/data/*.jsonl*"), "nyu-mll/blimp", "*",
            fields=(frozenset({"UID", "linguistics_term", *_SIDES}),),
        ),
        paradigm="UID",
        group="linguistics_term",
    )
)  # fmt: skip
register(
    MinimalPairs(
        name="blimp_supplement",
        summary="five more kinds of minimal pairs: hypernyms, questions and answers, inversion, turn taking",
        source=Source(("blimp_supplement*.jsonl*",), fields=(frozenset({"paradigm", *_SIDES}),)),
        paradigm="paradigm",
        group="paradigm",
    )
)
