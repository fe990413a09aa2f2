"""Single numbers and sentences out of one reading of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plots.synthetic import BASELINES, ENTROPY, NEIGHBOURS, trained
from workbench.store.measured import bits_per_byte, heldout_loss, learned_in_words, measured, progress_line
from workbench.store.view import RunView
from workbench.telemetry.streams import Telemetry


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> RunView:
    return trained(tmp_path_factory.mktemp("runs"))


def _ending_at(view, loss):
    return replace(view, evaluations={**BASELINES, "result": {"heldout_loss": loss}})


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (ENTROPY + 0.5, "has learned nothing yet"),
        (ENTROPY - 0.09, "has learned word frequencies only"),
        (ENTROPY - 0.5, "learning neighbours: 0.50 nats below word frequencies, 1.60 above neighbour counts"),
        (NEIGHBOURS - 0.1, "uses context: 0.10 nats below neighbour counts"),
        ("nan", "diverged: the held-out loss is not a number"),
        (None, "not evaluated"),
    ],
)
def test_the_one_word_in_a_sentence(view, loss, words):
    assert learned_in_words(_ending_at(replace(view, telemetry=Telemetry(), state={}), loss)) == words


def test_a_score_of_text_that_training_has_seen_is_said_to_be_one(view):
    ended = _ending_at(replace(view, telemetry=Telemetry(), state={}), NEIGHBOURS - 0.1)
    for overlap, said in ((0.65, True), (0.0049, False), (None, False)):
        environment = {**ended.environment, "heldout_overlap": overlap}
        words = learned_in_words(replace(ended, environment=environment))
        assert words.endswith("65% of the held-out text, by runs of 13 words, also stands in the training text") == said


def test_what_is_not_known_yet_of_a_run_that_goes_on(view):
    assert learned_in_words(_ending_at(replace(view, telemetry=Telemetry(), state={}, status="running"), None)) == (
        "not evaluated yet"
    )


def test_what_is_known_before_the_first_evaluation(view):
    early = replace(view, evaluations={})
    assert early.references.baselines == (ENTROPY, NEIGHBOURS)
    assert heldout_loss(replace(early, state={"heldout_loss": 7.5})) == 7.5
    assert bits_per_byte(early) is None
    running = replace(view, evaluations={**view.evaluations, "result": None})
    assert bits_per_byte(running) == view.evaluations["heldout"][-1]["bits_per_byte"]


def test_what_a_former_attempt_ended_with_counts_no_more_once_the_run_goes_on(view):
    result = {"heldout_loss": 1.0, "steps": 7, "bits_per_byte": 0.5}
    going = replace(view, status="running", evaluations={"result": result}, state={"step": 9}, telemetry=Telemetry())
    assert (heldout_loss(going), bits_per_byte(going), measured(going, "steps")) == (None, None, 9)
    ended = replace(going, status="stopped")
    assert (heldout_loss(ended), bits_per_byte(ended), measured(ended, "steps")) == (1.0, 0.5, 7)


def test_progress_line():
    state = {"progress": 0.4, "step": 1200, "loss": 5.123, "tokens_per_second": 8312.4}
    assert progress_line("synthetic", "running", state) == (
        "synthetic: running 40%, step 1,200, loss 5.123, 8,312 tokens/s (last 10 s)"
    )
