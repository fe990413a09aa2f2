"""Requests to a run while it trains, answered between two steps."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from workbench.base.errors import WorkbenchError
from workbench.base.text import plain
from workbench.recipes.changes import jumps, settable, turned
from workbench.store import control
from workbench.store.control import Request
from workbench.store.full_disk import unwritable
from workbench.telemetry.profile_table import STEPS
from workbench.training.stopping import ON_REQUEST

if TYPE_CHECKING:
    from pathlib import Path

    from workbench.recipes.recipe import Recipe
    from workbench.store.folder import RunFolder
    from workbench.telemetry.streams import TelemetryWriter
    from workbench.training.evaluate import Evaluation
    from workbench.training.knob_overrides import KnobOverrides
    from workbench.training.loop import Training

T = TypeVar("T")


class Steerable(Protocol):
    """The part of a run in training that requests reach; :class:`workbench.training.session.Session` is one."""

    folder: RunFolder
    writer: TelemetryWriter
    training: Training
    stop_reason: str
    pause_reason: str
    knob_overrides: KnobOverrides

    def stop(self, why: str) -> None:
        """End after the present step."""

    def pause(self, why: str) -> None:
        """Stand still after the present step."""

    def unpause(self) -> bool:
        """Go on; whether the run stood still."""

    def save(self) -> Path | None:
        """Return checkpoint now; None on a full disk."""

    def evaluate(self, *, final: bool) -> Evaluation:
        """Return held-out loss now."""

    def profile(self) -> str:
        """Profile the coming steps; returns in words where their time goes."""

    def turn(self, path: str, value: Any, recipe: Recipe, text: str) -> None:
        """Go on under a recipe that differs in one knob, as ``text`` says."""


class Requests:
    """Reads the requests to a run and carries them out."""

    def __init__(self, session: Steerable) -> None:
        self._session = session
        # Of requests that were carried out while the disk was full: carried out again they would count twice.
        self._unwritten: dict[str, tuple[bool, str]] = {}
        # For a profile: the one that is being taken, and whoever asked for one meanwhile.
        self._profiles: list[Request] = []
        self._took: dict[str, float] = {}

    def write_knobs(self) -> None:
        """Write down what may be set now, for pages."""
        session = self._session
        # On a full disk a run must go on, even if nobody can see its knobs.
        with contextlib.suppress(OSError):
            control.write_knobs(session.folder, settable(session.training.recipe, session.training.assembled.longest))

    def answer(self) -> None:
        """Carry out pending requests, oldest first; every request gets an answer and becomes an event."""
        session = self._session
        for request in control.pending(session.folder):
            if request.id in self._unwritten or request in self._profiles:
                continue
            # While a profile was taken, the requests behind it have been answered.
            if control.outcome(session.folder, request.id) is not None:
                continue
            if request.verb == "profile":
                self._profile(request)
            else:
                self._settle(request, *self._outcome(request))
        for request_id, outcome in list(self._unwritten.items()):
            try:
                control.answer(session.folder, request_id, *outcome)
                del self._unwritten[request_id]
            except OSError as error:
                if not unwritable(error):
                    raise

    def timed(self, verb: str, work: Callable[[], T]) -> T:
        """Do what a verb stands for; whoever asks for it next is told how long that took."""
        began = time.monotonic()
        result = work()
        self._took[verb] = time.monotonic() - began
        return result

    def interruption(self) -> str:
        """Between two steps of a profile: carry out what was asked; why the run is to end or stand still, or empty."""
        self.answer()
        return self._session.stop_reason or self._session.pause_reason

    def _profile(self, request: Request) -> None:
        """Take a profile, and give it to all who ask meanwhile: two at a time would look into each other."""
        self._accept(request, f"looking into {2 * STEPS} steps")
        self._profiles.append(request)
        if len(self._profiles) > 1:
            return
        outcome = self._outcome(request)
        for each in self._profiles:
            self._settle(each, *outcome)
        self._profiles = []

    def _settle(self, request: Request, done: bool, text: str) -> None:
        self._unwritten[request.id] = done, text
        self._record(request, done, text)

    def _outcome(self, request: Request) -> tuple[bool, str]:
        """Carry out a request; returns True if it was done, and in words the result."""
        try:
            if why := control.refusal(self._session.folder, request):
                raise WorkbenchError(why)
            return True, self._carry_out(request)
        # The request's fault: it is refused, and the run goes on. Anything else ends the run.
        except WorkbenchError as error:
            return False, str(error)

    def _accept(self, request: Request, text: str) -> None:
        """Report to the sender that something longer than a step has begun."""
        # The answer follows in any case; on a full disk, once there is space.
        with contextlib.suppress(OSError):
            control.answer(self._session.folder, request.id, None, text)

    def _about(self, verb: str) -> str:
        """Return in words how long it takes, by the last time; empty before that."""
        seconds = self._took.get(verb)
        if seconds is None:
            return ""
        return f", about {max(1, round(seconds))} s" if seconds < 100 else f", about {seconds / 60:.0f} min"

    def _record(self, request: Request, done: bool, text: str) -> None:
        writer, step = self._session.writer, self._session.training.progress.step
        if request.verb == control.FORKED:
            at = request.arguments.get("step")
            writer.event(at if isinstance(at, int) else step, "fork", text, run=str(request.arguments.get("run")))
        # A check comes with every pause in somebody's typing, and changes nothing.
        elif request.verb != "check":
            sentence = f"{request.verb} by {request.by or 'somebody'}: {text if done else f'refused, {text}'}"
            data = {"request": request.id, "verb": request.verb, "by": request.by, "done": done}
            writer.event(step, "request", sentence, **data, arguments=request.arguments)

    def _carry_out(self, request: Request) -> str:
        """Do what a request asks for; returns the answer."""
        session, arguments = self._session, request.arguments
        match request.verb:
            case "stop":
                session.stop(plain(arguments.get("why") or ON_REQUEST, 200))
                return "stopping after this step, with a checkpoint"
            case "pause":
                session.pause("paused on request; it keeps its turn on this machine")
                return "pausing after this step, with a checkpoint"
            case "resume":
                if not session.unpause():
                    raise WorkbenchError("it is running: there is nothing to resume")
                return "going on"
            case "checkpoint":
                self._accept(request, f"saving a checkpoint{self._about('checkpoint')}")
                path = self.timed("checkpoint", session.save)
                if path is None:
                    raise WorkbenchError(session.pause_reason)
                return f"saved {path.name}"
            case "evaluate":
                self._accept(request, f"evaluating on held-out tokens{self._about('evaluate')}")
                return f"held-out loss {self.timed('evaluate', lambda: session.evaluate(final=False)).loss:.4f}"
            case "profile":
                return session.profile()
            case "set":
                return self._set(request)
            case "check":
                return "".join(self._turned(str(arguments.get("path")), arguments.get("value"))[1:])
            case control.FORKED:
                return control.fork_text(arguments, request.by)
        # control.pending gives known verbs only, so this would be our own mistake.
        raise AssertionError(request.verb)

    def _set(self, request: Request) -> str:
        session, path, value = self._session, str(request.arguments.get("path")), request.arguments.get("value")
        recipe, text, warnings = self._turned(path, value)
        if recipe != session.training.recipe:
            self._save_before(request)
            session.turn(path, value, recipe, text)
            # Nothing changed is no event, and no mark on the plots: the answer says it.
            session.writer.event(session.training.progress.step, "knob", text, path=path, value=value)
        self.write_knobs()
        return text + warnings

    def _save_before(self, request: Request) -> None:
        """A checkpoint before a change, unless there is one: what comes of it nobody knows, and nothing may be lost."""
        session = self._session
        if session.knob_overrides.step == session.training.progress.step or session.training.progress.step == 0:
            return
        self._accept(request, f"saving a checkpoint first{self._about('checkpoint')}")
        if self.timed("checkpoint", session.save) is None:
            raise WorkbenchError(f"not changed, since no checkpoint could be saved before: {session.pause_reason}")

    def _turned(self, path: str, value: Any) -> tuple[Recipe, str, str]:
        """Return the recipe after a knob was turned, in words what that changes, and what to be warned of."""
        training = self._session.training
        before = training.recipe
        recipe = turned(before, path, value, training.assembled.longest)
        shown = (f"{knob} {old} -> {new}" for knob, (old, new) in before.diff(recipe).items())
        warnings = "".join(f"; warning: {text}" for text in jumps(before, recipe, training.progress))
        return recipe, ", ".join(shown) or f"{path} unchanged", warnings
