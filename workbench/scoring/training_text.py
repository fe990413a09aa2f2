"""The training text as benchmarks need it: word frequencies, and which of their texts it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from workbench.base.errors import DataError
from workbench.base.text import many
from workbench.choices.data.prepare import prepared_counts, training_texts
from workbench.choices.data.repeats import RUN_WORDS, Repeats
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder, read_object


class Overlap(NamedTuple):
    """Texts that share 13 words in a row with the training text.

    Attributes:
        shared: of them. checked: those that are long enough. texts: all.
        why_not: reason for which nothing was checked; empty otherwise.
    """

    shared: int
    checked: int
    texts: int
    why_not: str = ""

    @property
    def share(self) -> float | None:
        """Share of the texts that could be checked; None where none could."""
        return self.shared / self.checked if self.checked else None

    @property
    def words(self) -> str:
        """Say it in a sentence."""
        if self.why_not:
            return f"overlap with the training text not checked: {self.why_not}"
        if self.share is None:
            return f"overlap with the training text: no text has {RUN_WORDS} words"
        of = f"{self.checked:,} texts" if self.checked == self.texts else f"the {many(self.checked, 'text')} that long"
        return f"{self.shared:,} of {of} ({self.share:.1%}) share {RUN_WORDS} words in a row with the training text"


class TrainingText:
    """The text that a run was trained on, if it is still there.

    Args:
        folder: of the run. recipe: of the run.

    Attributes:
        counts_V: occurrences of each id; None where the prepared text is gone from the cache.
    """

    def __init__(self, folder: RunFolder, recipe: Recipe) -> None:
        self._data = recipe.data
        data = read_object(folder.environment).get("data")
        key = data.get("key") if isinstance(data, dict) else None
        self.counts_V = prepared_counts(str(key))

    def overlaps(self, texts: Mapping[str, Sequence[str]], tell: Callable[[], None]) -> dict[str, Overlap]:
        """Look for 13 words in a row of each text in the training text, which is read once for all.

        Args:
            texts: by benchmark; those without any are left out.
            tell: called before it is read.
        """
        texts = {name: each for name, each in texts.items() if each}
        # Each benchmark's own long texts; short ones have no run.
        long = {name: [text for text in each if len(text.split()) >= RUN_WORDS] for name, each in texts.items()}
        repeats = Repeats(text for each in long.values() for text in each)
        why_not = ""
        try:
            if any(long.values()):
                tell()
                for _ in repeats.watch(training_texts(self._data)):
                    pass
        except (DataError, OSError) as error:
            why_not = str(error)
        return {
            name: Overlap(
                0 if why_not else sum(map(repeats.shares_run, long[name])), len(long[name]), len(each), why_not
            )
            for name, each in texts.items()
        }
