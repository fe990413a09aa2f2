"""Progress of a reading of the text, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from workbench.base.text import duration_words
from workbench.choices.data.data import Say

SAY_SECONDS = 10.0


class Pace:
    """Says every ten seconds how much of the text has been read.

    Args:
        doing: the work in words.
        characters: of the text, where an earlier reading counted them; then it says how long the rest will take.

    Attributes:
        seen: characters of the documents that were handed on.
    """

    def __init__(self, say: Say, doing: str, characters: int = 0) -> None:
        self._say, self._doing, self._characters = say, doing, characters
        self._began = self._due = time.monotonic()
        self.seen = 0

    def watch(self, texts: Iterable[str]) -> Iterator[str]:
        """Hand the documents on, in order."""
        for number, text in enumerate(texts):
            # The clock costs more than a short document.
            if number % 16 == 0 and (now := time.monotonic()) >= self._due + SAY_SECONDS and self.seen:
                self._due = now
                self._say(f"{self._doing}: {self.told(now - self._began)}")
            yield text
            self.seen += len(text)

    def told(self, seconds: float) -> str:
        """Return how far it is after some seconds.

        Example:
            >>> pace = Pace(print, "reading", characters=4_000_000)
            >>> pace.seen = 1_000_000
            >>> pace.told(20.0)
            '1 of 4 million characters, about 1 min left'
        """
        if self.seen >= self._characters:
            return f"{self.seen / 1e6:,.0f} million characters"
        left = seconds / self.seen * (self._characters - self.seen)
        whole = f"{self.seen / 1e6:,.0f} of {self._characters / 1e6:,.0f} million characters"
        return f"{whole}, about {duration_words(left)} left"
