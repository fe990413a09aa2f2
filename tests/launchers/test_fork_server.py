"""A run that is forked from a process that is held ready is like any other; what does not fit is left."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psutil
import pytest

import workbench
from tests.launchers.queue.conftest import queue
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.launchers import fork_server
from workbench.launchers.fork_server import TRAINER
from workbench.launchers.launched import Launched
from workbench.launchers.local import wait_for_supervisors
from workbench.launchers.processes import module_command
from workbench.launchers.queue.outlook import training_now
from workbench.launchers.queue.queue_folder import Queue
from workbench.store.folder import RunFolder, read_object
from workbench.store.state import lock_held

__all__ = ["queue"]


@pytest.fixture
def server(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that this one holds; gone with the test, and whoever follows it."""
    # As outside of tests, where libraries may start a thread for each core.
    for variable in (fork_server.VARIABLE, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    # Not the one that all tests share.
    monkeypatch.setenv(fork_server.FOLDER_VARIABLE, "")
    monkeypatch.setattr(fork_server, "_held", [])
    # However busy the machine is.
    monkeypatch.setattr(fork_server, "LOADING_SECONDS", 60.0)
    monkeypatch.setattr(fork_server, "ANSWER_SECONDS", 10.0)
    # Who launches earlier does not wait for that.
    fork_server.hold(after_seconds=600.0)
    yield fork_server._held[0].process
    fork_server.release()


def launched(corpus: Path, root: Path) -> tuple[Run, psutil.Process]:
    """A run that trains, and its trainer."""
    run = launch(tiny_recipe(corpus, steps=100_000), runs_dir=root)
    wait_until(lambda: run.state.step >= 1 or run.status in ("failed", "lost"), 90, "the first step")
    assert run.status == "running", run.state
    return run, psutil.Process(run.state.pid)


def asleep(pid: int) -> bool:
    """True if a process has nothing to do for a second."""
    for _ in range(10):
        if psutil.Process(pid).status() != psutil.STATUS_SLEEPING:
            return False
        time.sleep(0.1)
    return True


def shown(process: psutil.Process) -> list[str]:
    """Its command without the room that is left for others."""
    return [part for part in process.cmdline() if part]


@pytest.mark.process
def test_runs_are_forked_and_know_nothing_of_each_other(
    corpus: Path, root: Path, server: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Read after torch was loaded, so that it may be set until a launch.
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "later"))
    runs = [launched(corpus, root) for _ in range(2)]
    assert (tmp_path / "later" / "tokens").is_dir()
    for run, trainer in runs:
        supervisor = trainer.parent()
        assert supervisor is not None
        assert (supervisor.pid, supervisor.ppid()) == (Launched.read(run.folder).handle["pid"], server.pid)
        assert os.getsid(supervisor.pid) == supervisor.pid
        assert os.getpgid(trainer.pid) == trainer.pid
        assert shown(trainer) == module_command(TRAINER, str(run.folder.path))
        assert shown(supervisor) == module_command("workbench.launchers.supervisor", str(run.folder.path))
        assert next(iter(read_object(run.folder.environment)["start_seconds"])) == "loading torch"
        # Of another run it has nothing open, of its own queue no ticket.
        opened = [file.path for file in trainer.open_files()]
        assert not [path for path in opened if path.startswith(str(root)) and str(run.folder.path) not in path]
        assert not [path for path in opened if path.startswith(os.environ["WORKBENCH_QUEUE"])]
    (killed, trainer), (other, _) = runs
    trainer.send_signal(signal.SIGKILL)
    wait_until(lambda: killed.status == "failed", 30, "the end")
    assert "was killed (signal 9, SIGKILL)" in killed.state.error
    wait_until(lambda: not lock_held(killed.folder), 30, "the supervisor's end")
    # They outlive whoever forked them, and end as they should.
    fork_server.release()
    other.stop()
    wait_until(lambda: other.status == "stopped", 30, "the stop")
    assert wait_for_supervisors(30)


@pytest.mark.extended
@pytest.mark.process
def test_a_run_that_has_waited_is_forked_once_its_turn_has_come(
    corpus: Path, root: Path, queue: Queue, server: subprocess.Popen[bytes]
) -> None:
    first, _ = launched(corpus, root)
    second, third = (launch(tiny_recipe(corpus, steps=100_000), runs_dir=root, name=name) for name in "bc")
    waiting = [psutil.Process(Launched.read(run.folder).handle["pid"]) for run in (second, third)]
    assert all(each.ppid() == os.getpid() for each in waiting), "what waits must not keep torch in memory"
    # After its first fork it loads the compiler. Who waits is a process of its own, whose patience `server` has not
    # raised: on a busy machine it would give up and start anew.
    wait_until(lambda: asleep(server.pid), 90, "the compiler")
    first.stop()
    wait_until(lambda: second.state.step >= 1, 90, "the first step of the second")
    trainer = psutil.Process(second.state.pid)
    supervisor = trainer.parent()
    assert supervisor is not None
    assert supervisor.ppid() == server.pid
    assert lock_held(second.folder)
    assert third.status == "queued", "the turn went over with the run"
    assert [ticket.folder for ticket in training_now()] == [str(second.folder.path)]
    wait_until(lambda: waiting[0].status() == psutil.STATUS_ZOMBIE, 30, "the end of the one that waited")
    # It logs where it would have, and ends as it should.
    second.stop()
    wait_until(lambda: second.status == "stopped", 30, "the stop")
    wait_until(lambda: third.state.step >= 1, 90, "the third's turn")
    third.stop()
    wait_until(lambda: queue.tickets() == [], 30, "an empty queue")


@pytest.mark.extended
@pytest.mark.process
def test_a_killed_supervisor_leaves_no_orphan(corpus: Path, root: Path, server: subprocess.Popen[bytes]) -> None:
    run, trainer = launched(corpus, root)
    supervisor = trainer.parent()
    assert supervisor is not None
    assert supervisor.ppid() == server.pid
    supervisor.kill()
    wait_until(lambda: not trainer.is_running() or trainer.status() == psutil.STATUS_ZOMBIE, what="the trainer's end")
    wait_until(lambda: run.status == "lost", what="the loss")


@pytest.mark.process
@pytest.mark.parametrize("why", ["another environment", "no answer", "ended"])
def test_what_does_not_fit_is_left(
    folder: RunFolder, root: Path, server: subprocess.Popen[bytes], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "another environment":
        monkeypatch.setenv("OMP_NUM_THREADS", "7")
    elif why == "no answer":
        monkeypatch.setattr(fork_server, "LOADING_SECONDS", 0.1)
        server.send_signal(signal.SIGSTOP)
    else:
        server.kill()
        server.wait()
    assert fork_server.hand_over([str(folder.path)], {}) is None
    assert not lock_held(folder)


@pytest.mark.extended
@pytest.mark.process
def test_a_process_below_uses_the_same_one(server: subprocess.Popen[bytes]) -> None:
    code = (
        "from workbench.launchers import fork_server; fork_server.hold()\n"
        "print(fork_server._held, fork_server._connected(fork_server._folder() / fork_server._surroundings()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] <socket")


@pytest.mark.process
def test_under_other_surroundings_another_takes_its_place(
    server: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fork_server._folder()
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert fork_server.hold(after_seconds=600.0)
    assert server.poll() is not None
    assert not fork_server.hold(), "who finds one has nothing to let go of"
    assert (len(fork_server._held), fork_server._folder()) == (1, folder)
    fork_server._connected(fork_server._held[0].path).close()
    # What Jupyter tells its kernels, and a user tells pip, is nothing to a trainer.
    for variable in ("IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTER_PATH", "PIP_INDEX_URL"):
        monkeypatch.setenv(variable, "elsewhere")
    assert fork_server._held[0].path.name == fork_server._surroundings()


@pytest.mark.process
def test_whoever_used_one_of_a_process_above_holds_its_own_once_that_has_ended(
    server: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the driver of a race whose kernel has ended."""
    (above,) = fork_server._held
    monkeypatch.setattr(fork_server, "_held", [])
    assert not fork_server.hold(after_seconds=600.0), "it is found by the environment"
    above.lifeline.close()
    server.wait(timeout=10)
    assert fork_server.hand_over([], {}) is None
    (own,) = fork_server._held
    assert own.process.poll() is None
    fork_server.release()
    assert fork_server.hand_over([], {}) is None
    assert fork_server._held == [], "who let go wants none"


def test_whoever_has_a_thousand_files_open_hears_the_answer() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2048), limits[1]))
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.socket(fileno=fcntl.fcntl(ours.fileno(), fcntl.F_DUPFD, 1500)) as channel:
        theirs.send(b"17")
        assert fork_server._answer(channel, 5.0) == b"17"
        assert fork_server._answer(channel, 0.0) == b""
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("why", ["switched off", "little memory"])
def test_none_is_held_where_that_is_not_wanted(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fork_server.FOLDER_VARIABLE, "")
    monkeypatch.setattr(fork_server, "_held", [])
    if why == "little memory":
        monkeypatch.setattr(fork_server, "LEAST_BYTES", 1 << 60)
    else:
        monkeypatch.setenv(fork_server.VARIABLE, "off")
    fork_server.hold()
    assert fork_server._held == []


@pytest.mark.parametrize("notebook", [True, False])
def test_whoever_composes_in_a_notebook_has_one(notebook: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held_by: list[str] = []
    monkeypatch.setattr(fork_server, "hold", lambda: held_by.append("the kernel"))
    modules = {name: module for name, module in sys.modules.items() if name != "ipykernel"}
    monkeypatch.setattr(sys, "modules", modules | ({"ipykernel": sys} if notebook else {}))
    monkeypatch.delitem(vars(workbench), "Recipe", raising=False)
    assert workbench.Recipe is not None
    # A second look loads nothing, and holds no other.
    assert workbench.Recipe is not None
    assert held_by == ["the kernel"] * notebook


@pytest.mark.process
def test_it_ends_with_whoever_holds_it_and_leaves_nothing() -> None:
    code = (
        "import os, time; from workbench.launchers import fork_server\n"
        "fork_server.hold(); print(fork_server._held[0].process.pid);"
        " print(fork_server._folder(), flush=True); time.sleep(600)"
    )
    environment = os.environ | {fork_server.FOLDER_VARIABLE: "", fork_server.VARIABLE: "on"}
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert holder.stdout is not None
    server = psutil.Process(int(holder.stdout.readline()))
    folder = Path(holder.stdout.readline().strip())
    assert len(list(folder.iterdir())) == 1
    holder.kill()
    holder.communicate()
    server.wait(60)
    assert not folder.exists()


def test_a_module_is_stale_once_its_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "edited.py"
    file.write_text("")
    module = ModuleType("edited")
    module.__file__ = str(file)
    monkeypatch.setattr(sys, "modules", {"edited": module, "not a file": ModuleType("x"), "os": os})
    now = time.time() + 10
    assert not fork_server.stale(now)
    os.utime(file, (now + 5, now + 5))
    assert fork_server.stale(now)
    assert not fork_server.stale(now + 10)
    file.unlink()
    assert fork_server.stale(now + 10)
