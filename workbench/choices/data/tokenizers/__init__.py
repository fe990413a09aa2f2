"""Tokenizers: trained on the corpus, or given by name or path."""

from workbench.choices.data.tokenizers.pretrained import PretrainedTokenizer
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.trained import TrainedTokenizer

__all__ = ["PretrainedTokenizer", "TokenizerChoice", "TrainedTokenizer"]
