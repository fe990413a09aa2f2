"""Errors a user can act on: they name the value, the legal ones, the nearest, and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

_USUAL_NAMES = {
    "mslt": "multi_stage",
    "pld": "progressive_drop",
    "mlm": "masked",
    "clm": "causal",
    "wsd": "warmup_stable_decay",
    "noam": "inverse_sqrt",
    "constant": "linear",
}
"""Names in papers for names here, to which no spelling would lead."""
_EXPLAINED = {"constant": "A constant is linear, from start 1 to end 1"}


FREE_SPACE = "free space there, or make it writable, and resume the run"
"""Ends whatever is said of a full or read-only disk, by which a run that waits is told from one that was paused."""


# A ValueError, so that callers who know nothing of this package still catch bad input the usual way.
class WorkbenchError(ValueError):
    """Base of every error that is the request's fault, not the program's (CLI exit code 2)."""


class RecipeError(WorkbenchError):
    """A recipe, or a change to one, that cannot be trained."""


class DataError(WorkbenchError):
    """Text, tokenizer or cache that cannot be used: missing, empty, not UTF-8, damaged."""


class RunError(WorkbenchError):
    """A run that does not exist, or cannot carry out a request in its present state."""


class ProcessEnded(RunError):
    """One of the processes that train a run together has ended, so none of them can go on."""

    def __init__(self) -> None:
        super().__init__(
            "another process of this run has ended, and its output says why; resume the run from its last checkpoint"
        )


class LessonError(WorkbenchError):
    """A prediction or answer of a lesson that is missing, of the wrong kind or out of range, or not this learner's."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback: a learner has made no mistake in the code."""
        return [str(self)]


class EngineError(WorkbenchError):
    """An engine whose environment is missing, half there or of other versions, or cannot be built."""


class RunFailed(RuntimeError):
    """A valid run that failed (CLI exit code 1)."""


class TargetMissed(RuntimeError):
    """A run that finished with a loss above the target it was given (CLI exit code 3)."""


def unknown(what: str, value: object, legal: Iterable[str], hint: str = "", noun: str = "value") -> str:
    """Return one line for a name that is not among the legal ones, with the nearest of them.

    Args:
        what: where the name stood, for example ``optimizer.kind``; empty when the caller says so itself.
        hint: what to do instead, appended as a sentence.
        noun: what the name is one of: ``knob`` where no such knob exists, whatever its value.

    Example:
        >>> unknown("optimizer.kind", "lanz", ["adamw", "lans"])
        "optimizer.kind: unknown value 'lanz'; did you mean 'lans'? legal: adamw, lans"
    """
    names = sorted(legal)
    # At 0.5 a missing or swapped letter is found and an unrelated word is not: a wrong guess is worse than none.
    near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    usual = str(value).lower()
    if (ours := _USUAL_NAMES.get(usual)) in names:
        near, hint = [ours], hint or _EXPLAINED.get(usual, "")
    guess = f"; did you mean '{near[0]}'?" if near else ";"
    tail = f". {hint}" if hint else ""
    where = f"{what}: " if what else ""
    return f"{where}unknown {noun} '{value}'{guess} legal: {', '.join(names) or '(none)'}{tail}"


def check_known(
    what: str, value: object, legal: Collection[str], error: type[ValueError] = WorkbenchError, hint: str = ""
) -> None:
    """Refuse a name that is not among the legal ones, in the words of :func:`unknown`.

    Raises:
        ValueError: an ``error``.
    """
    if value not in legal:
        raise error(unknown(what, value, legal, hint))


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says; the name of its type where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def typed_line(error: BaseException) -> str:
    """Return :func:`first_line` behind the name of the error's type, as of one that is not ours."""
    name = type(error).__name__
    return name if (line := first_line(error)) == name else f"{name}: {line[:200]}"
