"""Verdicts of a race, from readings of its runs: looks, counts, failures, and the words for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.experiments.race.conftest import end
from workbench.base.text import UNKNOWN
from workbench.experiments.race import verdicts as module
from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.experiments.race.race_words import RaceSnapshot, sentence
from workbench.experiments.race.sequential import Design
from workbench.experiments.race.verdicts import RaceStatus, judged, status_of
from workbench.experiments.readings import Reading, reading_of
from workbench.store.state import write_state

Planned = Callable[..., RacePlan]
NOISE = (0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01, 0.0, 0.01, -0.01)


def done(loss: float, left: bool = True) -> Reading:
    return Reading("done", loss, loss / 3, left, "finished", 1.0)


def readings(plan: RacePlan, seeds: int, **losses: float) -> dict[Entry, Reading]:
    """Runs of the first seeds done at a loss by arm, the baseline 0.3 nats better per doubling; the others missing."""
    found = {}
    for entry in plan.entries(len(plan.seeds), plan.others):
        place = plan.seeds.index(entry.seed)
        # Noise of every arm's own, or the paired differences have no spread.
        noise = NOISE[place] if entry.arm == plan.baseline else NOISE[(place + 3) % 10]
        loss = losses[entry.arm] - 0.3 * math.log2(entry.ratio) + noise
        found[entry] = done(loss) if place < seeds else Reading("missing")
    return found


@pytest.fixture
def six(planned: Planned) -> RacePlan:
    return planned(seeds=6)


def told(plan: RacePlan, now: RaceStatus) -> str:
    return sentence(plan, now.verdicts["mine"])


def seen(plan: RacePlan, now: RaceStatus, status: str = "racing") -> RaceSnapshot:
    return RaceSnapshot(plan, now, status)


def test_nothing_is_said_before_the_first_look(six: RacePlan) -> None:
    now = judged(six, readings(six, 3, baseline=2.0, mine=1.9))
    assert (now.look, now.over) == (4, False)
    assert now.wanted == six.entries(4, ["mine"])[12:]
    assert now.verdicts["mine"].reason == "too early"
    assert told(six, now) == "mine against baseline: too early to say"
    assert seen(six, now).progress.startswith("12 of at most 24 runs done; next verdict after 4 seeds, about ")
    assert seen(six, now, "cancelled").progress == "12 of at most 24 runs done"
    decided = judged(six, readings(six, 4, baseline=2.0, mine=1.5))
    assert seen(six, decided).progress.endswith("; judged on 4 seeds")
    four = replace(six, design=Design.of(4), seeds=six.seeds[:4])
    assert seen(four, judged(four, readings(four, 0, baseline=2.0, mine=1.9))).progress.startswith("0 of 16 runs done;")
    assert ["at most" in repr(plan) for plan in (six, four)] == [True, False]


def test_of_a_race_that_was_cancelled_nothing_is_promised(six: RacePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    found = readings(six, 3, baseline=2.0, mine=1.9)
    found[Entry("mine", 3)] = Reading("going", doing="running", progress=0.5)
    monkeypatch.setattr(module, "reading_of", lambda folder, _refused: by_id[folder.id])
    by_id = {six.run_id(entry): each for entry, each in found.items()}
    now = status_of(six, ended=True)
    assert told(six, now) == "mine against baseline: the race was cancelled before they could be judged"
    assert seen(six, now).brief == "cancelled; mine not judged"
    assert "undecided (cancelled)" in seen(six, now).table_html()
    assert seen(six, now).going == 1, "the one that has not stopped yet"
    # After a look that decided nothing.
    by_id |= {six.run_id(entry): each for entry, each in readings(six, 4, baseline=2.0, mine=1.99).items()}
    assert told(six, status_of(six)).endswith("Undecided: more seeds are training.")
    now = status_of(six, ended=True)
    assert told(six, now).endswith("Undecided: the race was cancelled.")
    assert seen(six, now).brief == "cancelled; mine undecided"


def test_the_rest_of_a_race_is_forecast_at_the_pace_so_far_and_every_run_that_ends_is_seen(planned: Planned) -> None:
    """Two minutes and a half were "about 2 min", and so was all from there to one and a half."""
    plan = replace(planned(seeds=4), at_once=2)
    plan = replace(plan, shares={arm: replace(share, seconds=10.0) for arm, share in plan.shares.items()})
    found, said = readings(plan, 0, baseline=2.0, mine=1.9), []
    for entry in plan.entries(4, ["mine"])[:5]:
        said.append(seen(plan, judged(plan, found)).progress.partition(", about ")[2].partition(" of ")[0])
        found[entry] = done(2.0)._replace(seconds=10.0 * entry.ratio)
    assert said == ["2 min 10 s", "2 min", "1 min 55 s", "1 min 50 s", "1 min 40 s"]
    # Beside other work a run takes three times as long; one is done, and one half way.
    found = readings(plan, 0, baseline=2.0, mine=1.9)
    found[Entry("baseline", 0)] = done(2.0)._replace(seconds=30.0)
    found[Entry("mine", 0)] = Reading("going", doing="running", progress=0.5)
    assert seen(plan, judged(plan, found)).progress.endswith(", about 4 min 45 s of training away")


def test_a_clear_difference_ends_the_race_at_the_first_look(six: RacePlan) -> None:
    now = judged(six, readings(six, 4, baseline=2.0, mine=1.9))
    verdict = now.verdicts["mine"]
    assert (verdict.verdict, verdict.final, now.over, now.look) == ("better", True, True, 4)
    gaps = [-0.1 + NOISE[(i + 3) % 10] - NOISE[i] for i in range(4)]
    assert verdict.estimate == pytest.approx(Design.of(6).estimate(gaps))
    assert told(six, now).startswith("mine is better than baseline by 0.1")
    assert told(six, now).endswith("; 4 seeds). To get as far, baseline needs 1.3x its steps (1.2x to 1.4x).")
    assert "needs 1.3x its time (" in told(replace(six, budget="60 s"), now)


def test_an_open_difference_goes_on_and_then_says_how_many_seeds_it_would_take(six: RacePlan) -> None:
    now = judged(six, readings(six, 4, baseline=2.0, mine=1.97))
    assert (now.look, now.over, now.verdicts["mine"].final) == (6, False, False)
    assert now.wanted == six.entries(6, ["mine"])[16:]
    assert told(six, now) == (
        "mine against baseline: 0.035 nats better (0.071 better to 0.001 worse; 4 seeds). To get as far, baseline "
        "needs 1.1x its steps (1x to 1.2x). Undecided: more seeds are training."
    )
    six = replace(six, margin=0.0)
    now = judged(six, readings(six, 6, baseline=2.0, mine=1.985))
    verdict = now.verdicts["mine"]
    assert (verdict.verdict, verdict.final, now.over) == ("undecided", True, True)
    assert verdict.more is not None
    assert told(six, now).endswith(f"Undecided: about {verdict.more} more seed.")
    now = judged(six, readings(six, 6, baseline=2.0, mine=2.0))
    assert told(six, now).endswith("Undecided: more than 30 more seeds.")


def test_worse_and_equivalent(six: RacePlan) -> None:
    now = judged(six, readings(six, 4, baseline=2.0, mine=2.2))
    assert told(six, now).startswith("mine is worse than baseline by 0.")
    assert "To get as far, baseline needs 0.6" in told(six, now)
    wide = replace(six, margin=0.1)
    now = judged(wide, readings(wide, 4, baseline=2.0, mine=2.001))
    assert now.verdicts["mine"].verdict == "equivalent"
    assert told(wide, now).startswith("mine and baseline are equivalent: 0.00")


def test_an_arm_that_is_decided_trains_no_more_while_another_goes_on(planned: Planned, tiny: object) -> None:
    plan = planned({"baseline": tiny, "clear": tiny, "open": tiny}, seeds=6)
    now = judged(plan, readings(plan, 4, baseline=2.0, clear=1.5, open=1.99))
    assert [now.verdicts[arm].final for arm in ("clear", "open")] == [True, False]
    assert {entry.arm for entry in now.wanted} == {"baseline", "open"}
    assert plan.design == Design.of(6, arms=2)


def test_a_seed_on_the_floor_leaves_counts_and_no_test(six: RacePlan) -> None:
    found = readings(six, 4, baseline=2.0, mine=1.5)
    found[Entry("mine", 2)] = done(2.95, left=False)
    now = judged(six, found)
    verdict = now.verdicts["mine"]
    assert (verdict.verdict, verdict.reason, verdict.estimate, now.over) == ("undecided", "floor", None, True)
    assert (verdict.left_floor, verdict.baseline_left_floor) == ((3, 4), (4, 4))
    assert "3 of 4 seeds of mine and 4 of 4 seeds of baseline got more than 0.1 nats below" in told(six, now)
    assert seen(six, now).table()[1][1][-2:] == [UNKNOWN, "not compared"]
    found[Entry("baseline", 0)] = done(2.95, left=False)
    assert told(six, judged(six, found)).endswith("only where all do. Give it a larger budget.")
    # None has learned anything: nothing was compared.
    found = {entry: each._replace(left_floor=False) for entry, each in found.items()}
    now = judged(six, found)
    assert (now.verdicts["mine"].verdict, now.verdicts["mine"].unmeasured) == ("undecided", True)
    assert told(six, now).endswith("below word frequencies: nothing was compared. Give it a larger budget.")


@pytest.mark.parametrize(("mine", "baseline", "word"), [(2.95, 2.0, "worse"), (2.0, 2.95, "better")])
def test_counts_of_seeds_that_chance_does_not_explain_decide(
    six: RacePlan, mine: float, baseline: float, word: str
) -> None:
    found = {entry: each._replace(left_floor=each.loss < 2.5)
             for entry, each in readings(six, 4, baseline=baseline, mine=mine).items()}  # fmt: skip
    now = judged(six, found)
    verdict = now.verdicts["mine"]
    assert (verdict.verdict, verdict.reason, verdict.final, verdict.estimate) == (word, "floor", True, None)
    assert verdict.counts_p == pytest.approx(2 / 256)
    counts = "0 of 4 seeds of mine and 4 of 4" if word == "worse" else "4 of 4 seeds of mine and 0 of 4"
    assert told(six, now).startswith(f"mine is {word} than baseline by the count of seeds that learned: {counts}")
    assert told(six, now).endswith("(p 0.0078, Boschloo's exact test).")
    assert f"{word} (by count of seeds)" in seen(six, now).table_html()
    assert seen(six, now).brief == f"mine {word}"


def test_where_none_has_left_the_floor_those_that_reached_it_are_counted(six: RacePlan) -> None:
    found = {entry: each._replace(left_floor=False, reached_floor=each.loss < 3.5)
             for entry, each in readings(six, 4, baseline=2.99, mine=3.9).items()}  # fmt: skip
    now = judged(six, found)
    verdict = now.verdicts["mine"]
    assert (verdict.verdict, verdict.reason, verdict.final, verdict.unmeasured) == ("worse", "floor", True, False)
    counts = "0 of 4 seeds of mine and 4 of 4 seeds of baseline got as far as word frequencies (p 0.0078,"
    assert f"mine is worse than baseline by the count of seeds that learned: {counts}" in told(six, now)


def test_a_reference_on_the_floor_is_no_place_on_the_curve(six: RacePlan) -> None:
    found = readings(six, 4, baseline=2.0, mine=2.2)
    found[Entry("baseline", 0, 0.5)] = done(2.95, left=False)
    assert told(six, judged(six, found)).endswith("To get as far, baseline needs less than 1x its steps.")


def test_a_failing_arm_is_said_and_the_others_go_on(planned: Planned, tiny: object) -> None:
    plan = planned({"baseline": tiny, "broken": tiny, "mine": tiny}, seeds=6)
    found = readings(plan, 2, baseline=2.0, broken=2.0, mine=1.5)
    found[Entry("broken", 1)] = Reading("failed", error="run-x: out of memory")
    now = judged(plan, found)
    assert (now.verdicts["broken"].final, now.verdicts["mine"].final) == (True, False)
    assert "broken has no verdict: run-x: out of memory" in seen(plan, now).summary
    assert {entry.arm for entry in now.wanted} == {"baseline", "mine"}
    # Alone, it leaves nothing to judge, however many seeds were asked for.
    found = {entry: each for entry, each in found.items() if entry.arm != "mine"}
    alone = replace(plan, arms={arm: plan.arms[arm] for arm in ("baseline", "broken")})
    now = judged(alone, found)
    assert (now.over, now.failed) == (True, "broken failed, so there is no verdict: run-x: out of memory")
    assert seen(alone, now).progress.endswith("; nothing could be judged")
    # A reference that fails costs the curve one place.
    found = readings(plan, 4, baseline=2.0, broken=2.0, mine=1.5)
    found[Entry("baseline", 1, 2.0)] = Reading("failed", error="run-y")
    assert judged(plan, found).verdicts["mine"].verdict == "better"
    # Without its baseline a race has failed.
    found[Entry("baseline", 1)] = Reading("failed", error="run-x: gone")
    now = judged(plan, found)
    assert now.failed == "the baseline failed, and nothing can be compared without it: run-x: gone"
    assert (now.over, now.verdicts["mine"].final) == (True, True)


def test_bits_per_byte_and_their_margin(planned: Planned) -> None:
    plan = replace(planned(seeds=4, score="bits_per_byte"), margin=0.3)
    now = judged(plan, readings(plan, 4, baseline=2.0, mine=1.85))
    verdict = now.verdicts["mine"]
    assert verdict.estimate is not None
    # A third of the nats, and so is the margin.
    assert verdict.estimate.mean == pytest.approx(-0.05, abs=0.01)
    assert verdict.verdict == "equivalent"
    plan = replace(plan, margin=0.06)
    assert judged(plan, readings(plan, 4, baseline=2.0, mine=1.85)).verdicts["mine"].verdict != "equivalent"
    assert "bits per byte" in told(plan, now)


def test_runs_are_read_from_their_folders(six: RacePlan) -> None:
    entry = Entry("mine", 0)
    assert reading_of(six.run_folder(entry), {}).status == "missing"
    assert reading_of(six.run_folder(entry), {six.run_id(entry): "no such engine"}).error.endswith("no such engine")
    folder = end(six, entry, 2.5)
    found = reading_of(six.run_folder(entry), {})
    begun = Reading("done", 2.5, 2.5 / 3, True, "finished", 1.0, seconds=2.0, reached_floor=True)
    assert found._replace(heldout=()) == begun
    share = replace(six.shares["mine"], seconds_per_step=0.1)
    assert found.curve("nats", share)[-2:] == [(15.0, 2.5 + 100 / 150), (20.0, 2.5)]
    bought = replace(share, unit="tokens", tokens=51_200, seconds=50.0)
    assert found.curve("nats", bought)[-1] == (50.0, 2.5), "steps may have grown meanwhile"
    assert found.curve("bits_per_byte", share)[-1] == (20.0, 2.5 / 3)
    nats_alone = found._replace(heldout=tuple((*point[:3], math.nan) for point in found.heldout))
    assert nats_alone.curve("bits_per_byte", share) == []
    end(six, entry, 2.95)
    assert not reading_of(six.run_folder(entry), {}).left_floor
    end(six, entry, math.nan)
    assert not reading_of(six.run_folder(entry), {}).left_floor
    write_state(folder, status="failed", error="out of memory")
    assert reading_of(six.run_folder(entry), {}).error == f"{folder.id}: out of memory"
    for attempt, status in ((1, "lost"), (2, "lost"), (3, "failed")):
        write_state(folder, status="failed", error="the disk is full: model.safetensors", attempt=attempt)
        assert reading_of(six.run_folder(entry), {}).status == status, "it can go on once there is space"
    write_state(folder, status="stopped", error="")
    assert "somebody stopped it" in reading_of(six.run_folder(entry), {}).error
    write_state(folder, status="running", attempt=1)
    assert reading_of(six.run_folder(entry), {}).status == "lost"
    write_state(folder, status="running", attempt=3)
    assert reading_of(six.run_folder(entry), {}).status == "failed"
    assert status_of(six).readings[entry].status == "failed"
