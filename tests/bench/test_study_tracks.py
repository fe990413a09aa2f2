"""What the study compares: every method has a place, and can race there."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from workbench.bench import study
from workbench.bench.study import missing
from workbench.bench.study_tracks import PUBLISHED, TRACKS, arms_of
from workbench.choices.choice import registry
from workbench.experiments.race.race_plan import ARM_NAME


def test_arms_of_the_masked_track_can_begin_with_the_weights_of_what_is_trained_before() -> None:
    track = TRACKS["masked"][0](400)
    assert track.before is not None
    for recipe in (track.base, *arms_of(track, "Objective")[0].values()):
        assert (recipe.architecture, recipe.data) == (track.before.architecture, track.before.data)
    assert "masked/Objective/corruption all_mask: no evidence" in missing({})
    moved = replace(track, before=track.before.with_(budget="700 steps"))
    assert study.definitions(moved, "Objective") != study.definitions(track, "Objective")


def test_every_optimizer_depth_method_and_schedule_has_a_place() -> None:
    known = {entry: arms_of(TRACKS["causal"][0](100), entry)[0] for entry in ("Optimizer", "Depth", "Schedule")}
    assert {recipe.optimizer.kind for recipe in known["Optimizer"].values()} == set(registry("optimizer")) - {"adamw"}
    assert {recipe.depth.kind for recipe in known["Depth"].values()} == set(registry("depth")) - {"full"}
    shapes = {recipe.optimizer.schedule.kind for recipe in known["Schedule"].values()}
    assert set(registry("schedule")) - shapes == {"linear", "phases", "points", "stages"}


@pytest.mark.parametrize("track", TRACKS)
def test_every_method_has_a_name_that_a_race_takes(track: str) -> None:
    built = TRACKS[track][0](100)
    names = [name for section in built.methods for found in arms_of(built, section) for name in found]
    assert [name for name in names if not re.fullmatch(ARM_NAME, name)] == []
    assert len(names) == sum(map(len, built.methods.values()))


def test_published_schedules_are_compiled_as_the_baseline_beside_them_is() -> None:
    track = TRACKS["causal"][0](100)
    arms, refused = arms_of(track, PUBLISHED)
    assert refused == {}
    assert all(recipe.execution.compile for recipe in (track.of(PUBLISHED).base, *arms.values()))
    assert not track.of("Depth").base.execution.compile
    assert len({study.definitions(track, section)["baseline"] for section in ("Depth", PUBLISHED)}) == 2
    rate = arms["progressive_drop at its own rate"]
    at = [rate.optimizer.schedule.value(step / 200_000) for step in (0, 2_000, 4_000, 104_000, 200_000)]
    assert at == pytest.approx([0.0, 0.5, 1.0, 0.99**100, 0.99**196], rel=0.01)
    steps = range(4_000, 200_000, 1_000)
    off = [rate.optimizer.schedule.value(step / 200_000) / 0.99 ** (step / 1000 - 4) for step in steps]
    assert (min(off), max(off)) == pytest.approx((1.0, 1.0), abs=0.01), "straight lines stand for the fall"
