"""Twenty learners on two cores: fair turns, a first curve soon, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny_runs import tiny_recipe
from tests.workshop.room import hold


@pytest.mark.extended
@pytest.mark.process
@pytest.mark.timeout(1500)
def test_twenty_learners_have_fair_turns_and_nothing_is_lost(corpus: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(corpus).with_(budget={"amount": 3, "unit": "seconds", "evaluations": 1})
    found = hold(tmp_path / "room", recipe)
    assert found["second_before_last_first"] == 0, "no second run before everybody's first"
    assert found["first_curve_seconds"]["longest"] < 180
    assert found["statuses"] == {"finished": 40}
    assert found["without_a_final_word"] == 0
    assert found["server_share_of_a_core"] < 0.2
