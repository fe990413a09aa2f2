"""What a data choice is: documents, a tokenizer, and the shape of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from workbench.choices.choice import Choice, knob, one_of
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.trained import TrainedTokenizer

Say = Callable[[str], None]
"""Called with one line about what preparation is doing."""


class Data(Choice):
    """Base of the corpora: where documents come from, how they become tokens and rows, batches of shape (B, T)."""

    axis: ClassVar[str] = "data"
    tokenizer: one_of(TokenizerChoice) = knob(  # type: ignore[valid-type]
        help="how text becomes tokens", default_factory=TrainedTokenizer
    )
    sequence_length: int = knob(128, "row length", unit="tokens", ge=8, le=65536, scale="log")
    batch_size: int = knob(32, "rows per optimizer step", unit="rows", ge=1, le=1 << 20, scale="log")
    heldout_fraction: float = knob(0.05, "share of documents held out of training", gt=0, lt=1)

    def documents(self) -> Iterator[str]:
        """Every document of the corpus in a fixed order, cleaned.

        Raises:
            DataError: missing, empty, unreadable or not UTF-8.
        """
        raise NotImplementedError

    def collect(self, say: Say) -> None:
        """Harvest or fetch what :meth:`documents` will read, where that takes long; nothing to do for local files.

        Args:
            say: told what happens, one line at a time.

        Raises:
            DataError: as for :meth:`documents`.
        """

    def sources(self) -> dict[str, Any]:
        """What the documents were made from (paths, sizes, versions, hashes): the key of the cache."""
        raise NotImplementedError

    def heldout_documents(self) -> Iterator[str] | None:
        """Documents of a held-out set of its own, or None to split ``documents`` by a fixed rule."""
        return None


CACHE_VARIABLE = "WORKBENCH_CACHE"


def cache_folder() -> Path:
    """``$WORKBENCH_CACHE``, else the user's cache directory."""
    import os

    # Read at every call: tests and notebooks move the cache while the process runs.
    root = os.environ.get(CACHE_VARIABLE)
    if root:
        return Path(root)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "workbench"
