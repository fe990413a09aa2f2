"""Curricula against the obvious sort and draw."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.choices.data.orders.slow import prepared_of, rows_of
from tests.costs import quick_ones
from workbench.base.errors import DataError, RecipeError
from workbench.choices.data import Embedded
from workbench.choices.data.order import raw_words, shuffled
from workbench.choices.data.orders import Curriculum
from workbench.choices.data.orders.curriculum import mean_log_frequency
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe

DRAW = np.random.default_rng(1)
DOCUMENTS = [(5 + DRAW.zipf(1.5, size) % 50).tolist() for size in DRAW.integers(1, 30, 50)]
PREPARED = prepared_of(DOCUMENTS)
LENGTH = 12


def slow_frequency(document: list[int]) -> float:
    """Mean log share of a document's tokens in the whole text."""
    text = [token for each in DOCUMENTS for token in [1, *each, 2]]
    return sum(math.log(text.count(token) / len(text)) for token in document) / len(document)


def slow_order(by: str, first: str, seed: int, epoch: int) -> list[int]:
    """Numbers of documents, sorted; equal ones as the shuffle of the epoch has them."""
    hardness = [len(each) if by == "length" else -slow_frequency(each) for each in DOCUMENTS]
    sign = 1 if first == "easy" else -1
    tie = shuffled(seed, epoch, 0, len(DOCUMENTS)).tolist()
    return sorted(range(len(DOCUMENTS)), key=lambda each: (round(sign * hardness[each], 9), tie[each]))


def slow_sample(order: Curriculum, seed: int, sample: int) -> list[int]:
    """One row by the definition."""
    count = sum(len(each) + 2 for each in DOCUMENTS) // LENGTH
    epoch, place = divmod(sample, count)
    if order.pacing != "sorted" and epoch * count * LENGTH >= order.pace_tokens:
        rows = rows_of(DOCUMENTS, shuffled(seed, epoch, 0, len(DOCUMENTS)).tolist(), LENGTH)
        return rows[shuffled(seed, epoch, 1, count)[place]]
    rows = rows_of(DOCUMENTS, slow_order(order.by, order.first, seed, epoch), LENGTH)
    if order.pacing == "sorted":
        return rows[place]
    read = sample * LENGTH
    if read >= order.pace_tokens:
        return rows[shuffled(seed, epoch, 1, count)[place]]
    power = {"linear": 1, "root": 2}[order.pacing]
    share = (order.start**power + (1 - order.start**power) * read / order.pace_tokens) ** (1 / power)
    drawn = int(raw_words(seed, epoch, 2, count)[place]) / 2**64
    return rows[int(drawn * max(1, math.ceil(share * count)))]


@pytest.mark.parametrize("by", ["length", "frequency"])
@pytest.mark.parametrize("first", ["easy", "hard"])
@pytest.mark.parametrize("pacing", quick_ones(["sorted", "linear", "root"], "root"))
def test_rows_equal_the_obvious_loop(by: str, first: str, pacing: str) -> None:
    choice = Curriculum(by=by, first=first, pacing=pacing, pace_tokens=1300)
    order = Embedded(sequence_length=LENGTH, order=choice).row_order(PREPARED, 7)
    assert order.rows * LENGTH < choice.pace_tokens < 2 * order.rows * LENGTH, "all cases are met"
    samples = np.arange(3 * order.rows)
    assert order.batch(samples).tokens_BT.tolist() == [slow_sample(choice, 7, sample) for sample in samples]


def test_documents_of_rare_words_are_the_hard_ones() -> None:
    found = mean_log_frequency(PREPARED)
    assert np.allclose(found, [slow_frequency(each) for each in DOCUMENTS], rtol=1e-12)


def test_scores_do_not_depend_on_how_many_documents_are_scored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mean_log_frequency(PREPARED)
    monkeypatch.setattr("workbench.choices.data.orders.curriculum._TOGETHER", 40)
    assert np.allclose(mean_log_frequency(PREPARED), whole, rtol=1e-12)


def test_what_a_run_will_not_read_is_said() -> None:
    grows = Curriculum(pacing="linear", start=0.2, pace_tokens=1000)
    assert grows.unread(1000, None) == grows.unread(math.inf, 500) == ""
    assert "ends at 500 with 60% of them: its hardest documents are never read" in grows.unread(500, None)
    whole = Curriculum(pacing="sorted", first="hard")
    assert whole.unread(500, None) == whole.unread(500, 500) == ""
    assert "500 tokens are 25% of the text: its easiest documents are never read" in whole.unread(500, 2000)


def test_the_open_share_is_among_the_scheduled_values() -> None:
    at = Progress(step=1, tokens=500_000, seconds=1.0, budget=Budget())
    assert Curriculum(start=0.1, pacing="linear").scheduled_values(at) == {"open": pytest.approx(0.55)}
    assert Curriculum(pacing="sorted").scheduled_values(at) == {}


def test_a_loss_needs_a_run_one_process_and_losses() -> None:
    with pytest.raises(RecipeError, match=r"data\.order\.run: order by loss needs a reference model"):
        Recipe(data={"kind": "embedded", "order": {"kind": "curriculum", "by": "loss"}})
    with pytest.raises(RecipeError, match=r"data\.order\.by: 'length' asks no reference model"):
        Recipe(data={"kind": "embedded", "order": {"kind": "curriculum", "run": "some-run"}})
    order = Curriculum(by="loss", run="some-run")
    assert [problem.path for problem in order.problems_together(None, 2)] == ["data.order.by"]
    with pytest.raises(DataError, match="only a run in training has"):
        order.arrange(PREPARED)
    with pytest.raises(DataError, match="a mixture has no order by loss"):
        order.arrange(replace(PREPARED, losses_D=np.zeros(3)))
