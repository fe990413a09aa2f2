"""No notes."""

from __future__ import annotations

from typing import Literal

from workbench.choices.architectures.notes.notes import Notes
from workbench.choices.data.tokens import Vocabulary


class NoNotes(Notes):
    """Keep no notes: a model (B, T, D) knows what its weights know.

    Source: the rule everywhere; Devlin et al. 2019 (arXiv 1810.04805).
    """

    kind: Literal["none"] = "none"

    def build(self, vocabulary: Vocabulary, length: int, width: int) -> None:
        """Return None, whatever the rows (B, T)."""
        return
