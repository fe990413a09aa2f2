"""A tokenizer trained on the corpus (WordPiece, byte-level BPE or Unigram)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import model_validator

from workbench.base.errors import DataError
from workbench.choices.choice import knob
from workbench.choices.data.tokenizers.alphabet import COVERED_SHARE, commonest, counted
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.unigram import WORD_START, learn_unigram
from workbench.choices.data.tokenizers.vocabulary import SPECIAL_TOKENS, frame_documents

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SMALLEST_BYTE_LEVEL = 320
_WITH_BYTES = {"bpe": "byte-level BPE", "unigram": "Unigram with bytes"}

SAMPLE_CHARACTERS_PER_ID = 1500
"""Text a vocabulary is learned from, at most, for each of its ids: more changes only its rarest entries and costs time
(12 million characters for 8,192 ids, 46 million for 30,528)."""
DOCUMENT_CHARACTERS = 1_000_000
"""Most of one document that is read: one huge file must not decide the vocabulary."""


class TrainedTokenizer(TokenizerChoice):
    """A vocabulary learned from the corpus itself and cached."""

    doing: ClassVar[str] = "learning the vocabulary"
    kind: Literal["trained"] = "trained"
    algorithm: Literal["wordpiece", "bpe", "unigram"] = knob(
        "wordpiece", "WordPiece (BERT), byte-level BPE (GPT-2, RoBERTa) or Unigram with bytes (T5, ALBERT)"
    )
    vocabulary_size: int = knob(8192, "ids, padded to a multiple of 64", unit="ids", ge=64, le=1 << 20, scale="log")
    lowercase: bool = knob(True, "lowercase and strip accents first (WordPiece only)")
    training_documents: int = knob(
        20_000, "documents to learn the vocabulary from, evenly spread", unit="documents", ge=1
    )

    @model_validator(mode="after")
    def _room_for_bytes(self) -> TrainedTokenizer:
        if self.algorithm != "wordpiece" and self.vocabulary_size < SMALLEST_BYTE_LEVEL:
            raise ValueError(
                f"vocabulary_size {self.vocabulary_size} is too small for {_WITH_BYTES[self.algorithm]}: 256 bytes "
                f"and {len(SPECIAL_TOKENS)} special tokens come first; use at least {SMALLEST_BYTE_LEVEL}, or the "
                "algorithm 'wordpiece'"
            )
        return self

    def key(self, sources: dict[str, Any]) -> dict[str, Any]:
        """Return its knobs, the corpus and the version of the library that trains it."""
        import tokenizers

        return {**self.model_dump(mode="json"), "library": tokenizers.__version__, "corpus": sources}

    def asked_size(self) -> int:
        """Return the vocabulary size asked for; a small corpus may fill less of it."""
        return self.vocabulary_size

    def make(self, documents: Iterator[str], target: Path) -> dict[str, str]:
        """Learn the vocabulary from an evenly spread sample of the documents and write ``tokenizer.json``.

        Raises:
            DataError: there is no training document.
        """
        sample = spread_sample(documents, self.training_documents, self.vocabulary_size * SAMPLE_CHARACTERS_PER_ID)
        if not sample:
            raise DataError(
                "the corpus is empty: no training document has text to learn a vocabulary from; check data.paths and "
                "data.field, if it has them, or lower data.heldout_fraction"
            )
        if self.algorithm == "unigram":
            tokenizer = learn_unigram(sample, self.vocabulary_size)
        else:
            tokenizer = _wordpiece(self, sample) if self.algorithm == "wordpiece" else _byte_level(self, sample)
        frame_documents(tokenizer)
        # Not the library's own save: its errors are bare exceptions, which a full disk could not be told by.
        target.write_text(tokenizer.to_str(), encoding="utf-8")
        return {}


def spread_sample(documents: Iterator[str], count: int, characters: int) -> list[str]:
    """Return an evenly spread sample of a stream of unknown length, in order, in bounded memory.

    Every k-th document is kept; k doubles, and every second kept document goes, whenever the sample is too large.

    Args:
        documents: the stream; each is cut to ``DOCUMENT_CHARACTERS``.
        characters: characters kept, at most (at least one document is).

    Returns:
        between ``count / 2`` and ``count`` documents when the stream is long enough and the text is short enough.
    """
    kept: list[str] = []
    step, total = 1, 0
    for index, document in enumerate(documents):
        if index % step:
            continue
        kept.append(document[:DOCUMENT_CHARACTERS])
        total += len(kept[-1])
        while len(kept) > 1 and (len(kept) > count or total > characters):
            kept, step = kept[::2], step * 2
            total = sum(map(len, kept))
    return kept


def _wordpiece(choice: TrainedTokenizer, sample: list[str]) -> Tokenizer:
    """Return pieces learned by merging, with the start of a word marked as a letter of its own.

    Not the library's WordPieceTrainer: it numbers continuations in the order of a randomly seeded hash table, breaks
    ties by those numbers, and so gives another vocabulary every time (tokenizers 0.23). Its byte-pair trainer does not.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    normalizer = normalizers.BertNormalizer(lowercase=choice.lowercase, strip_accents=choice.lowercase)
    sample = [normalizer.normalize_str(text.replace(WORD_START, " ")) for text in sample]
    # Every letter takes two ids (alone and as a continuation), so the alphabet may fill a quarter of the vocabulary.
    counts = counted(sample, lambda letter: not letter.isspace())
    alphabet = commonest(counts, min(1000, choice.vocabulary_size // 4), COVERED_SHARE)
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Metaspace(WORD_START, prepend_scheme="always")]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=choice.vocabulary_size,
        min_frequency=2,
        initial_alphabet=[WORD_START, *alphabet],
        # One more for the mark of a word's start.
        limit_alphabet=len(alphabet) + 1,
        show_progress=False,
    )
    learner.train_from_iterator(sample, trainer, length=len(sample))
    learned = sorted(learner.get_vocab().items(), key=lambda item: item[1])
    merged = (token for token, _ in learned if len(token.removeprefix(WORD_START)) > 1)
    names = [*SPECIAL_TOKENS, *alphabet, *(f"##{letter}" for letter in alphabet)]
    names += (token[1:] if token.startswith(WORD_START) else f"##{token}" for token in merged)
    # Letters as continuations were not part of what was learned: the rarest merges make room for them.
    vocabulary = {name: number for number, name in enumerate(names[: choice.vocabulary_size])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def _byte_level(choice: TrainedTokenizer, sample: list[str]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=choice.vocabulary_size,
        min_frequency=2,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample, trainer, length=len(sample))
    return tokenizer
