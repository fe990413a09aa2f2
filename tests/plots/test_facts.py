"""What tables say about runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from workbench.plots.facts import count, facts, heldout_loss, learned, on_plateau, progress_line, unigram_entropy

from .synthetic import ENTROPY


def _ending_at(view, loss):
    return replace(view, evaluations={"unigram_entropy": ENTROPY, "result": {"heldout_loss": loss}})


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (ENTROPY + 0.5, "has not learned word frequencies yet"),
        (ENTROPY + 0.09, "has learned word frequencies only"),
        (ENTROPY - 0.09, "has learned word frequencies only"),
        (ENTROPY - 0.5, "uses context: 0.50 nats below word frequencies"),
        ("nan", "diverged: the held-out loss is not a number"),
    ],
)
def test_learned(view, loss, words):
    assert learned(_ending_at(view, loss)) == words


def test_facts_of_a_run_and_of_nothing(view, empty):
    said = facts(view)
    assert said["unigram entropy (nats)"] == "6.200"
    assert said["tokens/s"] == "8,000"
    assert said["MFU"] == "31.0%"
    assert said["parameters"] == "4.20M"
    assert list(said) == list(facts(empty))
    assert facts(empty)["what was learned"] == "not evaluated yet"
    assert facts(empty)["status"] == "failed"


def test_entropy_from_the_environment_before_the_first_evaluation(view):
    early = replace(view, evaluations={})
    assert unigram_entropy(early) == ENTROPY
    assert heldout_loss(replace(early, state={"heldout_loss": 7.5})) == 7.5


def test_plateau_is_symmetric():
    assert on_plateau(6.11, 6.2)
    assert on_plateau(6.29, 6.2)
    assert not on_plateau(6.0, 6.2)


def test_count_of_odd_values():
    assert [count(v) for v in (None, 0.0, 999.6, 1e9, math.inf)] == ["-", "0", "1,000", "1.00B", "inf"]


def test_progress_line(view):
    running = replace(
        view, status="running", state={"progress": 0.4, "step": 1200, "loss": 5.123, "tokens_per_second": 8312.4}
    )
    assert progress_line(running) == "synthetic: running 40%, step 1,200, loss 5.12, 8,312 tokens/s"
