"""Which ids of a tokenizer play which part, whatever the tokenizer calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.base.errors import DataError
from workbench.choices.data.tokens import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Most specific name first: a tokenizer that has [CLS] means it, <|endoftext|> stands in for everything in GPT-2's.
_START = ("[CLS]", "<s>", "<bos>", "<|startoftext|>", "<|begin_of_text|>", "<|endoftext|>")
_END = ("[SEP]", "</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>")
_MASK = ("[MASK]", "<mask>", "<|mask|>", "<mask_1>")
_PAD = ("[PAD]", "<pad>", "<|pad|>", "<|padding|>", "<|finetune_right_pad_id|>")
_UNKNOWN = ("[UNK]", "<unk>", "<|unk|>")

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""What our own tokenizers call them, in the order of their ids (0 to 4)."""


def complete(tokenizer: Tokenizer) -> list[str]:
    """Add the special tokens that documents and objectives need and the tokenizer lacks; returns them.

    A start, an end and a mask token are added when there is none; padding and unknown fall back on others, since rows
    have no padding and a byte-level vocabulary knows everything.
    """
    parts = (("[CLS]", _START), ("[SEP]", _END), ("[MASK]", _MASK))
    missing = [name for name, known in parts if _find(tokenizer, known) is None]
    if missing:
        tokenizer.add_special_tokens(missing)
    return missing


def vocabulary_of(tokenizer: Tokenizer, requested: int = 0) -> Vocabulary:
    """The vocabulary of a completed tokenizer.

    Args:
        requested: ids that the recipe asks for; the size never falls below it, so that the shape does not depend on
            how much text there was to learn a vocabulary from.

    Returns:
        sizes and special ids; ``size`` is a multiple of 64.

    Raises:
        DataError: a start, end or mask token is missing.
    """
    start, end, mask = (_find(tokenizer, names) for names in (_START, _END, _MASK))
    if start is None or end is None or mask is None:
        raise DataError(
            "the tokenizer has no start, end or mask token; legal names are "
            f"start: {', '.join(_START)}; end: {', '.join(_END)}; mask: {', '.join(_MASK)}"
        )
    # Ids may have gaps: the largest counts, not how many there are.
    used = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    pad = _find(tokenizer, _PAD)
    pad = end if pad is None else pad
    unknown = _find(tokenizer, _UNKNOWN)
    size = -(-max(used, requested) // 64) * 64
    return Vocabulary(size, used, start, end, mask, pad, pad if unknown is None else unknown)


def _find(tokenizer: Tokenizer, names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := tokenizer.token_to_id(name)) is not None), None)
