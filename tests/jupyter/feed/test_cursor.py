"""Cursors: what a page has seen, told by the page, gives exactly what it has not."""

from __future__ import annotations

from pathlib import Path

from tests.jupyter.live import run_folder
from workbench.jupyter.feed import wire
from workbench.jupyter.feed.cursor import DELTA_ROWS, cursor, news_since
from workbench.jupyter.feed.track import Track
from workbench.store.folder import RunFolder
from workbench.store.labels import label
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter


def say(writer: TelemetryWriter, first: int, last: int) -> None:
    for step in range(first, last + 1):
        writer.scalars(step, step / 2, step * 100, loss=10.0 - step)
        writer.layers(step, state=[0, 1], grad_norm=[0.5, None])
    writer.event(last, "stage", f"at {last}")
    writer.flush()


def test_it_gives_the_deltas_of_the_looks_in_between(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    say(writer, 1, 5)
    track.poll()
    seen = cursor([track])
    say(writer, 6, 9)
    track.poll()
    told = news_since([track], seen)
    assert told is not None
    assert (told[0].first_row, told[0].first_column) == (5, 5)
    header, _ = wire.update([track], seen) or ({}, b"")
    assert (header["type"], header["since"], header["cursor"]) == ("delta", seen, cursor([track]))
    assert header["runs"][0]["clock"] == 4


def test_one_that_is_up_to_date_gets_nothing(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    say(writer, 1, 5)
    track.poll()
    assert wire.update([track], cursor([track])) is None


def test_one_that_lags_far_behind_gets_everything(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    track.poll()
    seen = cursor([track])
    say(writer, 1, DELTA_ROWS + 1)
    track.poll()
    header, _ = wire.update([track], seen) or ({}, b"")
    assert (header["type"], header["cursor"]) == ("snapshot", cursor([track]))


def test_it_outlives_whoever_wrote_it(folder: RunFolder, writer: TelemetryWriter) -> None:
    early, late = Track(folder), Track(folder)
    say(writer, 1, 5)
    early.poll()
    seen = cursor([early])
    say(writer, 6, 9)
    # Another process, which reads in one piece what the first read in two, goes on from the same place.
    early.poll()
    late.poll()
    assert cursor([late]) == cursor([early])
    assert (told := news_since([late], seen)) is not None
    assert [event["text"] for event in told[0].events] == ["at 9"]


def test_a_rewind_or_a_new_name_needs_everything(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    say(writer, 1, 5)
    track.poll()
    seen = cursor([track])
    writer.rewind(3)
    say(writer, 4, 9)
    track.poll()
    assert news_since([track], seen) is None, "also when the rows have grown beyond the old ones again"
    seen = cursor([track])
    writer.scalars(10, 5, 1000, heldout_loss=3.0)
    writer.flush()
    track.poll()
    assert news_since([track], seen) is None
    seen = cursor([track])
    label(folder, add=["a-tag"])
    track.poll()
    assert news_since([track], seen) is not None
    label(folder, name="renamed")
    track.poll()
    assert news_since([track], seen) is None


def test_a_changed_status_is_news(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    track.poll()
    seen = cursor([track])
    write_state(folder, status="running", step=7)
    track.poll()
    told = news_since([track], seen)
    assert told is not None
    assert told[0].changes["step"] == 7
    assert "attempt" not in told[0].changes, "what stays is not told again"
    other = Track(folder)
    other.poll()
    told = news_since([other], seen)
    assert told is not None
    assert told[0].changes == track.status, "nobody here knows what the page was told"
    header, _ = wire.update([track], seen) or ({}, b"")
    assert header["runs"][0]["status"]["step"] == 7


def test_other_runs_other_extras_and_nonsense_need_everything(
    tmp_path: Path, folder: RunFolder, writer: TelemetryWriter
) -> None:
    other = Track(run_folder(tmp_path / "run-b"))
    track = Track(folder)
    say(writer, 1, 2)
    track.poll()
    seen = cursor([track, other])
    assert news_since([track, other], seen) is not None
    assert news_since([other, track], seen) is None
    assert news_since([track], seen) is None
    assert news_since([track, other], seen, frozenset({"grad_norm"})) is None
    beyond = seen.replace("-2-2-1-", "-3-2-1-")
    assert beyond != seen
    for nonsense in ("", "_", "x_y_z", seen + "_", seen[:-1], beyond, "0" * 5000):
        assert news_since([track, other], nonsense) is None
