"""The part that each special token of a tokenizer plays: as declared, else by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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

EMPTY: Mapping[str, str] = MappingProxyType({})

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Their names in our own tokenizers, in the order of their ids (0 to 4)."""


_ROLES = {
    "cls": (_START, ("cls", "bos")), "sep": (_END, ("sep", "eos")), "mask": (_MASK, ("mask",)), "pad": (_PAD, ("pad",)),
    "unk": (_UNKNOWN, ("unk",)),
}  # fmt: skip
"""Names to look for by part, and the fields in which transformers declares it, without their ``_token``."""


def declared_tokens(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens of a ``tokenizer_config.json`` or ``special_tokens_map.json``, by transformers' field.

    Example:
        >>> declared_tokens({"bos_token": "<b>", "pad_token": {"content": "<p>"}, "mask_token": None})
        {'bos_token': '<b>', 'pad_token': '<p>'}
    """
    fields = [f"{name}_token" for _, names in _ROLES.values() for name in names]
    given = {name: settings.get(name) for name in fields}
    texts = {name: value.get("content") if isinstance(value, Mapping) else value for name, value in given.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str) and text}


def complete(tokenizer: Tokenizer, declared: Mapping[str, str] = EMPTY) -> list[str]:
    """Add the special tokens that documents and objectives need and the tokenizer lacks; returns them.

    What is declared and not in the vocabulary is added, as transformers does. Else a start, an end and a mask token are
    added when there is none; padding and unknown fall back on others, since rows have no padding and a byte-level
    vocabulary knows everything.

    Args:
        declared: special tokens that the tokenizer names outside its vocabulary, by transformers' field.
    """
    missing = [token for token in dict.fromkeys(declared.values()) if tokenizer.token_to_id(token) is None]
    names = {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    missing += [name for part, name in names.items() if _find(tokenizer, part, declared) is None
                and not _declared(part, declared)]  # fmt: skip
    if missing:
        tokenizer.add_special_tokens(missing)
    return missing


def frame_documents(tokenizer: Tokenizer) -> None:
    """Make one of our own tokenizers usable by itself: ``encode`` gives ``[CLS] tokens [SEP]``."""
    from tokenizers import processors

    special = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )


def vocabulary_of(tokenizer: Tokenizer, requested: int = 0, declared: Mapping[str, str] = EMPTY) -> Vocabulary:
    """Return the vocabulary of a completed tokenizer.

    Args:
        requested: ids that the recipe asks for; the size never falls below it, so that the shape does not depend on
            how much text there was to learn a vocabulary from.
        declared: as for :func:`complete`; what is declared comes before what is found by its name.

    Returns:
        sizes and special ids; ``size`` is a multiple of 64.

    Raises:
        DataError: a start, end or mask token is missing.
    """
    start, end, mask, pad, unknown = (_find(tokenizer, part, declared) for part in _ROLES)
    if start is None or end is None or mask is None:
        raise DataError(
            "the tokenizer has no start, end or mask token; legal names are "
            f"start: {', '.join(_START)}; end: {', '.join(_END)}; mask: {', '.join(_MASK)}"
        )
    # Ids may have gaps: the largest counts, not how many there are.
    used = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    pad = end if pad is None else pad
    size = -(-max(used, requested) // 64) * 64
    return Vocabulary(size, used, start, end, mask, pad, pad if unknown is None else unknown)


def _declared(part: str, declared: Mapping[str, str]) -> list[str]:
    return [declared[field] for name in _ROLES[part][1] if (field := f"{name}_token") in declared]


def _find(tokenizer: Tokenizer, part: str, declared: Mapping[str, str]) -> int | None:
    names = [*_declared(part, declared), *_ROLES[part][0]]
    return next((found for name in names if (found := tokenizer.token_to_id(name)) is not None), None)
