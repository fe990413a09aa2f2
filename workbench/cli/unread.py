"""Output whose reader has gone: what it is about goes on."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class Droppable:
    """A text stream that drops what is written once its reader (``| tail``, ``| head``) has gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text, or drop it."""
        with self._dropping():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what was written, or drop it."""
        with self._dropping():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # What is still in its buffer goes there as well: it would be an error again at exit.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._stream.flush()


@contextlib.contextmanager
def outliving_readers() -> Iterator[None]:
    """Make stdout and stderr :class:`Droppable` while this lasts.

    Ctrl-C goes to the reader of a pipe as well. Who trains must stop with a checkpoint all the same, and not end at its
    next line of output.
    """
    before = sys.stdout, sys.stderr
    ours: Any = [Droppable(stream) for stream in before]
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        for stream in ours:
            stream.flush()
        # SIGHUP has replaced them for good.
        if [sys.stdout, sys.stderr] == ours:
            sys.stdout, sys.stderr = before
