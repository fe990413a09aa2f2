"""Preparation steps: what is removed from the documents, or changed in them, before they are split."""

from workbench.choices.data.steps.c4_rules import C4Rules
from workbench.choices.data.steps.compressibility import Compressibility
from workbench.choices.data.steps.decontaminate import Decontaminate
from workbench.choices.data.steps.exact_duplicates import ExactDuplicates
from workbench.choices.data.steps.gopher_rules import GopherRules
from workbench.choices.data.steps.language import Language
from workbench.choices.data.steps.near_duplicates import NearDuplicates
from workbench.choices.data.steps.personal_data import PersonalData
from workbench.choices.data.steps.prevalence import Prevalence
from workbench.choices.data.steps.step import Document, Step, Verdict

__all__ = [
    "C4Rules", "Compressibility", "Decontaminate", "Document", "ExactDuplicates", "GopherRules", "Language",
    "NearDuplicates", "PersonalData", "Prevalence", "Step", "Verdict",
]  # fmt: skip
