"""A tokenizer by name or path."""

from __future__ import annotations

from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice


class PretrainedTokenizer(TokenizerChoice):
    """A tokenizer by Hugging Face name, or from a local folder or tokenizer.json."""

    kind: Literal["pretrained"] = "pretrained"
    name: str = knob(..., "Hugging Face name, folder with a tokenizer.json, or the file itself", min_length=1)
