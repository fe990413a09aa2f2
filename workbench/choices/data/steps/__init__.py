"""Preparation steps: what is removed from the documents, or changed in them, before they are split."""

from workbench.choices.data.steps.exact_duplicates import ExactDuplicates
from workbench.choices.data.steps.near_duplicates import NearDuplicates
from workbench.choices.data.steps.step import Document, Step, Verdict

__all__ = ["Document", "ExactDuplicates", "NearDuplicates", "Step", "Verdict"]
