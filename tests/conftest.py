"""What all tests share: one corpus, one cache, disks that can be full."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests.corpus import write_corpus
from tests.documents import ROOT, Executed, execute, held_without_compiler, without_compiler
from workbench.launchers.queue.settings import write_settings

__all__ = ["held_without_compiler"]

pytest_plugins = ("tests.costs",)
FIRST_TRY_CHARACTERS = 2000


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of this test end with a report."""
    monkeypatch.delenv("WORKBENCH_REPORT")


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this session of pytest that all workers of pytest-xdist share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def shared_cache(session_folder: Path) -> Iterator[Path]:
    """The cache of every test and of every process that it starts: a corpus is prepared once, a graph compiled once."""
    folder = session_folder / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def wide_queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A queue in which no run of a test waits, and which knows of nobody else's; those of ``queue`` are narrower."""
    folder = tmp_path_factory.mktemp("queue")
    write_settings(folder, {"cores": 10_000, "runs_per_gpu": 1000})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_QUEUE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def nothing_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A process that ends what trains in this session's folder once pytest is gone, also where it was killed."""
    watch = (
        "import os, pathlib, sys, time\n"
        "while os.getppid() == int(sys.argv[1]): time.sleep(1)\n"
        "from tests.run_folders import kill_processes_of\n"
        "kill_processes_of(pathlib.Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", watch, str(os.getpid()), str(tmp_path_factory.getbasetemp())]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as watcher:
        yield
        watcher.kill()


@pytest.fixture(scope="session")
def corpus(session_folder: Path) -> Path:
    """The text that tests train on (:mod:`tests.corpus`)."""
    folder = session_folder / "corpus"
    # One worker writes: a file that changes is another corpus to the cache.
    with FileLock(folder.with_suffix(".lock")):
        return next(folder.glob("*"), None) or write_corpus(folder)


@pytest.fixture(scope="session")
def embedded_seconds(shared_cache: Path, session_folder: Path) -> float:
    """Return the seconds that collecting the embedded corpus took; the session's cache has it from then on."""
    from workbench.choices.data import Embedded

    note = session_folder / "embedded-seconds.txt"
    with FileLock(note.with_suffix(".lock")):
        if not note.exists():
            began = time.perf_counter()
            Embedded().collect(print)
            note.write_text(str(time.perf_counter() - began))
    return float(note.read_text())


@pytest.fixture(scope="session")
def readme(tmp_path_factory: pytest.TempPathFactory, held_without_compiler: None) -> Executed:
    """README's commands, run once: who looks at what they left belongs to the group "readme".

    They find one package's documentation for that of all: the text is no other to them, but to score a run nine times
    on 240,000 held-out tokens takes two minutes. The whole corpus is made in ``tests/choices/data/test_embedded.py``.
    """
    from workbench.choices.data import Embedded
    from workbench.choices.data.cache import cached_documents

    folder = tmp_path_factory.mktemp("readme")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_CACHE", str(folder / "cache"))
        part = Embedded(packages=("numpy",))
        cached_documents("documentation", Embedded().sources(), lambda: part._harvest(print), print)
        without_compiler(patch)
        return execute(ROOT / "README.md", folder)


@pytest.fixture(scope="session")
def learnable(corpus: Path) -> list[str]:
    """PATH=VALUE changes that make any preset a two-layer model on :func:`corpus`, eager, on one thread."""
    data = {
        "kind": "files", "paths": [str(corpus)], "sequence_length": 32, "batch_size": 16,
        "tokenizer": {"kind": "trained", "vocabulary_size": 256},
    }  # fmt: skip
    return [
        f"data={json.dumps(data)}",
        'architecture={"layers": 2, "width": 64, "heads": 2}',
        'execution={"compile": false, "threads": 1, "precision": "fp32", "attention": "plain", "device": "cpu"}',
        'budget={"evaluations": 2, "evaluation_tokens": 2048}',
    ]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """``wb.accelerate`` into a runs folder of its own, ended with the test."""
    import workbench as wb

    runs: list[Any] = []

    def _start(*objects: Any, **options: Any) -> Any:
        runs.append(wb.accelerate(*objects, runs_dir=tmp_path / "runs", **options))
        return runs[-1]

    yield _start
    for run in runs:
        run._end("the test is over")
        run._done.wait()


@pytest.fixture
def graphs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are captured, decomposed and split as by the real compiler, then run as they stand: no C++, no minutes.

    For what a test says of graphs, memory and resuming; that kernels compute the same is tested with real ones.
    """
    from torch._dynamo.backends.debugging import aot_eager_decomp_partition
    from torch._inductor import compile_fx

    def graphs(model: Any, inputs: Any, **options: Any) -> Any:
        return aot_eager_decomp_partition(model, inputs)

    monkeypatch.setattr(compile_fx, "compile_fx", graphs)


class SmallDisk:
    """A file system of its own that can be filled to the last byte and freed again."""

    def __init__(self, path: Path) -> None:
        self.path, self._filler = path, path / "filler"

    def fill(self) -> None:
        """Leave not a byte."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        """Give back what :meth:`fill` has taken."""
        self._filler.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], SmallDisk]]:
    """``small_disk("4m")`` -> a tmpfs of that size, gone with the test."""
    mounted: list[Path] = []

    def mount(size: str) -> SmallDisk:
        path = tmp_path / f"disk-{len(mounted)}"
        path.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
        try:
            done = subprocess.run(command, capture_output=True)
        except FileNotFoundError:
            pytest.skip("no `mount` here")
        if done.returncode != 0:
            pytest.skip("a small file system needs root")
        mounted.append(path)
        return SmallDisk(path)

    yield mount
    for path in mounted:
        # Lazily: a process that a failed test left behind may still be in it.
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """What a test's call of a process's main does with signals ends with it; processes inherit an ignored one."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    answer = yield
    for number, handler in before.items():
        signal.signal(number, handler)
    return answer


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Why a test got a second try: what that try says may follow from the first one alone."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"first try of {report.nodeid}", sep="-")
        terminalreporter.write_line(str(report.longrepr)[-FIRST_TRY_CHARACTERS:])
