"""ARC-easy, PIQA and COPA: of several continuations of a question, the model prefers the right one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from workbench.scoring.benchmark import Benchmark, Subject, register
from workbench.scoring.evaluation_files import Source
from workbench.store.evaluations import Measured

# Shape legend: C choices of a question.


class Question(NamedTuple):
    """A context, its continuations, each with its space, and the place of the right one."""

    context: str
    choices: tuple[str, ...]
    right: int


@dataclass(frozen=True)
class MultipleChoice(Benchmark):
    """Questions whose answers are scored as continuations, worded as lm-evaluation-harness words them.

    ``NAME`` takes the answer with the highest summed log-likelihood, ``NAME.per_character`` the highest divided by the
    answer's characters (the harness calls them acc and acc_norm).

    Source: Clark et al. 2018 (ARC, arXiv 1803.05457); Bisk et al. 2020 (PIQA, arXiv 1911.11641); Roemmele et al. 2011
    (COPA). Wording: github.com/EleutherAI/lm-evaluation-harness.
    """

    name: str
    summary: str
    source: Source
    question: Callable[[Mapping[str, Any]], Question]

    def chosen(self, subject: Subject) -> list[Question]:
        """Return the questions."""
        found = subject.items(self.name, self.source)
        return [self.question(item) for item in found[: subject.size.questions]]

    def texts(self, subject: Subject) -> list[str]:
        """See :meth:`Benchmark.texts`; a question with its right answer."""
        return [each.context + each.choices[each.right] for each in self.chosen(subject)]

    def measure(self, subject: Subject) -> dict[str, Measured]:
        """See :meth:`Benchmark.measure`."""
        questions, reader = self.chosen(subject), subject.reader
        pairs = reader.pairs([(each.context, choice) for each in questions for choice in each.choices])
        said = reader.likelihoods(pairs, tell=subject.tell)
        begins = np.cumsum([0, *(len(each.choices) for each in questions)])
        nats = [said.nats_P[begin:end] for begin, end in pairwise(begins)]
        beside = baselines(questions)
        cut = f"; {int(said.cut_P.sum()):,} answers with their question are longer than a row: cut at the beginning"
        note = reader.how + (cut if said.cut_P.any() else "")
        scores = {
            self.name: [right(each, nats_C) for each, nats_C in zip(questions, nats, strict=True)],
            # The space before an answer is not one of its characters.
            f"{self.name}.per_character": [
                right(each, nats_C / [max(1, len(choice.strip())) for choice in each.choices])
                for each, nats_C in zip(questions, nats, strict=True)
            ],
        }
        return {
            name: Measured(float(np.mean(shares)), "share right", len(questions), "higher", beside, note)
            for name, shares in scores.items()
        }


def right(question: Question, values_C: np.ndarray) -> float:
    """Return 1 where the right choice alone has the highest value; of k that share it, 1/k."""
    best_C = values_C == values_C.max()
    return float(best_C[question.right]) / int(best_C.sum())


def baselines(questions: Sequence[Question]) -> dict[str, float]:
    """Return what is reached without a model: chance, the most frequent place, and shared words.

    ``overlap`` takes the choice that shares the largest part of its words with the question.
    """
    places = Counter(each.right for each in questions)
    return {
        "chance": math.fsum(1 / len(each.choices) for each in questions) / len(questions),
        "majority": max(places.values()) / len(questions),
        "overlap": float(np.mean([right(each, _shared(each)) for each in questions])),
    }


def _shared(question: Question) -> np.ndarray:
    words = set(question.context.lower().split())
    choices = [choice.lower().rstrip(".").split() for choice in question.choices]
    return np.array([sum(word in words for word in choice) / max(1, len(choice)) for choice in choices])


def _arc(item: Mapping[str, Any]) -> Question:
    choices, right = item["choices"], item.get("label")
    if isinstance(choices, Mapping):  # as on the Hub
        right, choices = list(choices["label"]).index(item["answerKey"]), choices["text"]
    assert right is not None
    return Question(f"Question: {item['question']}\nAnswer:", tuple(f" {choice}" for choice in choices), int(right))


def _piqa(item: Mapping[str, Any]) -> Question:
    choices = (f" {item['sol1']}", f" {item['sol2']}")
    return Question(f"Question: {item['goal']}\nAnswer:", choices, int(item["label"]))


def _copa(item: Mapping[str, Any]) -> Question:
    word = {"cause": "because", "effect": "therefore"}[item["question"]]
    choices = tuple(f" {text[0].lower()}{text[1:]}" for text in (item["choice1"], item["choice2"]))
    # Without its full stop.
    return Question(f"{item['premise'].strip()[:-1]} {word}", choices, int(item["label"]))


register(
    MultipleChoice(
        "arc_easy", "questions of school science with three to five answers, 2,376",
        Source(("arc_easy*.jsonl*",), "allenai/ai2_arc", "ARC-Easy", "test",
               (frozenset({"question", "choices", "label"}), frozenset({"question", "choices", "answerKey"}))),
        _arc,
    )
)  # fmt: skip
register(
    MultipleChoice(
        "piqa", "which of two ways reaches a goal in the physical world, 1,838",
        Source(("piqa*.jsonl*",), "baber/piqa", "", "validation", (frozenset({"goal", "sol1", "sol2", "label"}),)),
        _piqa,
    )
)  # fmt: skip
register(
    MultipleChoice(
        "copa", "which of two sentences is the cause or the effect of a third, 100",
        Source(("copa*.jsonl*",), "aps/super_glue", "copa", "validation",
               (frozenset({"premise", "choice1", "choice2", "question", "label"}),)),
        _copa,
    )
)  # fmt: skip
