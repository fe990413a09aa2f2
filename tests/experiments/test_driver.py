"""The driver on a disk that is full: it waits, and whoever looks hears why nothing happens."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import psutil
import pytest

from tests.conftest import SmallDisk
from tests.experiments.race.conftest import planned, root, tiny, written
from tests.tiny_runs import wait_until
from workbench.experiments import driver
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import RacePlan

__all__ = ["planned", "root", "tiny"]


@pytest.mark.process
def test_a_driver_that_has_ended_leaves_no_zombie_in_a_kernel(planned: Callable[..., RacePlan]) -> None:
    folder = written(planned())
    folder.write_state("finished", "")
    assert driver.start_driver(Race(folder), folder.path)
    pid = driver._children[folder.path].pid
    assert psutil.pid_exists(pid)
    wait_until(lambda: not psutil.pid_exists(pid), 30, "the end of the driver, and of what is left of it")


class FullLog(io.StringIO):
    """A log on a full disk."""

    def flush(self) -> None:
        raise OSError(28, "No space left on device")


def test_a_driver_outlives_a_full_disk_also_its_log(
    planned: Callable[..., RacePlan], small_disk: Callable[[str], SmallDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small_disk("256k")
    folder = written(planned(runs_dir=disk.path / "runs"))
    folder.write_state("racing", "starting")
    heard: list[str] = []

    def advance(_race: Race) -> None:
        if len(heard) == 2:
            disk.free()
            return folder.write_state("finished", "")
        raise OSError(28, "No space left on device")

    def look(_seconds: float) -> None:
        with folder.driver_lock():
            heard.append(f"{Race(folder).status}: {Race(folder).message}")

    monkeypatch.setattr(driver.time, "sleep", look)
    monkeypatch.setattr(sys, "stderr", FullLog())
    disk.fill()
    monkeypatch.setattr(Race, "advance", advance)
    assert driver._drive(Race(folder)) == 0
    assert heard == [f"racing: waiting: no space is left for {folder.path}"] * 2
    race = Race(folder)
    assert (race.status, race.message, race.note) == ("finished", "", "")
