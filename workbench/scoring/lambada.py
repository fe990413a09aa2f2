"""LAMBADA: the last word of a passage, which its last sentence alone does not give away."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import numpy as np

from workbench.scoring.benchmark import Benchmark, Subject, register
from workbench.scoring.evaluation_files import Source
from workbench.store.evaluations import Measured


class Lambada(Benchmark):
    """The share of last words that are the model's first choice, and exp(-mean log-likelihood of a last word).

    A word of several tokens is right if each of them is. Models that read from both sides see the whole word hidden at
    once: read piece by piece, its other pieces would give it away. They still see how many pieces it has, and that the
    text ends there.

    Source: Paperno et al. 2016 (arXiv 1606.06031), in OpenAI's version, as lm-evaluation-harness's lambada_openai.
    """

    name = "lambada"
    summary = "the last word of 5,153 passages of novels: how often it is guessed, and its perplexity"
    source = Source(
        ("lambada*.jsonl*",), "EleutherAI/lambada_openai", "default", "test",
        (frozenset({"context", "target"}), frozenset({"text"})),
    )  # fmt: skip

    def chosen(self, subject: Subject) -> list[tuple[str, str]]:
        """Return contexts and last words; twice the questions of a part, since they are quick to read."""
        found = subject.items(self.name, self.source)
        return [_split(item) for item in found[: subject.size.questions and 2 * subject.size.questions]]

    def texts(self, subject: Subject) -> list[str]:
        """See :meth:`Benchmark.texts`."""
        return [f"{context} {word}" for context, word in self.chosen(subject)]

    def measure(self, subject: Subject) -> dict[str, Measured]:
        """See :meth:`Benchmark.measure`; ``lambada`` and ``lambada.perplexity``."""
        passages, reader = self.chosen(subject), subject.reader
        pairs = reader.pairs([(context, f" {word}") for context, word in passages])
        said = reader.likelihoods(pairs, at_once=True, tell=subject.tell)
        how = "log-likelihood" if reader.causal else "the tokens of the word hidden together"
        cut = int(said.cut_P.sum())
        note = how + (f"; {cut:,} passages are longer than a row: cut at the beginning" if cut else "")
        count, beside = len(passages), {"overlap": float(np.mean([_repeated(each) for each in passages]))}
        # Beyond e^700 a float ends.
        perplexity = math.exp(min(700.0, -float(said.nats_P.mean())))
        levels = {} if subject.counts_V is None else {"word frequencies": _plain([ids for _, ids in pairs], subject)}
        return {
            self.name: Measured(float(said.likeliest_P.mean()), "share right", count, "higher", beside, note),
            f"{self.name}.perplexity": Measured(perplexity, "perplexity of a word", count, "lower", levels, note),
        }


def _split(item: dict[str, Any]) -> tuple[str, str]:
    if "target" in item:
        return item["context"], item["target"]
    context, _, word = item["text"].rpartition(" ")
    return context, word


def _repeated(passage: tuple[str, str]) -> bool:
    """Return True if the word of at least four letters that stands most often in the context is the answer."""
    context, word = passage
    # The last of those that are equally frequent.
    counts = Counter(reversed(re.findall(r"\w{4,}", context.lower())))
    return bool(counts) and counts.most_common(1)[0][0] == word.lower()


def _plain(words: list[tuple[int, ...]], subject: Subject) -> float:
    """Return the perplexity of words under add-one frequencies of their tokens."""
    counts_V = subject.counts_V
    assert counts_V is not None
    nats_V = np.log(counts_V + 1.0) - math.log(float(counts_V.sum()) + len(counts_V))
    return math.exp(min(700.0, -float(np.mean([nats_V[list(ids)].sum() for ids in words]))))


register(Lambada())
