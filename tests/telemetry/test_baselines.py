import math

import pytest

from workbench.telemetry.baselines import Baselines, References, learned, learned_in_words

BASELINES = Baselines(unigram=6.0, neighbours=4.0)


@pytest.mark.parametrize(
    ("loss", "word"),
    [
        (math.nan, "nothing yet"),
        (math.inf, "nothing yet"),
        (6.021, "nothing yet"),
        (6.019, "word frequencies"),
        (5.901, "word frequencies"),
        (5.899, "neighbours"),
        (4.0, "neighbours"),
        (3.999, "context"),
    ],
)
def test_four_words(loss, word):
    assert learned(loss, BASELINES) == word


def test_a_neighbours_floor_above_the_unigram_baseline_credits_nothing_to_a_model_that_reads_no_context():
    # Tiny text: the bigrams of training may be worse on held-out text than the frequencies.
    assert learned(5.95, Baselines(unigram=6.0, neighbours=6.5)) == "word frequencies"
    assert learned(5.5, Baselines(unigram=6.0, neighbours=6.5)) == "context"


def test_without_a_neighbours_floor_context_is_never_claimed():
    assert learned_in_words(5.0, Baselines(unigram=6.0)) == "learning neighbours: 1.00 nats below word frequencies"
    assert learned(0.5, Baselines(unigram=6.0)) == "neighbours"


def test_a_run_says_with_what_it_was_measured() -> None:
    said = {"score": {"kind": "masked-only", "version": 2}, "unigram_entropy": 6.4, "bigram_entropy": 3.9}
    references = References.of(
        said | {"heldout_overlap": 0.004}, {"unigram_entropy": 1.0, "training_floor": 5.8}, causal=False
    )
    assert references == References("masked-only", Baselines(6.4, 3.9), 5.8, 0.004)
    assert [references.learned(loss) for loss in (5.0, None)] == ["neighbours", None]
    assert "[MASK]" in references.title
    # Before the first evaluation the environment alone knows.
    assert References.of({}, said, causal=False).baselines == Baselines(6.4, 3.9)
    assert References.of({"unigram_entropy": None}, said, causal=False).baselines == Baselines(6.4, 3.9)


def test_next_token_training_has_no_floor_beside_word_frequencies() -> None:
    said = {"score": {"kind": "next-token", "version": 2}, "unigram_entropy": 6.214, "bigram_entropy": 4.884}
    # As runs of before stored it: the entropy of the training text.
    references = References.of(said | {"training_floor": 6.125}, {}, causal=True)
    assert references.levels == {"word frequencies": 6.214, "neighbours": 4.884}
    assert references == References.of(said, {"training_floor": 6.125}, causal=True)


def test_a_run_of_before_says_which_score_it_carries_and_claims_no_context() -> None:
    masked = References.of({"unigram_entropy": 6.37, "heldout": []}, {}, causal=False)
    assert (masked.title, masked.baselines, masked.learned(3.0)) == ("80/10/10 score", None, None)
    causal = References.of({"unigram_entropy": 6.37}, {}, causal=True)
    # Its neighbours were never counted: context is not claimed of it.
    assert (causal.score, causal.learned(3.0)) == ("next-token", "neighbours")


@pytest.mark.parametrize("junk", ["6.4", None, True, [6.4], float("nan"), 10**400, {"kind": [3]}])
def test_damaged_numbers_are_none(junk: object) -> None:
    said = {"score": junk, "unigram_entropy": junk, "training_floor": junk, "heldout_overlap": junk}
    assert References.of(said, said, causal=True) == References("next-token")


def test_a_run_that_has_recorded_nothing_yet_will_be_scored_as_runs_are_today():
    assert References.of({}, {}, causal=False).score == "masked-only"
    assert References.of({}, {}, causal=True).score == "next-token"
    assert References.of({}, {"unigram_entropy": 6.4}, causal=False).score == "80-10-10"
