"""What tables say about runs."""

from __future__ import annotations

from dataclasses import replace

from workbench.plots.facts import facts

from .synthetic import as_before


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
    assert said["tokens/s"] == "8,000 (mean)"
    assert said["MFU"] == "31.0%"
    assert said["parameters"] == "4.20M"
    assert list(said) == list(facts(empty))
    assert facts(empty)["what was learned"] == "not evaluated"
    assert "seconds of training" in facts(empty)
    assert facts(empty)["state"] == "failed"


def test_passes_over_the_text_are_said(view):
    assert facts(view)["text"] == "-"
    read = {"step": 9, "data.epochs": 19.96}
    found = replace(view, environment={"data": {"train": {"tokens": 299_980}}},
                    telemetry=replace(view.telemetry, scalars=[*view.telemetry.scalars, read]))  # fmt: skip
    assert facts(found)["text"] == "20 passes over 299,980 tokens"
    assert facts(replace(found, environment={"data": 3}))["text"] == "-"
