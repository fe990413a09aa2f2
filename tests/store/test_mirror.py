"""A run that is copied as it goes on: two folders, an object store of one process, one whose lists come late."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from workbench.base.errors import RunError
from workbench.client.summary import message_of
from workbench.store import control, lease
from workbench.store.folder import RunFolder, write_json
from workbench.store.mirror import Mirror, Place, place_at, reason
from workbench.store.state import STALLED, actual_status, read_state, write_state
from workbench.telemetry.streams import TelemetryWriter, read_telemetry

ID = "20260101-000000-a-000000-0000"


@pytest.fixture
def there(tmp_path: Path) -> RunFolder:
    """A run that trains elsewhere."""
    folder = RunFolder(tmp_path / "cluster" / ID)
    folder.path.mkdir(parents=True)
    folder.control.mkdir()
    write_json(folder.recipe, {"name": "far"})
    write_state(folder, status="running", heartbeat=5.0, heartbeat_monotonic=5.0, host="node7", step=1)
    return folder


def here_of(tmp_path: Path) -> RunFolder:
    """A folder for the copy."""
    folder = RunFolder(tmp_path / "laptop" / ID)
    folder.path.mkdir(parents=True)
    return folder


def local(folder: RunFolder) -> Place:
    return place_at(f"file://{folder.path}")


def copied(state: dict[str, Any], news: float) -> dict[str, Any]:
    return {**state, "afar": "ssh://cluster/run", "heartbeat": news}


def as_is(state: dict[str, Any], news: float) -> dict[str, Any]:
    return state


def record(writer: TelemetryWriter, step: int) -> None:
    writer.scalars(step, 0.1 * step, 64 * step, loss=3.0 / step)
    writer.flush()


def test_a_copy_grows_by_what_is_new_and_never_by_half_a_line(there: RunFolder, tmp_path: Path) -> None:
    here, writer = here_of(tmp_path), TelemetryWriter(there.telemetry, flush_seconds=None)
    record(writer, 1)
    run = local(there)
    mirror, ranges = Mirror(run, local(here)), []
    read = run.fs.cat_file
    run.fs.cat_file = lambda path, start=None, end=None, **more: (
        ranges.append((path.rpartition("/")[2], start, end)), read(path, start=start, end=end, **more))[1]  # fmt: skip
    mirror.round(copied)
    first = (there.telemetry / "scalars.jsonl").stat().st_size
    record(writer, 2)
    with (there.telemetry / "scalars.jsonl").open("ab") as torn:
        torn.write(b'{"seq":2,"st')
    mirror.round(copied)
    mirror.round(copied)
    assert read_telemetry(here.telemetry).series("loss") == ([1, 2], [3.0, 1.5])
    assert (here.telemetry / "scalars.jsonl").read_bytes().endswith(b"\n")
    fetched = [each[1:] for each in ranges if each[0] == "scalars.jsonl"]
    assert fetched[0] == (0, first)
    assert fetched[1][0] == first  # bytes that are here are not read again
    # A later process goes on where this one ended.
    Mirror(run, local(here)).round(copied)
    assert read_telemetry(here.telemetry).series("loss")[0] == [1, 2]
    assert [each[0] for each in ranges].count("recipe.json") == 3  # changed, once more for coarse clocks; and anew


def test_silence_is_no_news_and_never_a_failure(
    there: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = here_of(tmp_path)
    mirror = Mirror(local(there), local(here))
    mirror.round(copied)
    state = read_state(here)
    assert (state.status, state.afar, actual_status(here)) == ("running", "ssh://cluster/run", "running")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 100)
    mirror.round(copied)  # reached, but the run has said nothing since
    assert actual_status(here) == STALLED
    since = time.strftime("%H:%M:%S", time.localtime(read_state(here).heartbeat))
    assert message_of(here, read_state(here), STALLED).startswith(f"no news since {since} from ssh://cluster/run")
    write_state(there, heartbeat=6.0, step=2)
    mirror.round(copied)
    assert (actual_status(here), read_state(here).step) == ("running", 2)
    write_state(there, status="failed", error="it did")
    mirror.round(copied)
    assert actual_status(here) == "failed"
    assert mirror.ended


def test_an_end_is_told_after_all_that_was_said_before(
    there: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.store.mirror.PIECE_BYTES", 60)
    here, writer = here_of(tmp_path), TelemetryWriter(there.telemetry, flush_seconds=None)
    for step in range(1, 9):
        record(writer, step)
    write_state(there, status="finished")
    mirror, rounds = Mirror(local(there), local(here)), 0
    (here.path / "state.json").write_text(json.dumps({"status": "running", "afar": "x"}))
    while mirror.round(copied):
        rounds += 1
        assert read_state(here).status == "running"
    assert rounds > 3
    assert read_state(here).status == "finished"
    assert read_telemetry(here.telemetry).series("loss")[0] == list(range(1, 9))


class LateLists(MemoryFileSystem):
    """An object store: what was written appears in its lists some lists later, and nothing can be appended to."""

    protocol = "late"
    cachable = False
    late: dict[str, int]

    def ls(self, path: str, detail: bool = True, **more: Any) -> Any:
        found = super().ls(path, detail=True, **more)
        seen = self.__dict__.setdefault("late", {})
        for each in found:
            seen[each["name"]] = seen.get(each["name"], 0) + 1
        shown = [each for each in found if each["type"] == "directory" or seen[each["name"]] > 2]
        return shown if detail else [each["name"] for each in shown]

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if "a" in mode:
            raise NotImplementedError
        return super()._open(path, mode, **more)


@pytest.mark.parametrize("store", [MemoryFileSystem, LateLists])
def test_a_run_is_steered_through_a_bucket(there: RunFolder, tmp_path: Path, store: type[MemoryFileSystem]) -> None:
    here, fs = here_of(tmp_path), store()
    bucket = Place(fs, f"/{uuid.uuid4().hex}/{ID}", f"s3://bucket/{ID}")
    # Two processes: one where the run is, one on the laptop; each has a mirror of its own.
    up, down = Mirror(local(there), bucket), Mirror(bucket, local(here))

    def rounds(count: int = 4) -> None:
        for _ in range(count):
            up.round(as_is)
            down.round(copied)

    writer = TelemetryWriter(there.telemetry, flush_seconds=None)
    record(writer, 1)
    rounds()
    record(writer, 2)
    rounds()
    assert read_telemetry(here.telemetry).series("loss") == ([1, 2], [3.0, 1.5])

    asked = control.send(here, "pause", by="ada@laptop")
    rounds()
    assert [(each.id, each.verb, each.by) for each in control.pending(there)] == [(asked, "pause", "ada@laptop")]
    control.answer(there, asked, True, "paused at step 2")
    write_state(there, status="paused")
    rounds()
    assert control.outcome(here, asked)["text"] == "paused at step 2"
    assert read_state(here).status == "paused"
    # What was answered and forgotten there is not asked again.
    for path in there.control.glob(f"{asked}*"):
        path.unlink()
    rounds()
    assert not control.pending(there)


def test_a_lease_is_known_on_both_sides(there: RunFolder, tmp_path: Path) -> None:
    here = here_of(tmp_path)
    mirror = Mirror(local(there), local(here))
    mirror.round(copied)
    lease.claim(here, "page", "ada@laptop")
    mirror.round(copied)
    assert lease.read_lease(there).controller == "page"
    with pytest.raises(lease.SteeredByOther, match="ada@laptop"):
        lease.claim(there, "other", "bob@cluster")
    lease.claim(there, "other", "bob@cluster", take_over=True)
    mirror.round(copied)
    assert lease.read_lease(here).controller == "other"
    assert lease.superseded(there, 0)


def test_the_newest_checkpoint_comes_whole_or_not(
    there: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.store.mirror.PIECE_BYTES", 1000)
    for step in (5, 10):
        (there.checkpoints / f"step-{step}").mkdir(parents=True)
        (there.checkpoints / f"step-{step}" / "weights").write_bytes(bytes(range(256)) * 10)
    here = here_of(tmp_path)
    mirror, seen = Mirror(local(there), local(here), checkpoints=True), []
    while mirror.round(copied):
        seen.append((here.checkpoints / "step-10").exists())
    assert len(seen) > 2
    assert not any(seen)
    assert (here.checkpoints / "step-10" / "weights").read_bytes() == bytes(range(256)) * 10
    assert not (here.checkpoints / "step-5").exists()


def test_a_checkpoint_comes_whole_where_nothing_can_be_appended(
    there: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.store.mirror.PIECE_BYTES", 1000)
    (there.checkpoints / "step-5").mkdir(parents=True)
    weights = bytes(range(256)) * 10
    (there.checkpoints / "step-5" / "weights").write_bytes(weights)
    bucket = Place(LateLists(), f"/{uuid.uuid4().hex}/{ID}", "s3://bucket")
    mirror = Mirror(local(there), bucket, checkpoints=True)
    while mirror.round(as_is):
        pass
    assert bucket.read("checkpoints/step-5/weights") == weights


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s4://bucket/run", "unknown protocol 's4'; did you mean 's3'.*common ones are file, ssh, s3"),
        ("ssh://ada:secret@host/run", "a URL with a password would stand in files"),
    ],
)
def test_what_cannot_be_opened_is_said_in_a_sentence(url: str, said: str) -> None:
    with pytest.raises(RunError, match=said) as raised:
        place_at(url)
    assert "secret" not in str(raised.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(RunError, match=r"s3:// needs a package: pip install 'fsspec\[s3\]'"):
        place_at("s3://bucket/run")


def test_a_refused_login_is_told_from_a_host_that_is_away() -> None:
    refused = reason("s3://host/x", PermissionError("Access Denied"))
    assert "host refuses this login (PermissionError: Access Denied)" in refused
    away = reason("ssh://host/x", OSError("No route to host"))
    assert away == "ssh://host/x cannot be reached (OSError: No route to host)"
