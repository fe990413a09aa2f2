"""What tests cost: marks by it, who runs what and in which order, caches that are kept, and a check of the marks."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

DURATIONS = Path(__file__).with_name("durations.json")
"""Seconds of the tests that take longer than ``WORTH_NOTING``, and of what else a module has, by its path; written by
``make durations``."""
WORTH_NOTING, SLOW = 0.5, 1.0
# Fixtures that start processes: whoever uses one starts processes.
STARTERS = {
    "chromium", "demonstration", "kernel", "live", "measured_machine", "readme", "server", "small_disk",
}  # fmt: skip
STARTING = ("process", "browser", "slow")
"""Marks of tests that may start processes."""
_STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
_started: list[str] = []

# Two workers on two cores, and the processes of tests beside them: a second thread of each only takes another's core,
# spinning while it waits (the same tests took twice the processor time). Here, since torch reads it when it is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-durations", action="store_true", help=f"write {DURATIONS.name}, which balances workers")


def pytest_configure(config: pytest.Config) -> None:
    # Ctrl-C reaches the processes of tests, also where pytest itself was started with it ignored (`nohup ... &`).
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Kept between sessions: compiling costs minutes. By instruction set: kernels of another one would be no test.
    capability = os.environ.get("ATEN_CPU_CAPABILITY", "native")
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(config.rootpath / ".pytest_cache" / "compiled" / capability))
    # Wherever the environment forbids to write it: every worker rewrites all assertions, each time for six seconds.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # Where a user's own runs lie: tests have folders of their own.
    os.environ.pop("WORKBENCH_RUNS", None)
    # How long an example takes says something about the machine, and nothing about the property.
    settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("shared")
    # Most tests look at no report, and drawing one takes a process; those that do ask for `reports`.
    os.environ["WORKBENCH_REPORT"] = "off"
    # Modules are no garbage, and looking at them while they are collected takes a fifth of the time.
    gc.disable()
    # What it is for, a power cut, no test can make; tests that write short files spend a twentieth of their time there.
    os.fsync = lambda descriptor: None
    sys.addaudithook(_notice_process)
    if config.getoption("--write-durations"):
        config.pluginmanager.register(DurationsWriter())


def _notice_process(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _STARTS and not _compiling():
        _started.append(f"{event}{arguments[:2]}"[:200])


def _compiling() -> bool:
    """Return True if torch's compiler is at work: it starts processes only where its cache has no answer yet."""
    frame = sys._getframe()
    while (caller := frame.f_back) is not None:
        if caller.f_globals.get("__name__", "").startswith("torch._inductor"):
            return True
        frame = caller
    return False


@pytest.hookimpl(tryfirst=True)  # pytest-xdist puts groups into the names in this hook, too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks, and what takes longest first: the last tests to end should be short, or one core waits for the other."""
    seconds: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8")) if DURATIONS.exists() else {}
    takes: dict[str, float] = defaultdict(float)
    modules: dict[str, set[str]] = defaultdict(set)
    for item in items:
        took = seconds.get(item.nodeid, 0.0)
        if took >= SLOW:
            item.add_marker("slow")
        if STARTERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("process")
        takes[_group(item)] += took
        modules[_group(item)].add(item.nodeid.partition("::")[0])
    for group, names in modules.items():
        takes[group] += sum(seconds.get(name, 0.0) for name in names)
    items.sort(key=lambda item: (-takes[_group(item)], _group(item), str(item.path)))


def _group(item: pytest.Item) -> str:
    """Name what one worker has to itself: a module, or the tests of several that share what is made once."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark else item.nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups as they are marked, and whole modules, in the order of the items.

    Test by test each worker waits for the next one to be named, which took it a third of the time of short ones, and
    fixtures of modules are made by both.
    """
    from xdist.scheduler import LoadGroupScheduling

    class Modules(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return str(super()._split_scope(nodeid)).partition("::")[0]

    config.option.loadscopereorder = False
    return Modules(config, log) if config.option.dist == "loadgroup" else None


def pytest_collection_finish() -> None:
    """Modules and items live until the end: without looking at them each full collection of garbage is a tenth as long.

    Tests that prove that something was collected, and there are dozens, would else spend most of their time there.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Who starts processes may start trainers: they are forked from one that has loaded torch, as in a notebook."""
    from workbench.launchers import fork_server

    if any(map(item.get_closest_marker, STARTING)):
        os.environ.pop(fork_server.VARIABLE, None)
        fork_server.hold()
    else:
        # Commands and notebooks hold one as soon as a recipe is composed.
        os.environ[fork_server.VARIABLE] = "off"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test that starts a process without the mark is a failure: `make quick` would run it."""
    _started.clear()
    result = yield
    if _started and not any(map(item.get_closest_marker, STARTING)):
        pytest.fail(f"starts a process ({_started[0]}); mark it with @pytest.mark.process", pytrace=False)
    return result


def quick_ones(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Return values to run a test with, of which all but ``quick`` are left to ``make test-all``."""
    values = list(values)
    assert all(each in values for each in quick), f"{quick} are not all in {values}"
    return [each if each in quick else pytest.param(each, marks=pytest.mark.extended) for each in values]


class DurationsWriter:
    """Writes down how long tests took, setup and teardown included, when the session ends."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # pytest-xdist tells groups by a suffix of the name.
        self._seconds[re.sub(r"@[^\]]*$", "", report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            takes: dict[str, float] = defaultdict(float)
            for name, each in self._seconds.items():
                takes[name if each >= WORTH_NOTING else name.partition("::")[0]] += each
            found = {name: round(each, 1) for name, each in sorted(takes.items()) if each >= WORTH_NOTING}
            DURATIONS.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
