"""What tables say about runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from workbench.plots.facts import bits_per_byte, count, facts, heldout_loss, learned_in_words, progress_line
from workbench.telemetry import Telemetry

from .synthetic import ENTROPY, FLOORS, NEIGHBOURS, as_before


def _ending_at(view, loss):
    return replace(view, evaluations={**FLOORS, "result": {"heldout_loss": loss}})


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (ENTROPY + 0.5, "has learned nothing yet"),
        (ENTROPY - 0.09, "has learned word frequencies only"),
        (ENTROPY - 0.5, "has learned neighbours: 0.50 nats below word frequencies"),
        (NEIGHBOURS - 0.1, "has learned context: 2.20 nats below word frequencies"),
        ("nan", "diverged: the held-out loss is not a number"),
        (None, "not evaluated yet"),
    ],
)
def test_the_one_word_in_a_sentence(view, loss, words):
    assert learned_in_words(_ending_at(replace(view, telemetry=Telemetry(), state={}), loss)) == words


def test_an_old_run_says_which_score_it_carries_and_claims_nothing(view):
    said = facts(as_before(view))
    assert said["score"] == "80/10/10 score"
    assert said["what was learned"] == "not known: nothing to hold the 80/10/10 score against"
    assert (said["word frequencies (nats)"], said["neighbours (nats)"]) == ("-", "-")
    assert said["held-out loss (nats)"] == facts(view)["held-out loss (nats)"]


def test_facts_of_a_run_and_of_nothing(view, empty):
    said = facts(view)
    assert (said["word frequencies (nats)"], said["neighbours (nats)"]) == ("6.200", "4.100")
    assert said["bits per byte"] == "1.345"
    assert said["score"] == "held-out loss at [MASK]"
    assert said["tokens/s"] == "8,000"
    assert said["MFU"] == "31.0%"
    assert said["parameters"] == "4.20M"
    assert list(said) == list(facts(empty))
    assert facts(empty)["what was learned"] == "not evaluated yet"
    assert facts(empty)["status"] == "failed"


def test_what_is_known_before_the_first_evaluation(view):
    early = replace(view, evaluations={})
    assert early.yardstick.floors == (ENTROPY, NEIGHBOURS)
    assert heldout_loss(replace(early, state={"heldout_loss": 7.5})) == 7.5
    assert bits_per_byte(early) is None
    running = replace(view, evaluations={**view.evaluations, "result": None})
    assert bits_per_byte(running) == view.evaluations["heldout"][-1]["bits_per_byte"]


def test_count_of_odd_values():
    assert [count(v) for v in (None, 0.0, 999.6, 1e9, math.inf)] == ["-", "0", "1,000", "1.00B", "inf"]


def test_progress_line(view):
    running = replace(
        view, status="running", state={"progress": 0.4, "step": 1200, "loss": 5.123, "tokens_per_second": 8312.4}
    )
    assert progress_line(running) == "synthetic: running 40%, step 1,200, loss 5.123, 8,312 tokens/s"
