"""Notes that a model keeps of the text beside its weights."""

from workbench.choices.architectures.notes.none import NoNotes
from workbench.choices.architectures.notes.notes import Notebook, Notes
from workbench.choices.architectures.notes.rare_words import RareWords

__all__ = ["NoNotes", "Notebook", "Notes", "RareWords"]
