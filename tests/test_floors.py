import math

import pytest

from workbench.floors import Floors, learned

FLOORS = Floors(unigram=6.0, neighbours=4.0)


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
    assert learned(loss, FLOORS) == word


def test_a_neighbours_floor_above_the_unigram_floor_credits_nothing_to_a_model_that_reads_no_context():
    # Tiny text: the bigrams of training may be worse on held-out text than the frequencies.
    assert learned(5.95, Floors(unigram=6.0, neighbours=6.5)) == "word frequencies"
    assert learned(5.5, Floors(unigram=6.0, neighbours=6.5)) == "context"


def test_without_a_neighbours_floor_context_is_never_claimed():
    assert learned(0.5, Floors(unigram=6.0)) == "neighbours"
