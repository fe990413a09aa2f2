"""Twenty learners on two cores: fair turns, a first curve soon, nothing lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.browser.jupyter import CHROMIUM_NAMES
from tests.workshop.room import hold, room_recipe


@pytest.mark.extended
@pytest.mark.process
@pytest.mark.browser
@pytest.mark.timeout(3000)
def test_twenty_learners_have_fair_turns_and_nothing_is_lost(corpus: Path, tmp_path: Path) -> None:
    if not any(map(shutil.which, CHROMIUM_NAMES)):
        pytest.skip("there is no Chromium for the five pages")
    found = hold(tmp_path / "room", room_recipe(corpus))
    assert found["second_before_last_first"] == 0, "no second run before everybody's first"
    assert found["turns_before_first_curve"]["most"] < found["learners"]
    # On cores that other work shares, a wait is longer by their share.
    assert found["last_first_curve"]["seconds_on_free_cores"] < 180
    assert found["statuses"] == {"finished": 40}
    assert found["without_a_final_word"] == 0
    assert found["share_of_a_core"]["server"] < 0.2
