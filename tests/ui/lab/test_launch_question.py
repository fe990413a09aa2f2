"""What is asked before a launch."""

from __future__ import annotations

from workbench.ui.lab.launch_question import question


def test_nothing_is_asked_of_what_is_usual_and_one_question_covers_both() -> None:
    assert question("", "") is None
    twice = question("", "mine")
    assert twice is not None
    assert (twice.button, twice.bad) == ("Launch again", False)
    both = question("does not fit", "mine")
    assert both is not None
    assert (both.button, both.bad) == ("Launch anyway", True)
    assert "does not fit" in both.said
    assert "mine is a run of this very recipe" in both.whole
