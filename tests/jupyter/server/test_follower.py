"""What the server remembers of runs: as little and as short as it may."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder
from workbench.jupyter.server.follower import Follower
from workbench.store.folder import RunFolder
from workbench.telemetry.streams import TelemetryWriter


def spoken(path: Path, steps: int = 10) -> RunFolder:
    """A run that has written so many records."""
    folder = run_folder(path)
    writer = TelemetryWriter(folder.telemetry)
    for step in range(1, steps + 1):
        writer.scalars(step, step, step, loss=1.0)
    writer.close()
    return folder


def header(message: bytes) -> dict[str, Any]:
    """Return the header of a sealed message."""
    return json.loads(message[4 : 4 + int.from_bytes(message[:4], "little")])


def test_those_asked_for_last_are_kept_and_others_go_on_from_their_cursor(tmp_path: Path) -> None:
    follower = Follower(most=2)
    folders = [spoken(tmp_path / f"run-{i}") for i in range(4)]
    first = header(follower.message([folders[0]]))
    for folder in folders[1:]:
        follower.message([folder])
    assert len(follower) == 2
    # The first was forgotten and is read anew; its page notices nothing.
    assert header(follower.message([folders[0]], first["cursor"]))["type"] == "beat"


def test_idle_runs_are_forgotten_and_the_timer_ends(tmp_path: Path) -> None:
    async def live() -> None:
        follower = Follower(idle_seconds=0.05)
        follower.sweep_later()
        assert follower._sweep is None, "a server that nobody asks has no timer"
        follower.message([spoken(tmp_path / "run-a")])
        follower.sweep_later()
        assert follower._sweep is not None
        await asyncio.sleep(0.2)
        assert (len(follower), follower._sweep) == (0, None)

    asyncio.run(live())


def test_pages_with_the_same_runs_in_other_orders_do_not_wait_for_each_other(tmp_path: Path) -> None:
    follower = Follower()
    folders = [spoken(tmp_path / f"run-{i}", steps=2000) for i in range(3)]
    answers: list[int] = []

    def ask(order: list[RunFolder]) -> None:
        answers.extend(len(header(follower.message(order))["runs"]) for _ in range(20))

    pages = [threading.Thread(target=ask, args=(order,), daemon=True) for order in (folders, folders[::-1])]
    for page in pages:
        page.start()
    for page in pages:
        page.join(30)
    assert answers == [3] * 40


def test_questions_at_once_share_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follower, folder = Follower(), spoken(tmp_path / "run-a")
    follower.message([folder])
    track = follower._followed[folder.path].track
    looks: list[int] = []
    poll = track.poll
    monkeypatch.setattr(track, "poll", lambda: looks.append(1) or poll())
    monkeypatch.setattr("workbench.jupyter.server.follower._FRESH_SECONDS", 3600.0)
    for _ in range(3):
        follower.message([folder])
    assert looks == []
    monkeypatch.setattr("workbench.jupyter.server.follower._FRESH_SECONDS", 0.0)
    follower.message([folder])
    assert looks == [1]


def test_a_damaged_run_is_told_and_read_anew(tmp_path: Path) -> None:
    follower, folder = Follower(), spoken(tmp_path / "run-a")
    stream = folder.telemetry / "scalars.jsonl"
    good = stream.read_bytes()
    stream.unlink()
    stream.mkdir()
    with pytest.raises(OSError, match="run-a"):
        follower.message([folder])
    assert len(follower) == 0
    stream.rmdir()
    stream.write_bytes(good)
    assert header(follower.message([folder]))["runs"][0]["clock"] == 10
