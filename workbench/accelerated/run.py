"""``workbench.accelerate``: a user's own model and loader with the same loop, run folder, live view and choices.

Training happens in a thread of the calling process, since a notebook's objects cannot be sent to another one: the live
view streams, the kernel stays usable, and the run ends, with a checkpoint, when the program does.
"""

from __future__ import annotations

import contextlib
import fcntl
import inspect
import os
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from workbench.accelerated.arguments import (
    budget_of,
    check_choices,
    check_loss,
    check_model,
    depth_of,
    execution_of,
    optimizer_of,
)
from workbench.accelerated.batches import check_loader, length_of, tokens_of
from workbench.accelerated.model import OWN_LOSS, Look, LossFunction, look_at, loss_of_model
from workbench.accelerated.needs import check_depth, check_execution, check_width, find_stack
from workbench.accelerated.task import OwnTask
from workbench.base.errors import RecipeError, RunError, RunFailed
from workbench.choices.architectures.flops import count_parameters
from workbench.choices.own import OwnLoader, OwnLoss, OwnModel
from workbench.client.run import Run
from workbench.launchers.create import begin, create
from workbench.launchers.launched import Launched
from workbench.launchers.queue.outlook import notice
from workbench.launchers.queue.turn import Turn, enter
from workbench.launchers.supervisor import REPORT_VARIABLE
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.attempts import resuming
from workbench.store.folder import RunFolder, runs_root
from workbench.store.in_process import IN_PROCESS, is_in_process, way_on
from workbench.store.result import Result
from workbench.store.state import ENDED_WELL, FINAL, actual_status, read_state
from workbench.training.session import Session
from workbench.training.status import Status
from workbench.training.worker import fail, log_failure

_training: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Given:
    """The user's objects, examined.

    Attributes:
        model, loader, heldout, loss: as given.
        layers: of the model's stack, or the model alone.
        look: what a first pass told.
    """

    model: nn.Module
    loader: Iterable[Any]
    heldout: Iterable[Any] | None
    loss: LossFunction
    layers: list[nn.Module]
    look: Look


def accelerate(
    model: nn.Module,
    loader: Iterable[Any],
    heldout: Iterable[Any] | None = None,
    *,
    loss: LossFunction | None = None,
    layers: str | None = None,
    budget: str | Mapping[str, Any] = "1 epoch",
    name: str | None = None,
    notes: str = "",
    seed: int = 0,
    runs_dir: str | Path | None = None,
    resume: str | Path | Run | None = None,
    **choices: Any,
) -> AcceleratedRun:
    """Train your own model in the background of this process; returns at once, and does not queue.

    The run has a folder like any other: it is watched, steered, compared and reported the same way. When it has ended
    (:meth:`AcceleratedRun.wait`), the trained weights are in ``model``; until then, they are in the checkpoints.

    Args:
        model: any torch module; its layers are found, or named by ``layers``.
        loader: batches, read again in every epoch: a DataLoader, or a list.
        heldout: batches for the held-out loss; None measures none.
        loss: a function of model and batch that returns the mean over the batch, 0-d; None for
            ``model(**batch).loss``, as in transformers.
        layers: name of the module that holds the layers (``"bert.encoder.layer"``); None for the largest ModuleList.
        budget: ``"3 epochs"``, or as in a recipe: ``"500 steps"``, ``"2 min"``, ``"1M tokens"``. A batch without
            ``input_ids`` counts its rows as tokens.
        name, notes, seed: of the run; the seed decides the order of a shuffling loader, dropout and layer dropping.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
        resume: a run of the same model and loader to go on with, under its choices and budget, instead of a new one.
        **choices: ``optimizer``, ``depth`` and ``execution``, each as in a recipe. Left out: ``torch.optim.AdamW`` as
            it is by itself (``optimizer={"lr": 3e-4}`` changes a knob of that; a kind that is named comes with this
            package's schedule and clipping), all layers, and float32 without compilation.

    Raises:
        RecipeError: a choice that is not legal, or needs something that the model lacks.
        DataError: a loader that is empty, or can be read only once.
        RunError: the run to resume belongs to another process or is running, or the model is already in training.

    Example:
        >>> run = accelerate(model, loader, optimizer="lans", budget="2 min")  # doctest: +SKIP
        >>> run.watch()  # doctest: +SKIP
    """
    loss = loss_of_model if loss is None else loss
    check_choices(choices, list(inspect.signature(accelerate).parameters)[:-1])
    _check_objects(model, loader, heldout, loss)
    if resume is not None:
        said = {**choices, "layers": layers, "budget": budget, "name": name, "notes": notes, "seed": seed}
        return _resumed(resume, runs_dir, said, model, loader, heldout, loss)
    named = {"name": name or type(model).__name__, "notes": notes, "seed": seed, "budget": budget_of(budget, loader)}
    given, recipe = _composed(model, loader, heldout, loss, layers, named, choices)

    def prepare(draft: RunFolder) -> Recipe:
        Launched.here(IN_PROCESS, Path.cwd()).write(draft, {"pid": os.getpid()})
        return recipe

    folder, lock = create(runs_root(runs_dir), prepare)
    return AcceleratedRun(folder, given)._start(recipe, lock, resume=False)


def _check_objects(model: nn.Module, loader: Iterable[Any], heldout: Iterable[Any] | None, loss: LossFunction) -> None:
    """Refuse objects that cannot be trained with, or a model that is in training."""
    check_model(model)
    _check_free(model)
    check_loader(loader, "loader")
    if heldout is not None:
        check_loader(heldout, "heldout")
    check_loss(loss)


def _composed(
    model: nn.Module,
    loader: Iterable[Any],
    heldout: Iterable[Any] | None,
    loss: LossFunction,
    layers: str | None,
    named: Mapping[str, Any],
    choices: Mapping[str, Any],
) -> tuple[Given, Recipe]:
    """Return the user's objects, examined by a first pass, and a recipe that fits them."""
    depth, execution = depth_of(choices.get("depth", "full")), execution_of(choices.get("execution", {}))
    check_width(depth)
    path, stack = find_stack(model, layers, depth)
    look = look_at(model, loss, stack, loader, heldout)
    check_depth(depth, model, loss, path, stack, look)
    given = Given(model, loader, heldout, loss, stack, look)
    chosen = {
        **choices,
        "depth": depth,
        "execution": execution,
        "optimizer": optimizer_of(choices.get("optimizer", {})),
    }
    recipe = Recipe(**named, **_stand_ins(given, path), **chosen)
    check_execution(recipe, look)
    return given, recipe


class AcceleratedRun(Run):
    """A run that trains in this process: everything that a :class:`Run` can do, and the weights.

    Args:
        folder: of the run.
        given: the user's objects.
    """

    def __init__(self, folder: RunFolder, given: Given) -> None:
        super().__init__(folder)
        self._given = given
        self._done = threading.Event()
        self._session: Session | None = None
        self._turn: Turn
        self._ended_because = ""
        self._error: BaseException | None = None

    def wait_blocking(self, timeout: float | None = None, poll: float = 0.2) -> Result:
        """As :meth:`Run.wait_blocking`; interrupted (Ctrl-C), the run is stopped with a checkpoint first."""
        try:
            return super().wait_blocking(timeout, poll)
        except KeyboardInterrupt:
            self._end("stopped by Ctrl-C")
            self._done.wait()
            print(f"run '{self.id}' ended at step {self.state.step}{way_on(self.folder, self.status)}")
            raise

    def outcome(self) -> Result:
        """Return the result of a run that ended; the weights are in the model then. Raises as :meth:`Run.outcome`."""
        if self.status in FINAL:
            self._done.wait()
        try:
            return super().outcome()
        except RunFailed as failed:
            raise RunFailed(f"{failed}; worker.log is {self.folder.log}") from self._error

    def resume(self, timeout: float | None = None, *, controller: str = "", take_over: bool = False) -> str:
        """As :meth:`Run.resume`, with the objects that this run has: in this process no other is needed."""
        if self.status not in FINAL or self.status == "finished":
            return super().resume(timeout, controller=controller, take_over=take_over)
        self._done.wait()
        # Another run may have begun with it since.
        _check_free(self._given.model)
        _again(self)
        return f"{resuming(self.folder)}, attempt {self.state.attempt}"

    def _start(self, recipe: Recipe, lock: int, *, resume: bool) -> AcceleratedRun:
        self._done.clear()
        self._error = None
        self._ended_because = ""
        _training[self._given.model] = self.id
        # It never waits: model and data are in this program's memory, and whoever called goes on with them.
        self._turn = enter(self.folder, wait=False)
        if line := notice(self.folder, running=True, problem=self._turn.problem):
            print(f"{self.id}: {line}")
        # Not a daemon: what it has in hand, a checkpoint first of all, is finished before the program is gone.
        threading.Thread(target=self._train, args=(recipe, lock, resume), name=f"training {self.id}").start()
        return self

    def _train(self, recipe: Recipe, lock: int, resume: bool) -> None:
        given, status = self._given, _TiedStatus(self.folder, self._end)
        task = OwnTask(recipe, given.model, given.loss, given.loader, given.heldout, given.layers, given.look)
        try:
            self._session = Session(self.folder, status, resume, task)
            if self._ended_because:
                self._session.stop(self._ended_because)
            self._session.run()
        # A thread's error would go to nobody: it becomes the state of the run, as a trainer's does.
        except BaseException as error:
            fail(self.folder, status, error, whole=False)
            with contextlib.suppress(OSError), self.folder.log.open("a") as log:
                log_failure(error, log)
            # Of its frames only the places: what lay in them, activations for one, must not be kept.
            traceback.clear_frames(error.__traceback__)
            self._error = error
        finally:
            self._session = None
            task.detach()
            status.close()
            with contextlib.suppress(OSError, RunError):
                control.dismiss_pending(self.folder, "the run has ended")
            self._turn.leave()
            # By name: a worker of some loader may have been forked with a copy of the descriptor.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)
            _training.pop(given.model, None)
            self._done.set()
        if read_state(self.folder).status in ENDED_WELL and os.environ.get(REPORT_VARIABLE) != "off":
            # A picture that cannot be drawn does not make a good run fail.
            with contextlib.suppress(RunError, OSError):
                self.report()

    def _end(self, why: str) -> None:
        self._ended_because = why
        if session := self._session:
            session.stop(why)


class _TiedStatus(Status):
    """The status of a run that ends with its program: looked for with every look at the folder, before every step.

    Not by a daemon thread that waits for the main thread: with one, 2 of 25 programs aborted at their end. The likely
    cause, without a stack to prove it: Python's end kills such a thread within C++ frames that allow no unwinding.
    """

    def __init__(self, folder: RunFolder, end: Callable[[str], None]) -> None:
        self._end = end
        super().__init__(folder)

    def check_folder(self) -> None:
        """See :meth:`Status.check_folder`."""
        super().check_folder()
        if not threading.main_thread().is_alive():
            self._end("stopped, since the program that trained it has ended: run.wait() waits for the end of a run")


def _check_free(model: nn.Module) -> None:
    if other := _training.get(model):
        raise RunError(f"this model is in training by run '{other}'; stop that first, or wait for it")


def _again(run: AcceleratedRun) -> AcceleratedRun:
    """Return one more attempt of a run that ended."""
    return run._start(run.recipe, begin(run.folder, attempt=run.state.attempt + 1), resume=True)


def _resumed(
    resume: str | Path | Run, runs_dir: str | Path | None, said: Mapping[str, Any], model: nn.Module,
    loader: Iterable[Any], heldout: Iterable[Any] | None, loss: LossFunction,
) -> AcceleratedRun:  # fmt: skip
    earlier = resume if isinstance(resume, Run) else Run(resume, runs_dir)
    if not is_in_process(earlier.folder):
        raise RunError(
            f"run '{earlier.id}' trains what its recipe says: `workbench resume {earlier.id}` goes on with it"
        )
    known = inspect.signature(accelerate).parameters
    if asked := [word for word, value in said.items() if word not in known or value != known[word].default]:
        raise RecipeError(
            f"{', '.join(asked)}: a run goes on under the choices that it began with; begin a new one for others, "
            "or turn single knobs while it trains with run.set(...)"
        )
    status, recipe = actual_status(earlier.folder), earlier.recipe
    if status not in FINAL or status == "finished":
        raise RunError(f"run '{earlier.id}' is {status}: there is nothing to go on with")
    began, other = recipe.architecture, {"model": type(model).__name__, "parameters": count_parameters(model)}
    # Before its layers are looked for: of another model the message would speak of a name that nobody gave.
    _refuse_others(earlier, {f"architecture.{k}": (getattr(began, k), v) for k, v in other.items()})
    path, stack = find_stack(model, began.stack or None, recipe.depth)
    look = look_at(model, loss, stack, loader, heldout)
    check_depth(recipe.depth, model, loss, path, stack, look)
    given = Given(model, loader, heldout, loss, stack, look)
    stands = {axis: choice.model_dump(mode="json") for axis, choice in _stand_ins(given, path).items()}
    if "frozen" not in began.model_fields_set:  # of before it was written down
        stands["architecture"]["frozen"] = 0
    now = recipe.with_(**stands)
    _refuse_others(earlier, recipe.diff(now))
    return _again(AcceleratedRun(earlier.folder, given))


def _refuse_others(run: Run, knobs: Mapping[str, tuple[Any, Any]]) -> None:
    """Refuse objects that differ from those that a run began with, by what stood for them and does now."""
    different = [f"{knob} was {before}, is {after}" for knob, (before, after) in knobs.items() if before != after]
    if different:
        raise RunError(
            f"run '{run.id}' began with other objects ({'; '.join(different)}); give the same model, loader and loss"
        )


def _frozen(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if not parameter.requires_grad)


def _stand_ins(given: Given, path: str) -> dict[str, Any]:
    """Return the choices that stand for the user's objects in the recipe, by axis."""
    model, loader, named = given.model, given.loader, getattr(given.loss, "__name__", type(given.loss).__name__)
    dataset = getattr(loader, "dataset", None)
    content: Tensor | Any = given.look.batch.content
    return {
        "architecture": OwnModel(
            model=type(model).__name__,
            parameters=count_parameters(model),
            frozen=_frozen(model),
            layers=len(given.layers),
            stack=path,
        ),
        "objective": OwnLoss(loss=OWN_LOSS if given.loss is loss_of_model else named),
        "data": OwnLoader(
            loader=type(loader).__name__,
            dataset="" if dataset is None else type(dataset).__name__,
            batches=length_of(loader),
            batch_size=getattr(loader, "batch_size", None) or given.look.batch.rows,
            counted="rows" if tokens_of(content) is None else "tokens",
        ),
    }
