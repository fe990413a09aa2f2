"""One run, from any process: a run id and a folder. Everything else is read from the folder on demand."""

from __future__ import annotations

import math
import pkgutil
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError, RunFailed
from workbench.base.text import facts_html, share_done
from workbench.client.following import folder_of
from workbench.client.fork import fork
from workbench.client.knob_checks import check_knob
from workbench.client.summary import describe
from workbench.launchers.create import Log, restart
from workbench.launchers.processes import run_module
from workbench.launchers.queue.orphans import start_orphan, withdraw
from workbench.launchers.report import report
from workbench.store import control, requests
from workbench.store.awaited import Awaited
from workbench.store.folder import RunFolder, read_object
from workbench.store.in_process import way_on
from workbench.store.labels import label, name_of, read_labels
from workbench.store.measured import progress_line
from workbench.store.origin import Origin, origin_now
from workbench.store.reached import known_rank, reached, tail
from workbench.store.state import FINAL, RunState, actual_status, lock_held, read_state
from workbench.store.trash import delete
from workbench.store.view import Environment, RunView
from workbench.telemetry.streams import Telemetry, read_telemetry

if TYPE_CHECKING:
    from workbench.launchers.launcher import Launcher
    from workbench.recipes.recipe import Recipe
    from workbench.store.result import Result

EXPORT, MONITOR = "workbench.models.export", "workbench.jupyter.watch.monitor:Monitor"
WEIGHTS = "workbench.accelerated.weights:load_into"
"""The function that ``Run`` calls but must not import (runs stand below it): named here, and only here."""


class Run(Awaited["Result"]):
    """A run that this or any other process launched.

    Args:
        run: its id, a unique prefix of it, its name where one run has it, or its folder (text with a slash is a path
            unless a run is called so); or the URL of one elsewhere, which is followed (:func:`workbench.follow`).
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: no such run; the message names the nearest ids.

    Example:
        >>> run = Run("20260131-0815")  # doctest: +SKIP
        >>> run.status  # doctest: +SKIP
        'running'
    """

    def __init__(self, run: str | Path | RunFolder, runs_dir: str | Path | None = None) -> None:
        self.folder = folder_of(run, runs_dir)

    @property
    def id(self) -> str:
        """The run id."""
        return self.folder.id

    @property
    def name(self) -> str:
        """Its name: the recipe's until you assign another; an empty one brings the recipe's back."""
        return name_of(self.folder)

    @name.setter
    def name(self, name: str) -> None:
        label(self.folder, name=name)

    @property
    def state(self) -> RunState:
        """The state last written, with the actual :attr:`status`; a lost run has the numbers of its last step."""
        return reached(self.folder, read_state(self.folder))

    @property
    def status(self) -> str:
        """Its actual status now: ``lost`` if it should be alive but none of its processes is."""
        return actual_status(self.folder)

    @property
    def final(self) -> bool:
        """True once it has ended: finished, stopped, failed or lost."""
        return self.status in FINAL

    @property
    def recipe(self) -> Recipe:
        """The recipe it was launched with. (Imports torch, through the choices.)

        Raises:
            RecipeError: ``recipe.json`` is missing, damaged, or from a newer version.
        """
        from workbench.recipes.recipe import Recipe

        return Recipe.load(self.folder.recipe)

    def view(self) -> RunView:
        """Return everything about the run now, as plain data.

        Returns:
            id, name, status, recipe, state, environment, evaluations, telemetry, scores, labels, origin, forecast,
            place and knobs: :class:`~workbench.store.view.RunView`. Losses in nats, times in seconds, memory in GiB.
        """
        return RunView.read(self.folder)

    def telemetry(self) -> Telemetry:
        """Return all records that it has written so far, in the order of steps.

        Returns:
            ``scalars``, each with ``step``, ``seconds`` and ``tokens`` of training and what was measured then, as
            ``loss`` and ``heldout_loss`` (nats), ``lr``, ``tokens_per_second``, ``memory_gib`` or ``step_ms``;
            ``layers``, lists with a value per layer; ``events`` with ``kind`` and ``text``. ``series("loss")`` gives
            steps and values. :data:`workbench.telemetry.quantities.QUANTITIES` has all names with titles and units.
        """
        return read_telemetry(self.folder.telemetry)

    @staticmethod
    def check_target(target_loss: object) -> None:
        """Raise RunError unless ``target_loss`` is None or a loss in nats that a run could reach."""
        pkgutil.resolve_name("workbench.store.result:check_target")(target_loss)

    @property
    def result(self) -> Result:
        """Return what the run has achieved so far: losses, baselines, speed. Unknown values are None; never raises.

        Returns:
            run, name, path, state, steps, tokens, seconds (of training), tokens_per_second, train_loss, heldout_loss,
            unigram_entropy, bigram_entropy (nats), bits_per_byte, learned, learned_in_words, score, scores,
            mfu (a share), parameters, useful_flops, stopped_early, target_loss, target_met, error, recipe,
            environment: keys and attributes; :class:`~workbench.store.result.Result` explains them.
        """
        from workbench.store.result import Result  # its XML would slow down every `workbench runs`

        return Result.of(RunView.read(self.folder, telemetry=False), self.folder.path)

    @property
    def environment(self) -> Environment:
        """Versions, device, measured rates and data of the run; empty until its trainer has written them."""
        return Environment(read_object(self.folder.environment))

    @property
    def plan(self) -> dict[str, Any] | None:
        """The trials and the choice of execution ``auto`` or ``memory``; None for other runs."""
        return self.environment.get("plan")

    def outcome(self) -> Result:
        """Return the :attr:`result` of a run that ended, with the same keys and units.

        Raises:
            RunFailed: it failed or is lost.
            RunError: it has not ended.
        """
        status = self.status
        if status == "failed":
            raise RunFailed(
                f"run '{self.id}' failed: {self.state.error or 'no reason was written; see ' + str(self.folder.log)}"
            )
        if status == "lost":
            raise RunFailed(
                f"run '{self.id}' is lost: all of its processes ended without saying why, at step {self.state.step}"
                + way_on(self.folder, status)
            )
        if status not in FINAL:
            raise RunError(f"run '{self.id}' has not ended: it is {status}")
        return self.result

    def stop(self, timeout: float | None = None) -> str:
        """Stop after the current step, with a checkpoint (no evaluation: :meth:`evaluate` first). See :meth:`ask`."""
        return self.ask("stop", timeout)

    def pause(self, timeout: float | None = None) -> str:
        """Pause after the current step, keeping memory. See :meth:`ask`."""
        return self.ask("pause", timeout)

    def checkpoint(self, timeout: float | None = None) -> str:
        """Save a checkpoint after the current step. See :meth:`ask`."""
        return self.ask("checkpoint", timeout)

    def evaluate(self, timeout: float | None = None) -> str:
        """Measure the held-out loss after the current step. See :meth:`ask`."""
        return self.ask("evaluate", timeout)

    def set(self, path: str, value: Any, timeout: float | None = None) -> str:
        """Change a knob of the running run, for example ``set("optimizer.lr", 1e-4)``. See :meth:`ask`.

        Raises:
            RunError, RecipeError: as for :meth:`ask`, or the run would refuse this knob or value; nothing is sent.
        """
        if self.status not in FINAL:
            check_knob(self.folder, path, value)
        return self.ask("set", timeout, path=path, value=value)

    def resume(self, timeout: float | None = None, *, controller: str = "", take_over: bool = False) -> str:
        """Continue a paused run at once, or one that ended before its budget from its last checkpoint.

        Raises:
            RunError: the run is finished or already running.
        """
        state = self.state
        status = state.status
        if status == "finished":
            raise RunError(f"run '{self.id}' is finished: its budget is spent; launch a new run with a larger one")
        if status == "queued" and start_orphan(self.folder):
            return f"queued again, attempt {state.attempt}"
        if status in ("queued", "starting", "stopping"):
            advice = "; resume it when it has stopped" if status == "stopping" else ": it needs no resume"
            if status == "queued" and state.elsewhere and not lock_held(self.folder):
                advice = f" on {state.host}: resume it there, or delete it and launch its recipe again"
            raise RunError(f"run '{self.id}' is {status}, attempt {state.attempt}{advice}")
        if status not in FINAL:
            return self.ask("resume", timeout, controller=controller, take_over=take_over)
        return restart(self.folder, state)

    def fork(
        self, step: int | None = None, *, on: Launcher | str | None = None, say: Log | None = print, **changes: Any
    ) -> Run:
        """Continue from a checkpoint of this run in a new run, with an edited recipe; returns at once.

        Weights, optimizer state, position in the data and all draws continue where they were: without changes, the
        fork repeats this run bit for bit, but for knobs that were turned later. Changing ``optimizer`` beyond rates,
        decay and clipping resets its state.

        Args:
            step: of the checkpoint; None for the newest complete one.
            on: as for :func:`workbench.client.launch.launch`; None: as this run on a cluster, else on this machine.
            say: called with a line if the new run has to wait in the queue, or a newer checkpoint is damaged.
            **changes: as for :meth:`workbench.recipes.recipe.Recipe.with_`; steps already done count towards a
            ``budget``.

        Raises:
            RecipeError: a change that a fork cannot make (the message lists those it can), or the budget is spent.
            RunError: no such checkpoint, or the new run cannot be made.

        Example:
            >>> run.fork(optimizer={"lr": 1e-3}, budget="400 steps")  # doctest: +SKIP
        """
        return Run(fork(self.folder, changes, step, on, say))

    @property
    def tags(self) -> tuple[str, ...]:
        """The run's tags; assign to replace them all."""
        return read_labels(self.folder).tags

    @tags.setter
    def tags(self, tags: Iterable[str]) -> None:
        label(self.folder, add=tags, remove=self.tags)

    @property
    def notes(self) -> str:
        """Notes about the run; assign to replace them. (``recipe.notes`` are those given at launch.)"""
        return read_labels(self.folder).notes

    @notes.setter
    def notes(self, notes: str) -> None:
        label(self.folder, notes=notes)

    def delete(self) -> None:
        """Move the run to the trash of its runs folder; ``workbench restore`` brings it back.

        Raises:
            RunError: it is still alive; stop it first.
        """
        delete(self.folder)

    @property
    def origin(self) -> Origin | None:
        """Return the run and checkpoint that this one was forked from; None for one that began at its own step 0."""
        return origin_now(self.folder)

    def ask(
        self,
        verb: str,
        timeout: float | None = None,
        *,
        controller: str = "",
        take_over: bool = False,
        said: Callable[[str], None] | None = None,
        **arguments: Any,
    ) -> str:
        """Send a request to the run; returns its answer or, without ``timeout``, the id of the request.

        Args:
            timeout: seconds to wait for the run to take up the request; once begun (an evaluation, a checkpoint, a
                profile), it is waited for until done. None returns the request's id at once.
            controller: id of the caller, if it holds the lease of the run (:mod:`workbench.store.lease`).
            take_over: ask even if somebody else holds the lease, and end it.
            said: called with what the run reports once it begins, for example that it evaluates and for how long.

        Raises:
            RunError: the run is not alive, somebody else steers it, or it refused; the message says why.
            TimeoutError: no answer in time; the request stays pending.
        """
        status = self.status
        if status in FINAL:
            raise RunError(f"run '{self.id}' cannot {verb}: it is {status}{way_on(self.folder, status, verb)}")
        request = control.send(self.folder, verb, controller=controller, take_over=take_over, **arguments)
        if verb == "stop" and status == "queued":
            # Where nothing of it is there to answer.
            withdraw(self.folder)
        if timeout is None:
            return request
        answer = requests.wait(self.folder, request, timeout, said)
        if not answer.settled:
            doing = f" (it says: {answer.text})" if answer.text else ""
            doing += f"; the profile will be in {self.folder.profile}" if verb == "profile" else ""
            late = f"run '{self.id}' has not answered '{verb}' within {timeout:g} s"
            raise TimeoutError(f"{late}{doing}; the request stands")
        if answer.state != "done":
            raise RunError(f"run '{self.id}' refused '{verb}': {answer.text}")
        return answer.text

    def tail(self, lines: int = 20, rank: int = 0) -> str:
        """Return the last lines of the run's log, or of that of another process that trains it (RunError: none)."""
        return tail(self.folder.log_of(known_rank(self.folder, rank)), lines)

    @property
    def graphs(self) -> list[Path]:
        """Files that the run's engine made of the model, for example ONNX graphs; empty if there are none."""
        return sorted(self.folder.graphs.glob("*"))

    def export(self, target: str | Path) -> Path:
        """Write the trained model as a new folder, which transformers loads (its README says how).

        Raises:
            RunError: there is no valid checkpoint, or the target exists.
        """
        target = Path(target).expanduser().absolute()
        run_module(self.folder, EXPORT, str(self.folder.path), str(target))
        return target

    def load_into(self, model: Any, step: int | None = None) -> Any:
        """Load the weights of a run of ``workbench.accelerate`` into a model of the same class; returns the model.

        Args:
            model: a torch module.
            step: of the checkpoint; None for the newest that is whole.

        Raises:
            RunError: there is no such checkpoint, or the model's weights have other names or shapes.
            CheckpointError: it is damaged.
        """
        return pkgutil.resolve_name(WEIGHTS)(self.folder, model, step)

    def report(self, path: str | Path | None = None) -> Path:
        """Write one HTML page about the run so far; returns its path, which a notebook shows as a link.

        Args:
            path: the file; None for ``report.html`` in the run's folder.

        Raises:
            RunError: it could not be drawn.
        """
        return report([self.folder], path)

    def watch(self, target_loss: float | None = None, keep_live: bool = False) -> Any:
        """Show the live view in the current notebook cell and return it
        (:class:`workbench.jupyter.watch.monitor.Monitor`).

        It displays itself, so that it appears even if more of the cell follows, and only once if it ends the cell.

        Args:
            target_loss: draw a line at this loss, in nats.
            keep_live: keep the live view after the run has ended, beside the static picture.
        """
        return pkgutil.resolve_name(MONITOR)([self], target_loss=target_loss, keep_live=keep_live).show()

    def ended(self, deadline: float = math.inf) -> bool:
        """Return True once it has ended. Raises as :meth:`Awaited.ended`."""
        if self.status in FINAL:
            return True
        if time.monotonic() >= deadline:
            done = share_done(self.state.progress)
            raise TimeoutError(f"run '{self.id}' has not ended in time; it goes on ({done} done)")
        return False

    def __repr__(self) -> str:
        return f"Run({self.id!r}, {self.status})"

    def __str__(self) -> str:
        state = self.state
        return progress_line(self.name, state.status, asdict(state))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.folder == other.folder

    def __hash__(self) -> int:
        return hash(self.folder)

    def _repr_html_(self) -> str:
        return facts_html(describe(self.folder))
