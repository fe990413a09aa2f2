"""The reader thread: what it sends, how often, when it stops."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder, until
from workbench.jupyter.watch.feed import Feed
from workbench.store.folder import RunFolder
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter


class Page:
    """Takes what a feed sends, with the time it came."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.kept: list[bytes] = []
        self.ended = threading.Event()

    def send(self, header: dict[str, Any], buffers: list[bytes]) -> None:
        self.messages.append(header)
        self.times.append(time.monotonic())

    def types(self) -> list[str]:
        return [message["type"] for message in self.messages]

    def rows(self) -> int:
        """Scalars received since and with the last snapshot."""
        start = max(i for i, kind in enumerate(self.types()) if kind == "snapshot")
        return sum(run.get("clock", 0) for message in self.messages[start:] for run in message.get("runs", []))


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def feed(folder: RunFolder, page: Page):
    feed = Feed([folder], page.send, page.kept.append, page.ended.set, period_seconds=0.05)
    yield feed
    feed.close()


def test_nothing_is_sent_before_a_page_asks(feed: Feed, page: Page, writer: TelemetryWriter) -> None:
    feed.start()
    writer.scalars(1, 1, 1, loss=1.0)
    until(lambda: len(feed.tracks[0].steps) == 1)
    assert page.messages == []
    assert page.kept, "but a saved notebook gets its picture"


def test_a_snapshot_then_deltas_one_after_the_other(feed: Feed, page: Page, writer: TelemetryWriter) -> None:
    writer.scalars(1, 1, 1, loss=1.0)
    writer.layers(1, state=[0, 0])
    writer.flush()
    feed.resync()
    until(lambda: page.types() == ["snapshot"])
    for step in range(2, 30):
        writer.scalars(step, step, step, loss=1.0)
        time.sleep(0.01)
    until(lambda: page.rows() == 29)
    assert set(page.types()[1:]) == {"delta"}
    assert [message["since"] for message in page.messages[1:]] == [each["cursor"] for each in page.messages[:-1]]


def test_runs_that_are_asked_for_while_a_message_is_made_are_in_the_next_one(
    feed: Feed, page: Page, folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = run_folder(tmp_path / "other", name="other")
    poll = feed.tracks[0].poll

    def asked_meanwhile() -> Any:
        if not page.messages:
            feed.follow([folder, other])
        return poll()

    monkeypatch.setattr(feed.tracks[0], "poll", asked_meanwhile)
    feed.resync()
    until(
        lambda: [len(message["runs"]) for message in page.messages if message["type"] == "snapshot"][:2] == [1, 2], 10
    )


def test_many_records_become_few_messages(feed: Feed, page: Page, writer: TelemetryWriter) -> None:
    writer.scalars(0, 0, 0, loss=1.0)
    writer.flush()
    feed.resync()
    until(lambda: page.types() == ["snapshot"])
    started = time.monotonic()
    for step in range(1, 2001):
        writer.scalars(step, step, step, loss=1.0)
        if step % 100 == 0:
            writer.flush()
            time.sleep(0.01)
    until(lambda: page.rows() == 2001)
    assert len(page.messages) - 1 <= (time.monotonic() - started) / 0.05 + 2
    gaps = [b - a for a, b in zip(page.times, page.times[1:], strict=False)]
    # Of a busy machine, which holds up one message and not the next, the middle one tells.
    assert sorted(gaps)[len(gaps) // 2] > 0.03, "no faster than the period"


def test_eager_pages_are_answered_at_most_once_per_period(feed: Feed, page: Page, writer: TelemetryWriter) -> None:
    started = time.monotonic()
    while time.monotonic() - started < 0.6:
        feed.resync()
        time.sleep(0.001)
    assert set(page.types()) == {"snapshot"}
    assert 2 <= len(page.messages) <= (time.monotonic() - started) / 0.05 + 2


def test_it_stops_when_the_run_ended_and_the_last_word_was_sent(
    feed: Feed, page: Page, folder: RunFolder, writer: TelemetryWriter
) -> None:
    feed.resync()
    until(lambda: bool(page.messages))
    writer.scalars(7, 7, 7, loss=1.0)
    writer.flush()
    write_state(folder, status="finished", step=7)
    assert page.ended.wait(5)
    until(lambda: not feed.running)
    assert feed.tracks[0].status["status"] == "finished"
    assert list(feed.tracks[0].steps) == [7]
    assert page.messages[-1]["runs"][0]["status"]["status"] == "finished"
    assert int.from_bytes(page.kept[-1][:4], "little") > 0
    count = len(page.messages)
    feed.resync()  # a page that is opened later
    until(lambda: len(page.messages) == count + 1 and not feed.running)
    assert page.rows() == 1


def test_a_reading_error_is_told_once_and_reading_goes_on(
    feed: Feed, page: Page, writer: TelemetryWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, failures = feed.tracks[0].poll, iter([True, False])

    def failing():
        if next(failures, False):
            raise OSError("disk on fire")
        return poll()

    monkeypatch.setattr(feed.tracks[0], "poll", failing)
    feed.resync()
    until(lambda: page.types() == ["notice", "snapshot"])
    assert "disk on fire" in page.messages[0]["text"]


def test_what_was_read_before_an_error_reaches_the_page(
    feed: Feed, page: Page, writer: TelemetryWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.scalars(1, 1, 1, loss=1.0)
    writer.flush()
    feed.resync()
    until(lambda: page.types() == ["snapshot"])
    poll, failures = feed.tracks[0].poll, iter([True])

    def failing() -> Any:
        poll()
        # As the next of several runs does, whose disk cannot be read for a moment.
        if len(feed.tracks[0].steps) == 2 and next(failures, False):
            raise OSError("disk on fire")

    monkeypatch.setattr(feed.tracks[0], "poll", failing)
    writer.scalars(2, 2, 2, loss=0.5)
    writer.flush()
    until(lambda: page.types()[-2:] == ["notice", "delta"])
    assert page.rows() == 2


def test_closing_ends_the_thread_at_once_and_frees_the_columns(feed: Feed, writer: TelemetryWriter) -> None:
    writer.scalars(1, 1, 1, loss=1.0)
    writer.flush()
    feed.resync()
    until(lambda: len(feed.tracks[0].steps) == 1)
    feed.close()
    assert not feed.running
    assert len(feed.tracks[0].steps) == 0
    feed.start()
    assert not feed.running, "closed for good"


def test_a_stretch_in_detail_is_answered_also_after_the_run_has_ended(
    feed: Feed, page: Page, folder: RunFolder, writer: TelemetryWriter
) -> None:
    for step in range(1, 101):
        writer.scalars(step, step, step, loss=float(step))
    writer.flush()
    feed.resync()
    until(lambda: bool(page.messages))
    feed.detail(1, [[1, 2]], ["loss"], 10)
    feed.detail(-1, [[0, 1000]], ["loss", "no_such"], 0)
    feed.detail(2, [[20, 40]], ["loss"], 10)
    until(lambda: [message.get("ask") for message in page.messages if message["type"] == "detail"] == [-1, 2])
    whole, stretch = [message["runs"][0] for message in page.messages if message["type"] == "detail"]
    assert (whole["clock"], whole["series"]) == (100, [["loss", 100, 100]])
    assert (stretch["from"], stretch["to"]) == (20, 40)
    ((name, kept, recorded),) = stretch["series"]
    assert (name, kept <= 10, recorded) == ("loss", True, 21)
    write_state(folder, status="finished", step=100)
    until(lambda: not feed.running)
    feed.detail(3, [None], ["loss"], 10)
    until(lambda: page.messages[-1].get("ask") == 3 and not feed.running)
    assert page.messages[-1]["runs"] == []
