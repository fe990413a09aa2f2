"""Check a machine before a workshop: one line for each fact, and what to do where it falls short."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from packaging.requirements import Requirement

from workbench.base.cache_folder import cache_folder
from workbench.base.text import duration_words, many
from workbench.launchers.fork_server import VARIABLE as HOLD_VARIABLE
from workbench.launchers.queue.queue_folder import QUEUE_VARIABLE, queue_here
from workbench.launchers.queue.settings import physical_cores
from workbench.ops.free_memory import free_bytes
from workbench.store.folder import RUNS_VARIABLE

GIB = 1 << 30
RUN_GIB = 0.7
"""Memory of a small run with torch loaded, and the server."""
KERNEL_GIB = 0.3
"""Memory of a learner's kernel: 230 MiB with a run watched, 300 once it has forecast a recipe."""
HELD_GIB = 0.3
"""Memory of the process that each kernel holds ready to start a run, until ten minutes pass without one: 290 MiB."""
LEAST_GIB, LEAST_DISK_GIB = 1.5, 1.0
LEARNER_DISK_GIB = 0.2
"""Runs of a learner in a day: ten of 20 MB."""
FIRST_RUN_SECONDS = 60.0
_PACKAGES = ("torch", "jupyterlab", "anywidget")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox", "microsoft-edge")
_SERVER_EXTENSION = "workbench.jupyter.server"
Grade = Literal["good", "beware", "bad"]


@dataclass(frozen=True)
class Check:
    """One fact about the machine.

    Attributes:
        name: its subject. grade: ``bad`` where no workshop can be held so.
        said: the fact, in words. way: what to do; empty where nothing needs doing.
    """

    name: str
    grade: Grade
    said: str
    way: str = ""

    def __str__(self) -> str:
        sign = {"good": "ok  ", "beware": "note", "bad": "BAD "}[self.grade]
        return f"{sign}  {self.name}: {self.said}" + (f". {self.way}" if self.way else "")


def check_machine(runs: Path, learners: int) -> list[Check]:
    """Look at everything that a workshop needs.

    Args:
        runs: the runs folder. learners: people who share the machine.
    """
    found = [_cores(learners), _memory(learners), _disk("runs folder", runs, learners * LEARNER_DISK_GIB)]
    found += [_disk("cache", cache_folder(), 0.0), *_versions(), _browser(), _server_extension(), _lab_extension()]
    return [*found, _shared("runs folder", runs, RUNS_VARIABLE), _queue()]


def _cores(learners: int) -> Check:
    cores = physical_cores()
    last = FIRST_RUN_SECONDS * -(-learners // cores)
    said = f"{many(cores, 'core')}; {many(learners, 'learner')} with a run of {FIRST_RUN_SECONDS:.0f} seconds each are "
    said += f"through after {duration_words(last)}"
    if last <= 10 * FIRST_RUN_SECONDS:
        return Check("cores", "good", said)
    return Check("cores", "beware", said, "Let two or three learners share a run, or set shorter budgets")


def _memory(learners: int) -> Check:
    free, cores = free_bytes(torch.device("cpu")) / GIB, physical_cores()
    runs, held = RUN_GIB * (1 + min(cores, learners)), HELD_GIB * learners
    least = runs + KERNEL_GIB * learners
    said = f"{free:.1f} GiB free"
    if free < LEAST_GIB:
        return Check("memory", "bad", said, f"One run with its server needs {LEAST_GIB} GiB: close other programs")
    parts = f"{many(learners, 'kernel')} and {many(min(cores, learners), 'run')} take about {least:.1f} GiB"
    parts += f", and {held:.1f} more for the process that each kernel holds ready to start a run"
    if free >= least + held:
        return Check("memory", "good", f"{said}; {parts}")
    off = f"Set {HOLD_VARIABLE}=off for all learners: their runs start some seconds later"
    if free >= least:
        return Check("memory", "beware", f"{said}; {parts}", off)
    way = f"Have fewer learners on this machine, or kernels shut down when idle. {off}"
    return Check("memory", "beware", f"{said}; {parts}", way)


def _disk(name: str, folder: Path, more_gib: float) -> Check:
    there = next((each for each in (folder, *folder.parents) if each.exists()), Path("/"))
    free = shutil.disk_usage(there).free / GIB
    said = f"{free:.1f} GiB free for {folder}"
    if not os.access(there, os.W_OK):
        return Check(f"disk, {name}", "bad", f"{folder} cannot be written to", "Choose another, or change its rights")
    if free < LEAST_DISK_GIB:
        return Check(f"disk, {name}", "bad", said, f"{LEAST_DISK_GIB:.0f} GiB are the least: free some space")
    if free < LEAST_DISK_GIB + more_gib:
        return Check(f"disk, {name}", "beware", said, f"A day of runs takes about {more_gib:.0f} GiB: free some space")
    return Check(f"disk, {name}", "good", said)


def _versions() -> Iterator[Check]:
    """Yield Python and the packages whose version decides, against what this package asks for."""
    asked = importlib.metadata.metadata("workbench")["Requires-Python"]
    here = ".".join(map(str, sys.version_info[:3]))
    # Nothing older could have been installed, or have parsed this file.
    yield Check("python", "good", f"{here} (needed: {asked})")
    needed = {each.name: each for each in map(Requirement, importlib.metadata.requires("workbench") or ())}
    for name in _PACKAGES:
        specifier = needed[name].specifier
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Check(name, "bad", "not installed", f"pip install '{name}{specifier}'")
            continue
        if specifier.contains(version.partition("+")[0], prereleases=True):
            yield Check(name, "good", f"{version} (needed: {specifier})")
        else:
            yield Check(name, "bad", f"{version} is none of {specifier}", f"pip install '{name}{specifier}'")


def _browser() -> Check:
    found = next((each for each in _BROWSERS if shutil.which(each)), None)
    if found:
        return Check("browser", "good", f"{found} is here")
    return Check("browser", "good", "none here, and none is needed where learners bring their own: any of this decade")


def _server_extension() -> Check:
    name, on = "server extension", f"jupyter server extension enable {_SERVER_EXTENSION}"
    command = [sys.executable, "-m", "jupyter", "server", "extension", "list"]
    try:
        told = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, "bad", f"'jupyter server extension list' does not answer ({error})", "Install jupyterlab")
    lines = [line for line in (told.stdout + told.stderr).splitlines() if _SERVER_EXTENSION in line]
    if any("enabled" in line for line in lines):
        return Check(name, "good", "on: pages follow runs without a kernel")
    return Check(name, "beware", "off: pages follow runs only while their kernel is there", f"`{on}` turns it on")


def _lab_extension() -> Check:
    name = "Lab extension"
    places = [Path(sys.prefix, "share"), Path.home() / ".local/share", Path("/usr/local/share"), Path("/usr/share")]
    if any((place / "jupyter/labextensions/workbench/package.json").is_file() for place in places):
        return Check(name, "good", "there: a tile, the list of all runs, a word in the status bar")
    way = "Notebooks work without it; install the package into the environment of the Jupyter server to have it"
    return Check(name, "beware", "not in this environment: no tile and no list of runs beside the notebooks", way)


def _shared(name: str, folder: Path, variable: str) -> Check:
    """Say who can write to a folder that learners with accounts of their own share."""
    if not folder.exists():
        way = f"Learners with accounts of their own: `mkdir -m 1777 {folder}`, and set ${variable} for everybody"
        return Check(f"shared {name}", "good", f"{folder} comes with the first run", way)
    open_to = stat.S_IMODE(folder.stat().st_mode)
    if open_to & stat.S_IWOTH or open_to & stat.S_IWGRP:
        return Check(f"shared {name}", "good", f"{folder}, others may write to it")
    way = f"Learners with accounts of their own: `chmod 1777 {folder}`, and set ${variable} for everybody"
    return Check(f"shared {name}", "good", f"{folder}, for this account alone", way)


def _queue() -> Check:
    queue = queue_here()
    if queue is None:
        way = f"Unset it, or every learner's run slows down all others; ${QUEUE_VARIABLE} is 'off'"
        return Check("queue", "bad", "off: runs take no turns, and learners have no limits", way)
    if not queue.folder.exists():
        try:
            queue.prepare()
        except OSError as error:
            way = f"Name a folder on a disk of this machine with ${QUEUE_VARIABLE}"
            return Check("queue", "bad", f"{queue.folder} cannot be made: {error.strerror or error}", way)
    return _shared("queue", queue.folder, QUEUE_VARIABLE)


def verdict(checks: list[Check]) -> str:
    """Return in a sentence whether a workshop can be held."""
    bad = [check.name for check in checks if check.grade == "bad"]
    beware = [check.name for check in checks if check.grade == "beware"]
    if bad:
        return f"This machine cannot hold a workshop yet: {', '.join(bad)}"
    return f"This machine is fit; look at {', '.join(beware)}" if beware else "This machine is fit"
