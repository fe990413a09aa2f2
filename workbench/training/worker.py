"""The training process: ``python -m workbench.training.worker RUN_FOLDER [--resume]``.

Several train one run together where a supervisor has started them, or torchrun: ``torchrun --nproc-per-node 2 -m
workbench.training.worker RUN_FOLDER``. The first prints where it was started, the others into logs of their own.

Exit code 0: finished, or stopped on request; 1: failed, with the reason in ``state.json``. It never leaves a state
behind that claims a dead run is running.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from workbench.base.errors import ProcessEnded, RunError, WorkbenchError
from workbench.base.loading import COMPILER, load, process_began
from workbench.base.text import escape_unprintable
from workbench.ops.free_memory import free_bytes, ran_out, wanted_bytes
from workbench.store.checkpoints import has_checkpoint
from workbench.store.folder import RunFolder, read_json
from workbench.store.full_disk import DISK_FULL, disk_full
from workbench.store.state import LOCK_VARIABLE, die_with_parent, keep_lock, process_identity, take_lock
from workbench.telemetry.streams import add_event
from workbench.training.status import Status
from workbench.training.stopping import StoppedEarly, Stopping

if TYPE_CHECKING:
    from workbench.choices.execution import Process


def main(argv: list[str] | None = None, began: float | None = None) -> int:
    """Train the run in a folder; returns the exit code.

    Args:
        began: moment of :func:`time.monotonic` at which this process got the run; None for its own beginning.
    """
    parser = argparse.ArgumentParser(prog="workbench.training.worker")
    parser.add_argument("folder", type=Path, help="folder of the run")
    parser.add_argument("--resume", action="store_true", help="go on from the newest good checkpoint")
    parser.add_argument("--moved", action="store_true", help="this is the process of the recipe's engine")
    options = parser.parse_args(argv)
    escape_unprintable()
    folder = RunFolder(options.folder.absolute())
    rank, size = _rank_and_size()
    if rank:
        return _follow(folder, rank, size)
    lock = keep_lock(folder)
    supervised = lock is not None
    if lock is None:
        try:
            lock = take_lock(folder)  # started without a supervisor; the kernel lets go of it when this process ends
        except (RunError, OSError) as error:
            print(f"worker: {error}", file=sys.stderr)
            return 1
    else:
        die_with_parent()
    status = Status(folder)
    try:
        return _train(folder, lock, status, options, began, size)
    except BaseException as error:
        # Whatever it is, SystemExit included: a state must never say that a dead run is running. Before the log,
        # since that may lie on a disk that is full. A supervisor knows which process has ended, and how.
        if not (supervised and isinstance(error, ProcessEnded)):
            fail(folder, status, error)
        with contextlib.suppress(OSError):
            log_failure(error, sys.stderr)
        return 1
    finally:
        status.close()


def _rank_and_size() -> tuple[int, int]:
    """Return the number of this process and how many there are, as torchrun's variables say; 0 of 1 without them."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if not all(os.environ.get(name) for name in names):
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def _follow(folder: RunFolder, rank: int, size: int) -> int:
    """Train beside rank 0, which alone keeps the run's folder; returns the exit code."""
    with folder.log_of(rank).open("ab") as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
    _keep_compiled_graphs()
    load("workbench.training.session", COMPILER)
    from workbench.choices.execution.ranks import Ranks
    from workbench.training.signs import Signs
    from workbench.training.together import follow

    try:
        ranks = Ranks.join(rank, size)
        with Signs(folder, ranks):
            follow(ranks)
    except ProcessEnded as error:
        # Whichever it was has said how the run ended; a second verdict would hide that.
        print(f"process {rank} of {size}: {error}", file=sys.stderr)
    except Exception as error:
        log_failure(error, sys.stderr)
        return 1
    return 0


def _train(
    folder: RunFolder, lock: int, status: Status, options: argparse.Namespace, began: float | None, size: int
) -> int:
    stopping = Stopping(folder, status)
    try:
        # Before the slow imports: a stop that arrives during them counts, too.
        stopping.begin()
        who = process_identity()
        if began is None:
            began = process_began()
        status.stage("loading torch", began=began, status="starting", error="", exit_code=None, **who)
        _keep_compiled_graphs()
        load("workbench.recipes.recipe")
        from workbench.choices.execution.ranks import Ranks
        from workbench.recipes.recipe import Recipe

        recipe, ranks = Recipe.load(folder.recipe), Ranks()
        if size > 1:
            status.stage(f"waiting for {size - 1} more", "processes that train this run together")
            ranks = Ranks.join(0, size)
            from workbench.training.together import share_cores

            recipe.check_together(size)
            share_cores(recipe, size)
        if not options.moved:
            _move(recipe.execution.process(), folder, lock, options.resume)
        # Before the session: here it is called what it is, loading.
        load("workbench.training.session", COMPILER)
        from workbench.training import rollback
        from workbench.training.session import Session

        def begin(resume: bool) -> Session:
            stopping.session = made = Session(folder, status, resume, ranks=ranks)
            return made

        session = begin(options.resume)
        # The log is what people read first where memory is tight, or a run slow.
        for found in session.engine.findings.values():
            print(found, flush=True)
        # Raised while it starts, in code that swallows every error, as a library's import may.
        if stopping.early:
            raise StoppedEarly(stopping.early)
        rollback.run(session, lambda: begin(True))
    except BaseException:
        # Not StoppedEarly alone: code in C or Rust may turn it into an error of its own while it is imported.
        if not stopping.early:
            raise
        status.write(status="stopped", message=f"{stopping.early}, before the first step", exit_code=0)
    return 0


def _move(process: Process, folder: RunFolder, lock: int, resume: bool) -> None:
    """Go on where the engine trains, unless that is here: as the same process, in its Python and environment."""
    if process.python == sys.executable and not process.environment:
        return
    os.set_inheritable(lock, True)
    environment = {**os.environ, **process.environment, LOCK_VARIABLE: str(lock)}
    command = [process.python, "-P", "-m", "workbench.training.worker", str(folder.path), "--moved"]
    os.execve(process.python, [*command, *(["--resume"] if resume else [])], environment)


def _keep_compiled_graphs() -> None:
    """Compiled graphs go beside the other caches, so that the second run of a shape starts in seconds."""
    from workbench.base.cache_folder import cache_folder

    # setdefault: a folder that the user has chosen stands.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder() / "compiled"))


def fail(folder: RunFolder, status: Status, error: BaseException, *, whole: bool = True) -> None:
    """Have state and telemetry of a run say why it failed, as far as they can be written.

    Args:
        whole: its recipe alone is enough to launch it anew.
    """
    # A resume asks for the same memory; a run whose model and loader are objects is resumed with smaller ones.
    repeats = {"repeats": True} if ran_out(error) and whole else {}
    fork = ", or fork its last checkpoint with the edit" if has_checkpoint(folder.checkpoints) else ""
    way_on = f"As it is it would run out again: edit the recipe and launch it anew{fork}. " if repeats else ""
    text = explain(error, read_json(folder.recipe, {}), way_on)
    with contextlib.suppress(OSError):
        status.write(status="failed", error=text, exit_code=1, message="", **repeats)
    with contextlib.suppress(OSError):
        add_event(folder.telemetry, status.step, "error", text)


def log_failure(error: BaseException, log: TextIO) -> None:
    """Write into a log why its run failed: the request's own fault in its sentence, all else with its traceback."""
    if isinstance(error, WorkbenchError):
        print(error, file=log, flush=True)
    else:
        traceback.print_exception(error, file=log)


def explain(error: BaseException, recipe: dict[str, Any], way_on: str = "") -> str:
    """Return an error in words for people: the cause and the way out.

    Args:
        way_on: how a run goes on whose memory ran out, as a sentence.
        recipe: as in ``recipe.json``; its batch is named when memory ran out.
    """
    text = str(error)
    if ran_out(error):
        data, execution = recipe.get("data", {}), recipe.get("execution", {})
        rows, length = (_described(data.get(name)) for name in ("batch_size", "sequence_length"))
        micro = execution.get("micro_batch_size") or f"{rows} (all rows)"
        return (
            f"out of memory with data.batch_size {rows} and execution.micro_batch_size {micro}{_missed(error)}. The "
            f"checkpoints so far are whole. {way_on}What helps, cheapest first: "
            f"{'; '.join([*_remedies(recipe), f'data.sequence_length less than {length}'])}. {text}"
        )
    if disk_full(error):
        return f"{DISK_FULL}: {text}; free space and resume the run"
    if isinstance(error, WorkbenchError) or type(error).__module__.startswith("workbench."):
        return text
    return f"{type(error).__name__}: {text} (the full traceback is in worker.log)"


def _missed(error: BaseException) -> str:
    """By how much memory was too small, as far as the error says what for."""
    wanted = wanted_bytes(error)
    if wanted is None:
        return ""
    import torch

    gpu = type(error).__name__ == "OutOfMemoryError" and torch.cuda.is_available()
    left = free_bytes(torch.device("cuda" if gpu else "cpu"), at_peak=True)
    missing = max(0, wanted - left) / 2**30
    return (
        f": a tensor of {wanted / 2**30:.3f} GiB found {left / 2**30:.3f} GiB free, so at least {missing:.3f} GiB are "
        "missing"
    )


def _remedies(recipe: dict[str, Any]) -> list[str]:
    from workbench.recipes.recipe import Recipe

    # Of a recipe that was composed and launched; were it damaged, the advice of every engine would still stand.
    try:
        composed = Recipe(**recipe)
    except WorkbenchError:
        composed = Recipe()
    found: list[str] = composed.execution.memory_remedies(composed)
    return found


def _described(value: Any) -> str:
    """Return a number as it is, a schedule by its kind: its numbers would bury the advice."""
    return f"({value.get('kind')} schedule)" if isinstance(value, dict) else str(value)


if __name__ == "__main__":
    sys.exit(main())
