"""What tables call a run's race, sweep or tuning, of every kind of experiment that there is."""

from __future__ import annotations

import pytest

from workbench.client.experiment_name import experiment_name, experiment_of
from workbench.experiments.open import KINDS


@pytest.mark.parametrize("noun", KINDS)
def test_an_experiment_of_each_kind_is_found_by_the_tag_of_its_runs(noun: str) -> None:
    tag = KINDS[noun].kind.tag_of("deep or wide")
    name = experiment_of("20260131-081500-mine-s0-0a1b2c", ["good", tag])
    assert name == experiment_name(tag, "20260131-081500-0a1b2c") == f"{noun}:deep-or-wide 20260131-081500"


def test_other_tags_are_no_experiment() -> None:
    assert experiment_of("20260131-081500-a", ["race", "racecar:x", "my race:x"]) == ""
