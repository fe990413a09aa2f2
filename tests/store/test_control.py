"""Requests: ordered, whole, answered once, and harmless when somebody else wrote the files."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.store.control import (
    FORKED,
    KEPT_ANSWERS,
    VERBS,
    Request,
    answer,
    dismiss_pending,
    outcome,
    pending,
    read_knobs,
    refusal,
    send,
    write_knobs,
)  # fmt: skip
from workbench.store.folder import RunFolder
from workbench.store.lease import claim, whoami


def test_requests_come_in_order_until_they_are_answered(folder: RunFolder) -> None:
    assert pending(folder) == []
    first = send(folder, "set", path="optimizer.lr", value=1e-3)
    rest = [send(folder, verb) for verb in VERBS if verb not in ("set", "check")]
    assert pending(folder)[0] == Request(first, "set", {"path": "optimizer.lr", "value": 1e-3}, whoami(), 0)
    assert [request.id for request in pending(folder)] == [first, *rest]
    assert outcome(folder, first) is None
    answer(folder, first, True, "optimizer.lr 0.01 -> 0.001")
    assert [request.id for request in pending(folder)] == rest
    found = outcome(folder, first)
    assert found is not None
    assert found["done"] is True
    assert found["text"] == "optimizer.lr 0.01 -> 0.001"


def test_a_clock_that_is_set_back_does_not_change_the_order(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    first = send(folder, "pause")
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    second = send(folder, "resume")
    assert [request.id for request in pending(folder)] == [first, second]


@pytest.mark.parametrize(
    ("verb", "arguments", "said"),
    [
        ("halt", {}, "legal: check, checkpoint"),
        ("check", {}, "path"),
        ("stpo", {}, "did you mean 'stop'"),
        ("set", {}, "path"),
        ("set", {"path": 3, "value": 1}, "path"),
        ("set", {"path": "notes", "value": "x" * 100_000}, "bytes long"),
        ("set", {"path": "optimizer.lr", "value": "half \ud800"}, "not Unicode"),
    ],
)
def test_what_cannot_be_asked_is_said_at_once(folder: RunFolder, verb: str, arguments: dict, said: str) -> None:
    with pytest.raises(RunError, match=said):
        send(folder, verb, **arguments)
    assert pending(folder) == []


def test_foreign_files_are_not_obeyed(folder: RunFolder, tmp_path: Path) -> None:
    folder.control.mkdir()
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"verb": "stop", "arguments": {}}))
    stem = "01795204603836062873-stop-{:08x}.request.json"
    (folder.control / stem.format(1)).symlink_to(secret)
    (folder.control / stem.format(2)).write_text("{")
    (folder.control / stem.format(3)).write_text('{"verb": "rm -rf", "arguments": {}}')
    (folder.control / stem.format(4)).write_text("[" * 50_000)
    os.mkfifo(folder.control / stem.format(5))
    (folder.control / stem.format(6)).mkdir()
    (folder.control / "..request.json").write_text('{"verb": "stop"}')
    (folder.control / "stop.request.json").write_text('{"verb": "stop"}')
    assert pending(folder) == []
    good = send(folder, "stop")
    assert [request.id for request in pending(folder)] == [good]


@pytest.mark.parametrize("request_id", ["../../etc/passwd", "", "x", "0" * 20 + "-stop-zzzzzzzz"])
def test_an_outcome_needs_the_id_of_a_request(folder: RunFolder, request_id: str) -> None:
    with pytest.raises(RunError, match="not the id"):
        outcome(folder, request_id)


def test_a_new_attempt_does_not_obey_old_requests(folder: RunFolder) -> None:
    old = send(folder, "stop")
    dismiss_pending(folder, "the run ended before it could answer")
    assert pending(folder) == []
    found = outcome(folder, old)
    assert found is not None
    assert found["done"] is False


def test_looking_is_cheap(folder: RunFolder) -> None:
    for _ in range(50):
        answer(folder, send(folder, "evaluate"), True, "done")
    began = time.process_time()
    for _ in range(200):
        assert pending(folder) == []
    assert (time.process_time() - began) / 200 < 2e-3


def test_a_run_that_is_gone_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="could not be written"):
        send(RunFolder(tmp_path / "gone"), "stop")


def test_a_request_that_grows_beyond_the_limit_on_disk_is_refused(folder: RunFolder) -> None:
    value: list = [1] * 5000
    for _ in range(12):
        value = [value]
    with pytest.raises(RunError, match="bytes long"):
        send(folder, "set", path="optimizer.lr", value=value)
    assert pending(folder) == []


def test_what_takes_long_is_accepted_first_and_answered_in_the_end(folder: RunFolder) -> None:
    request = send(folder, "evaluate")
    answer(folder, request, None, "evaluating")
    assert pending(folder) == [], "it is not obeyed twice"
    assert (outcome(folder, request) or {})["done"] is None
    answer(folder, request, True, "held-out loss 5.4")
    assert (outcome(folder, request) or {})["done"] is True


def test_what_a_trainer_died_over_is_answered_with_a_no(folder: RunFolder) -> None:
    cut, finished = send(folder, "evaluate"), send(folder, "checkpoint")
    answer(folder, cut, None, "evaluating")
    answer(folder, finished, True, "saved step-3")
    dismiss_pending(folder, "the run has ended")
    assert (outcome(folder, cut) or {})["done"] is False
    assert (outcome(folder, finished) or {})["text"] == "saved step-3"


def test_only_the_latest_answers_are_kept_and_no_request_comes_back(folder: RunFolder) -> None:
    first = send(folder, "stop")
    answer(folder, first, True, "stopping")
    open_one = send(folder, "pause")
    for _ in range(KEPT_ANSWERS):
        answer(folder, send(folder, "evaluate"), True, "done")
    assert outcome(folder, first) is None
    assert [request.id for request in pending(folder)] == [open_one], "what lost its answer would be obeyed again"
    assert len(list(folder.control.iterdir())) == 2 * KEPT_ANSWERS + 1


def test_what_changes_nothing_needs_nobodys_lease(folder: RunFolder) -> None:
    claim(folder, "a", "Ann")
    send(folder, "check", path="optimizer.lr", value=1.0)
    send(folder, FORKED, run="r", step=3)
    claim(folder, "b", take_over=True)
    assert [refusal(folder, request) for request in pending(folder)] == ["", ""]


def test_knobs_are_told_and_read_by_those_who_know_no_recipe(folder: RunFolder) -> None:
    assert read_knobs(folder) == []
    write_knobs(folder, [{"path": "optimizer.lr", "value": 1e-3}])
    assert read_knobs(folder) == [{"path": "optimizer.lr", "value": 1e-3}]
    for damaged in ("", "{}", "[1, null]"):
        (folder.control / "knobs.json").write_text(damaged)
        assert read_knobs(folder) == []
