"""Requests as the trainer reads them: told at once what takes long, checked without effect, marked in telemetry."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.folder import RunFolder, read_object
from workbench.telemetry.profile_table import profile_line
from workbench.telemetry.streams import read_telemetry
from workbench.training import profiling, requests
from workbench.training import session as sessions
from workbench.training.session import Session
from workbench.training.status import Status


@pytest.fixture
def session(tiny: Recipe, tmp_path: Path) -> Iterator[Session]:
    """A session that has taken no step yet."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    tiny.save(folder.recipe)
    made = Session(folder, Status(folder), False)
    yield made
    made.training.close()
    made.writer.close()
    made.status.close()


def events(session: Session, kind: str) -> list[dict]:
    return [event for event in read_telemetry(session.folder.telemetry).events if event["kind"] == kind]


@pytest.mark.parametrize(("verb", "begun"), [("evaluate", "evaluating"), ("checkpoint", "saving")])
def test_what_takes_long_is_acknowledged_before_it_is_done(
    session: Session, verb: str, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = control.send(session.folder, verb)
    seen: list[dict | None] = []
    does = {"evaluate": "evaluate", "checkpoint": "save"}[verb]
    real = getattr(session, does)

    def slow(**arguments: object) -> object:
        seen.append(control.outcome(session.folder, request))
        return real(**arguments)

    monkeypatch.setattr(session, does, slow)
    session.requests.answer()
    assert seen[0] is not None
    assert (seen[0]["done"], begun in seen[0]["text"]) == (None, True)
    assert (control.outcome(session.folder, request) or {})["done"] is True
    assert [(event["data"]["verb"], event["data"]["done"]) for event in events(session, "request")] == [(verb, True)]


@pytest.mark.parametrize("verb", ["evaluate", "checkpoint"])
def test_how_long_it_takes_is_told_by_the_last_time(
    session: Session, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    accept = session.requests._accept
    monkeypatch.setattr(session.requests, "_accept", lambda request, text: (told.append(text), accept(request, text)))
    for seconds in (0.0, 12.3, 300.0):
        began = time.monotonic()
        # As many readings as `timed` takes: one before, one after.
        with monkeypatch.context() as patch:
            readings = iter((began, began + seconds))
            patch.setattr(requests, "time", SimpleNamespace(monotonic=lambda values=readings: next(values)))
            session.requests.timed(verb, lambda: None)
        control.send(session.folder, verb)
        session.requests.answer()
    assert [text.rpartition(", ")[2] for text in told] == ["about 1 s", "about 12 s", "about 5 min"]


def test_a_profile_is_in_the_folder_and_in_the_answer(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "STEPS", 2)
    request = control.send(session.folder, "profile")
    session.requests.answer()
    found = read_object(session.folder.profile)
    assert sum(found["parts"].values()) == pytest.approx(1.0)
    answer = control.outcome(session.folder, request) or {}
    assert (answer["done"], answer["text"]) == (True, profile_line(found))
    assert session.training.progress.step == 4


def test_a_profile_that_a_full_disk_refuses_ends_no_run(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, value: object) -> None:
        raise OSError(errno.ENOSPC, f"No space left for {path.name}")

    monkeypatch.setattr(profiling, "STEPS", 1)
    monkeypatch.setattr(sessions, "write_json", full)
    request = control.send(session.folder, "profile")
    session.requests.answer()
    answer = control.outcome(session.folder, request) or {}
    assert (answer["done"], answer["text"]) == (False, session.pause_reason)
    assert session.pause_reason.startswith("profile.json could not be written")


def asked_at(session: Session, monkeypatch: pytest.MonkeyPatch, requests: dict[int, str]) -> dict[str, str]:
    """While a profile of 3 + 3 steps is taken, ask for a verb after so many steps; ids by verb."""
    monkeypatch.setattr(profiling, "STEPS", 3)
    monkeypatch.setattr(profiling, "gemm_flops", lambda mode: 1e11)
    sent, step = {"profile": control.send(session.folder, "profile")}, session.training.step

    def stepped() -> None:
        step()
        if verb := requests.get(session.training.progress.step):
            sent[f"{verb} again" if verb in sent else verb] = control.send(session.folder, verb)

    monkeypatch.setattr(session.training, "step", stepped)
    session.requests.answer()
    return sent


@pytest.mark.parametrize("verb", ["pause", "stop"])
def test_a_profile_ends_at_a_stop_or_pause_with_what_it_has(
    session: Session, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    sent = asked_at(session, monkeypatch, {4: verb})
    assert session.training.progress.step == 4, "the request was read after the step in which it came"
    assert (control.outcome(session.folder, sent[verb]) or {})["done"] is True
    assert (control.outcome(session.folder, sent["profile"]) or {})["done"] is True
    assert read_object(session.folder.profile)["steps"] == 1
    # Answered within the profile, and not a second time behind it.
    assert [event["data"]["verb"] for event in events(session, "request")] == [verb, "profile"]


def test_a_profile_that_has_looked_into_nothing_yet_says_why(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = asked_at(session, monkeypatch, {1: "pause"})
    answer = control.outcome(session.folder, sent["profile"]) or {}
    assert (session.training.progress.step, answer["done"]) == (1, False)
    assert answer["text"].startswith(
        "paused on request; it keeps its turn on this machine: no step has been looked into yet"
    )
    assert not session.folder.profile.exists()


def test_a_profile_goes_on_after_other_requests_and_answers_all_who_ask_for_one(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = session.training.progress.step
    sent = asked_at(session, monkeypatch, {1: "checkpoint", 2: "profile", 4: "evaluate"})
    answers = {verb: control.outcome(session.folder, request) or {} for verb, request in sent.items()}
    assert {verb: answer["done"] for verb, answer in answers.items()} == dict.fromkeys(sent, True)
    assert answers["profile again"]["text"] == answers["profile"]["text"]
    assert session.training.progress.step == before + 6, "one profile"
    assert read_object(session.folder.profile)["steps"] == 3
    done = [event["data"]["verb"] for event in events(session, "request")]
    assert done == ["checkpoint", "evaluate", "profile", "profile"]


def test_a_check_tells_what_a_set_would_do_and_does_nothing(session: Session, tiny: Recipe) -> None:
    good = control.send(session.folder, "check", path="optimizer.lr", value=0.5)
    bad = control.send(session.folder, "check", path="data.sequence_length", value=64)
    session.requests.answer()
    answers = [control.outcome(session.folder, request) or {} for request in (good, bad)]
    assert [answer["done"] for answer in answers] == [True, False]
    told = "optimizer.lr 0.003 -> 0.5; warning: optimizer.lr becomes 167 times its present value, 0.003"
    assert answers[0]["text"] == told
    assert "built for 32" in answers[1]["text"], "the recipe's own check, not bounds alone"
    assert session.training.recipe == tiny
    assert events(session, "request") == events(session, "knob") == []


def test_pages_are_told_what_can_be_set_and_what_it_is_set_to(session: Session) -> None:
    session.requests.write_knobs()
    before = {knob["path"]: knob for knob in control.read_knobs(session.folder)}
    assert (before["optimizer.lr"]["value"], before["data.sequence_length"]["maximum"]) == (3e-3, 32)
    control.send(session.folder, "set", path="optimizer.lr", value=0.5)
    session.requests.answer()
    after = {knob["path"]: knob["value"] for knob in control.read_knobs(session.folder)}
    assert after["optimizer.lr"] == 0.5
    control.send(session.folder, "set", path="optimizer.lr", value=0.5)
    session.requests.answer()
    changes = [event["text"] for event in events(session, "knob")]
    assert changes == ["optimizer.lr 0.003 -> 0.5"], "the second one changed nothing, and marks nothing"


def test_a_fork_is_an_event_at_its_step(session: Session) -> None:
    session.training.step()
    session.training.step()
    control.send(session.folder, control.FORKED, run="20260101-000000-new", step=1, by="Ann")
    session.requests.answer()
    (event,) = events(session, "fork")
    assert (event["step"], event["data"]["run"]) == (1, "20260101-000000-new")
    assert event["text"] == "20260101-000000-new was forked from step 1 by Ann"
    assert events(session, "request") == []
