"""Data: corpora, tokenizers, packing, order."""

from workbench.choices.data.data import Data
from workbench.choices.data.embedded import Embedded
from workbench.choices.data.examples import Examples
from workbench.choices.data.files import Files
from workbench.choices.data.hugging_face import HuggingFace
from workbench.choices.data.mixture import Mixture, Part
from workbench.choices.data.preparation import Preparation, preparation_of
from workbench.choices.data.token_file import TokenFile
from workbench.choices.data.tuning_text import TuningText

__all__ = [
    "Data",
    "Embedded",
    "Examples",
    "Files",
    "HuggingFace",
    "Mixture",
    "Part",
    "Preparation",
    "TokenFile",
    "TuningText",
    "preparation_of",
]
