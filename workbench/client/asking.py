"""``wb.fill`` and ``wb.generate``: a model is tried in a process beside the kernel, which stays and loads it once."""

from __future__ import annotations

import atexit
import json
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.launchers.processes import child_environment, module_command

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

ASK = "workbench.scoring.ask"
"""Module that is started by name: it needs torch, and stands below."""
Say = Callable[[str], None]


def _quiet(_line: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Filled:
    """The likeliest words at a [MASK].

    Attributes:
        run: id. step: of the checkpoint. text: with its [MASK].
        words: each with its probability, the likeliest first.
    """

    run: str
    step: int
    text: str
    words: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        words = "\n".join(f"{chance:6.1%}  {word}" for word, chance in self.words)
        return f"{self.text}   (step {self.step:,})\n{words}"

    __repr__ = __str__


@dataclass(frozen=True)
class Generated:
    """A prompt and its continuation.

    Attributes:
        run: id. step: of the checkpoint. prompt: as it was given. text: that follows it. tokens: of the continuation.
        steps: of a text that was unmasked, how it looked after each token.
    """

    run: str
    step: int
    prompt: str
    text: str
    tokens: int
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.prompt}{self.text}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f"{self.tokens} tokens, step {self.step:,}"
        return f"<p title='{title}'>{escape(self.prompt)}<strong>{escape(self.text)}</strong></p>"


def fill(
    run: Run | str | Path, text: str, *, step: int | None = None, top: int = 5, runs_dir: str | Path | None = None
) -> Filled:
    """Return the likeliest words at the [MASK] of a text, at any checkpoint, also while the run trains.

    Args:
        run: a run, its id, name or folder.
        text: with one ``[MASK]``.
        step: of the checkpoint; None for the newest.
        top: number of words.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: no such run or checkpoint, no or several ``[MASK]``, or a text longer than the model's row.

    Example:
        >>> wb.fill(run, "The [MASK] sat.")  # doctest: +SKIP
    """
    found = ask(run, "fill", runs_dir, text=text, step=step, top=top)
    return Filled(found["run"], found["step"], text, tuple((word, chance) for word, chance in found["words"]))


def generate(
    run: Run | str | Path,
    prompt: str,
    tokens: int = 40,
    *,
    temperature: float = 0.8,
    top_k: int = 40,
    seed: int = 0,
    step: int | None = None,
    runs_dir: str | Path | None = None,
) -> Generated:
    """Continue a prompt, at any checkpoint, also while the run trains.

    Args:
        run: a run, its id, name or folder.
        prompt: the beginning.
        tokens: at most so many.
        temperature: 0 takes the likeliest token; 1 draws as the model says.
        top_k: draw among so many; 0 for all.
        seed: of the draws: the same gives the same text.
        step: of the checkpoint; None for the newest.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: no such run or checkpoint, a prompt longer than the model's row, or an objective that continues none.

    Example:
        >>> wb.generate(run, "Once upon a time", temperature=0.7)  # doctest: +SKIP
    """
    knobs: dict[str, Any] = {"tokens": tokens, "temperature": temperature, "top_k": top_k, "seed": seed, "step": step}
    found = ask(run, "generate", runs_dir, prompt=prompt, **knobs)
    return Generated(found["run"], found["step"], prompt, found["text"], found["tokens"], tuple(found["steps"]))


def ask(
    run: Run | Recipe | str | Path, what: str, runs_dir: str | Path | None = None, say: Say = _quiet, **arguments: Any
) -> dict[str, Any]:
    """Ask the process beside this one, from any thread; it is started at the first question.

    Args:
        run: a run, its id, name or folder; for rows, find and facts a recipe as well, whose text ``prepare`` prepares.
        say: called with a line now and then while text is prepared.
        what: ``fill`` or ``generate``, or ``rows``, ``find`` or ``facts`` about the run's text. arguments: of the
            function in :mod:`workbench.scoring.ask`.

    Raises:
        RunError: it answers with an error.
    """
    if isinstance(run, (Run, str, Path)):
        about = {"folder": str((run if isinstance(run, Run) else Run(run, runs_dir)).folder.path)}
    else:
        about = {"recipe": run.to_json()}
    found = _BESIDE.answer({"ask": what, **about, "arguments": arguments}, say)
    if "error" in found:
        raise RunError(str(found["error"]))
    return found


class _Beside:
    """One process that answers, for the whole life of this one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._one_at_a_time = threading.Lock()

    def answer(self, question: dict[str, Any], say: Say) -> dict[str, Any]:
        with self._one_at_a_time:
            try:
                process = self._running()
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                while line.startswith('{"said"'):
                    say(json.loads(line)["said"])
                    line = process.stdout.readline()
            except BrokenPipeError:
                line = ""
            except BaseException:
                # Interrupted: its answer would be taken for that of the next question.
                self.end()
                raise
            if line:
                answer: dict[str, Any] = json.loads(line)
                return answer
            self.end()
            return {"error": "the process that answers has ended, perhaps for lack of memory; ask again"}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            # A session of its own: Ctrl-C in a terminal is not meant for it. It ends when its stdin does.
            self._process = subprocess.Popen(
                module_command(ASK), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True, encoding="utf-8", env=child_environment(), start_new_session=True,
            )  # fmt: skip
        return self._process

    def end(self) -> None:
        """End the process; the next question starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


_BESIDE = _Beside()
atexit.register(_BESIDE.end)
