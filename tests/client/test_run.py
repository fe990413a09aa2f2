"""A run in the hand: waiting in every way Python has, results, errors, tails; no trainer is needed for these."""

from __future__ import annotations

import asyncio
import os
import re
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager, start_new_kernel

from workbench.base.errors import RecipeError, RunError, RunFailed
from workbench.client.run import Run
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import take_lock, write_state
from workbench.store.view import RunView
from workbench.telemetry.quantities import SCALARS
from workbench.telemetry.streams import STREAMS

RESULT = {"steps": 3, "heldout_loss": 2.5}


@pytest.fixture
def alive(folder: RunFolder) -> Iterator[Run]:
    """A run that is running as long as this process holds its lock."""
    lock = take_lock(folder)
    write_state(folder, status="running", step=3, progress=0.25)
    yield Run(folder)
    os.close(lock)


def end(run: Run, status: str = "finished", after: float = 0.0, **changes: Any) -> threading.Timer:
    """Write the end of a run, as its trainer would, after some seconds."""

    def write() -> None:
        write_json(run.folder.evaluations, {"result": RESULT})
        write_state(run.folder, status=status, **changes)

    timer = threading.Timer(after, write)
    timer.start()
    return timer


def test_wait_blocks_until_the_end(alive: Run) -> None:
    end(alive, after=0.3)
    result = alive.wait(poll=0.01)
    assert (result.run, result.state, result.steps, result.heldout_loss) == (alive.id, "finished", 3, 2.5)


def test_wait_gives_up_in_time_and_the_run_goes_on(alive: Run) -> None:
    with pytest.raises(TimeoutError, match="25% done"):
        alive.wait(timeout=0.05, poll=0.01)
    assert alive.status == "running"


def test_awaiting_lets_others_run(alive: Run) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    async def wait_for_all() -> list[Any]:
        ticking = asyncio.create_task(tick())
        one = await alive.wait(poll=0.01)
        # In the way people write it: through a generator, a list, and as a task.
        more = await asyncio.gather(*(run.wait() for run in (alive, alive)), *[run.wait() for run in (alive,)])
        task = asyncio.create_task(alive.wait())
        ticking.cancel()
        return [one, *more, await task]

    end(alive, after=0.5)
    results = asyncio.run(wait_for_all())
    assert [(result["run"], result["heldout_loss"]) for result in results] == [(alive.id, 2.5)] * 5
    assert ticks > 10


def test_blocking_inside_a_coroutine_has_its_own_name(alive: Run) -> None:
    async def block() -> Any:
        return alive.wait_blocking(poll=0.01)

    end(alive)
    assert asyncio.run(block())["steps"] == 3


@pytest.mark.parametrize("status", ["failed", "lost"])
def test_a_bad_end_is_an_error_with_a_way_out(folder: RunFolder, status: str) -> None:
    # Without its lock, a run that says it is running is lost.
    write_state(folder, status="running" if status == "lost" else status, error="the loss became NaN at step 7")
    with pytest.raises(RunFailed, match="NaN at step 7" if status == "failed" else "workbench resume"):
        Run(folder).wait()


def test_results_before_the_end(alive: Run) -> None:
    with pytest.raises(RunError, match="has not ended: it is running"):
        alive.outcome()
    write_state(alive.folder, loss=5.5)
    write_json(alive.folder.evaluations, {"result": {"steps": 1, "heldout_loss": 9.0}})
    result = alive.result
    # What a former attempt ended with is no result of one that goes on.
    assert (result.state, result.steps, result.train_loss, result.heldout_loss) == ("running", 3, 5.5, None)
    assert str(alive) == f"{alive.id}: running 25%, step 3, loss 5.500"
    write_json(alive.folder.evaluations, {})
    write_state(alive.folder, status="stopped", tokens=99)
    assert (alive.outcome().state, alive.outcome().tokens, alive.result.heldout_loss) == ("stopped", 99, None)


def test_what_a_run_was_made_with_is_there_once_it_is_known(alive: Run) -> None:
    assert (alive.environment, alive.plan, alive.final) == ({}, None, False)
    write_json(alive.folder.environment, {"cores": 2, "plan": {"knobs": {"precision": "fp32"}}})
    assert alive.environment["cores"] == 2
    write_json(
        alive.folder.environment, {"cores": 2, "packages": ["numpy"] * 100, "plan": {"knobs": {"precision": "fp32"}}}
    )
    assert repr(alive.environment).startswith("{'cores': 2,\n 'packages': <100 entries>,\n")
    assert alive.plan == {"knobs": {"precision": "fp32"}}
    write_state(alive.folder, status="finished")
    assert alive.final


def test_requests_are_answered_refused_or_left_standing(alive: Run) -> None:
    def answer_all(done: bool, text: str) -> Callable[[], None]:
        def answer() -> None:
            deadline = time.monotonic() + 5
            while not (requests := control.pending(alive.folder)) and time.monotonic() < deadline:
                time.sleep(0.01)
            for request in requests:
                control.answer(alive.folder, request.id, done, text)

        return answer

    for done, text in ((True, "saved step-3"), (False, "no such knob")):
        trainer = threading.Thread(target=answer_all(done, text))
        trainer.start()
        if done:
            assert alive.checkpoint(timeout=5) == "saved step-3"
        else:
            with pytest.raises(RunError, match="refused 'set': no such knob"):
                alive.ask("set", 5, path="a.b", value=1)
        trainer.join()
    with pytest.raises(TimeoutError, match="the request stands"):
        alive.pause(timeout=0.05)
    asked = alive.stop()
    assert [request.verb for request in control.pending(alive.folder)] == ["pause", "stop"]
    assert control.pending(alive.folder)[-1].id == asked


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("optimizer.lrr", 1e-3, r"optimizer\.lrr: this run has no such knob; did you mean optimizer\.lr\?"),
        ("optimizer.lr", -1, "greater than 0"),
        ("optimizer.lr", "fast", r"optimizer\.lr"),
        ("architecture.layers", 2, "unknown knob of a running run 'architecture.layers'"),
    ],
)
def test_a_knob_that_the_run_would_refuse_is_refused_at_once(alive: Run, path: str, value: Any, why: str) -> None:
    write_json(alive.folder.recipe, Recipe(name="mine").to_dict())
    with pytest.raises((RecipeError, RunError), match=why):
        alive.set(path, value)
    assert control.pending(alive.folder) == []
    alive.set("optimizer.lr", 1e-3)
    assert [request.arguments for request in control.pending(alive.folder)] == [{"path": "optimizer.lr", "value": 1e-3}]


@pytest.mark.parametrize("verb", ["stop", "pause", "checkpoint", "evaluate"])
def test_a_run_that_ended_cannot_be_asked(folder: RunFolder, verb: str) -> None:
    write_state(folder, status="stopped")
    with pytest.raises(RunError, match=f"cannot {verb}: it is stopped"):
        getattr(Run(folder), verb)()
    assert not folder.control.exists()


def test_the_way_on_depends_on_what_a_run_left(folder: RunFolder) -> None:
    write_state(folder, status="failed")
    with pytest.raises(RunError, match="starts its recipe from the beginning"):
        Run(folder).pause()
    (folder.checkpoints / "step-7").mkdir(parents=True)
    (folder.checkpoints / "step-7" / "manifest.json").write_text("{}")
    with pytest.raises(RunError, match="goes on from its last checkpoint"):
        Run(folder).pause()


def test_the_end_of_a_long_log(folder: RunFolder) -> None:
    run = Run(folder)
    assert run.tail() == ""
    folder.log.write_text("".join(f"line {number} {'x' * 90}\n" for number in range(5_000)))
    assert [line.split()[1] for line in run.tail(3).splitlines()] == ["4997", "4998", "4999"]
    assert len(run.tail(2_000).splitlines()) == 2_000
    assert run.tail(0) == ""
    folder.log.write_text("no newline, \ud7ff odd bytes")
    assert run.tail() == "no newline, \ud7ff odd bytes"


def test_a_run_shows_itself(alive: Run) -> None:
    assert repr(alive) == f"Run({alive.id!r}, running)"
    assert "25%" in alive._repr_html_()
    assert Run(alive.folder.path) == alive
    assert Run(alive.id[:-2], alive.folder.path.parent) == alive


@pytest.mark.process
def test_what_cannot_be_exported_or_reported_says_why(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="recipe"):
        Run(folder).report()
    with pytest.raises(RunError, match=folder.id):
        Run(folder).export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def kernel() -> Iterator[tuple[KernelManager, Any]]:
    manager, client = start_new_kernel()
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def cell(client: Any, code: str) -> tuple[str, str]:
    """Execute a cell in a real kernel; returns what it printed and the name of its error."""
    printed: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    reply = client.execute_interactive(code, timeout=60, output_hook=hear)
    return "".join(printed), reply["content"].get("ename", "")


def test_in_a_notebook_wait_blocks_and_await_does_not(alive: Run, kernel: tuple[KernelManager, Any]) -> None:
    _, client = kernel
    setup = textwrap.dedent(
        f"""
        import asyncio
        from pathlib import Path
        from workbench.client.run import Run
        run, ticks = Run(Path({str(alive.folder.path)!r})), 0
        async def tick():
            global ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)
        ticking = asyncio.ensure_future(tick())
        """
    )
    assert cell(client, setup) == ("", "")
    end(alive, after=1.0)
    assert (
        cell(client, "before = ticks; print((await run.wait(poll=0.01))['steps'], ticks - before > 10)")[0]
        == "3 True\n"
    )
    write_state(alive.folder, status="running")
    end(alive, after=0.5)
    assert cell(client, "before = ticks; print(run.wait(poll=0.01)['steps'], ticks - before)")[0] == "3 0\n"


def test_interrupting_the_kernel_only_ends_the_waiting(alive: Run, kernel: tuple[KernelManager, Any]) -> None:
    manager, client = kernel
    timer = threading.Timer(1.0, manager.interrupt_kernel)
    timer.start()
    code = (
        f"from pathlib import Path; from workbench.client.run import Run; Run(Path({str(alive.folder.path)!r})).wait()"
    )
    assert cell(client, code)[1] == "KeyboardInterrupt"
    assert alive.status == "running"


def test_an_ended_run_has_what_its_trainer_wrote_and_else_what_its_state_says(folder: RunFolder) -> None:
    write_state(folder, status="finished", step=9, tokens=96, seconds=1.25, loss=3.0)
    found = Run(folder).outcome()
    assert (found.steps, found.tokens, found.seconds, found.train_loss) == (9, 96, 1.25, 3.0)
    assert (found.heldout_loss, found.error) == (None, "")
    write_json(folder.evaluations, {"result": {"steps": 9, "train_loss": 2.75, "heldout_loss": 2.5, "seconds": 1.5}})
    found = Run(folder).result
    assert (found.state, found.train_loss, found.heldout_loss, found.seconds) == ("finished", 2.75, 2.5, 1.5)
    assert found.path == str(folder.path)


def test_a_lost_run_has_what_it_said_last(folder: RunFolder) -> None:
    write_state(folder, status="running", step=4)
    assert (Run(folder).result.state, Run(folder).result.steps) == ("lost", 4)
    with pytest.raises(RunFailed, match="is lost"):
        Run(folder).outcome()


@pytest.mark.parametrize("ahead", [-30.0, 30.0])
def test_one_that_may_train_on_another_machine_is_not_resumed_beside_it(folder: RunFolder, ahead: float) -> None:
    write_state(folder, status="running", host="elsewhere", boot_id="another", heartbeat=time.time() + ahead)
    with pytest.raises(RunError, match="trained on elsewhere a moment ago, and whether it still does"):
        Run(folder).resume()


def test_help_names_the_keys_of_what_a_run_gives(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a-run")
    folder.path.mkdir()
    keys = {"result": Run(folder).result, "view": RunView.__dataclass_fields__}
    for name, named in keys.items():
        said = set(re.findall(r"\w+", getattr(Run, name).__doc__))
        assert set(named) <= said, name
    told = set(re.findall(r"``(\w+)``", Run.telemetry.__doc__ or ""))
    legal = {*STREAMS, *SCALARS, "step", "seconds", "tokens", "kind", "text"}
    assert {*STREAMS, "loss", "heldout_loss"} <= told <= legal
