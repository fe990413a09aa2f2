"""A tokenizer trained on the corpus (WordPiece or byte-level BPE)."""

from __future__ import annotations

from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice


class TrainedTokenizer(TokenizerChoice):
    """A vocabulary learned from the corpus itself and cached."""

    kind: Literal["trained"] = "trained"
    algorithm: Literal["wordpiece", "bpe"] = knob("wordpiece", "WordPiece (BERT) or byte-level BPE (GPT-2, RoBERTa)")
    vocabulary_size: int = knob(8192, "ids, padded to a multiple of 64", unit="ids", ge=64, le=1 << 20, scale="log")
    lowercase: bool = knob(True, "lower-case and strip accents first (WordPiece only)")
    training_documents: int = knob(20_000, "documents the vocabulary is learned from, evenly spread", unit="documents", ge=1)
