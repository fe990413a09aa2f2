"""Tokenizers: trained on the corpus, its bytes or characters, or given by name or path."""

from workbench.choices.data.tokenizers.bytes import ByteTokenizer
from workbench.choices.data.tokenizers.characters import CharacterTokenizer
from workbench.choices.data.tokenizers.pretrained import PretrainedTokenizer
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.trained import TrainedTokenizer

__all__ = ["ByteTokenizer", "CharacterTokenizer", "PretrainedTokenizer", "TokenizerChoice", "TrainedTokenizer"]
