"""Run one contender of a race of speeds: a child process that trains a number of steps on request.

Protocol over stdin and stdout, one JSON object a line: the child says ``{"ready": ...}``
after its warm-up (compilation included), answers ``{"steps": n}`` with what these steps took, and ends when stdin
closes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, Self, TextIO

from workbench.recipes.recipe import Recipe
from workbench.store.state import die_with_parent

TRAINER = "workbench.bench.timed_trainer"
"""The module of our own contenders."""


class Contender:
    """A contender in a child process that lives as long as this context; after an error it ends at once.

    The child warms up from the beginning of the context; :attr:`ready` and :meth:`ask` wait for it.

    Args:
        environment: variables of the child beside those of this process.
    """

    def __init__(self, module: str, setting: dict[str, Any], environment: Mapping[str, str] | None = None) -> None:
        self.name = str(setting["name"])
        self._environment = {**os.environ, **(environment or {})}
        self._command = [sys.executable, "-m", module, json.dumps(setting)]
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._log = self._stack.enter_context(tempfile.TemporaryFile("w+"))
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, stderr=self._log, text=True, env=self._environment
        )
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        # A round that is under way when another contender dies need not be waited for.
        if error is not None:
            self._child.kill()
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()
        self._child.wait(timeout=60)
        self._stack.close()

    @functools.cached_property
    def ready(self) -> dict[str, Any]:
        """Return the first message of the child, said after its warm-up.

        Raises:
            RuntimeError: as of :meth:`ask`.
        """
        said: dict[str, Any] = self._read()["ready"]
        return said

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a JSON-able message and wait for the answer.

        Raises:
            RuntimeError: the child has ended; its last words are quoted.
        """
        assert self.ready is not None
        assert self._child.stdin is not None
        # A child that died between two messages: what it said before is worth more than "broken pipe".
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(json.dumps(message) + "\n")
            self._child.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            code = self._child.wait()
            self._log.seek(0)
            tail = "\n".join(self._log.read().splitlines()[-15:])
            raise RuntimeError(f"contender '{self.name}' ended with exit code {code}; its last words:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def note(text: str) -> None:
    """Print the progress of a benchmark on stderr, since stdout holds its results."""
    print(text, file=sys.stderr, flush=True)


class Stage:
    """The child's side of the protocol.

    Takes stdout for itself, so that a library that prints cannot break the protocol.
    """

    def __init__(self) -> None:
        self._out: TextIO = sys.stdout
        sys.stdout = sys.stderr

    def say(self, answer: dict[str, Any]) -> None:
        """Send one line to the parent."""
        print(json.dumps(answer), file=self._out, flush=True)

    def next(self) -> dict[str, Any] | None:
        """Return the next message of the parent; None when it is done."""
        line = sys.stdin.readline()
        message: dict[str, Any] | None = json.loads(line) if line else None
        return message

    def serve(self, ready: dict[str, Any], answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Say that the child is ready, then answer every message of the parent until it is done."""
        self.say({"ready": ready})
        while (message := self.next()) is not None:
            self.say(answer(message))


def begin() -> tuple[Stage, dict[str, Any], Recipe]:
    """Start the child: return its stage, its setting and the recipe of that setting, with its engine started."""
    # A killed parent must not leave its child training.
    die_with_parent()
    stage, setting = Stage(), json.loads(sys.argv[1])
    recipe = Recipe(**setting["recipe"])
    recipe.engine().start()
    return stage, setting, recipe
