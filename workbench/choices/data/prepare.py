"""From documents to token stores: split, tokenizer, encoding, cache."""

from __future__ import annotations

import collections
import contextlib
import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.cache_folder import cache_folder
from workbench.base.errors import DataError
from workbench.base.text import many
from workbench.choices.data.cache import MANIFEST, cache_entry, key_of, read_manifest
from workbench.choices.data.data import Data, Say
from workbench.choices.data.encoding import write_documents
from workbench.choices.data.limited import limited
from workbench.choices.data.pace import Pace
from workbench.choices.data.pieces import Pieces
from workbench.choices.data.repeats import RUN_WORDS, Repeats
from workbench.choices.data.sides import Origins, Shared, Texts
from workbench.choices.data.split import RULE
from workbench.choices.data.store import SPLITS, StoreWriter, open_store
from workbench.choices.data.token_build import build_from_tokens
from workbench.choices.data.token_file import TokenFile
from workbench.choices.data.tokenizers.report import in_words, tokenizer_report
from workbench.choices.data.tokenizers.vocabulary import complete, vocabulary_of
from workbench.choices.data.tokens import PreparedData, StorePart, TokenStore, Vocabulary
from workbench.ops.remembered import FOLDER, recalled, remember
from workbench.telemetry.streams import number

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FORMAT_VERSION = 4
"""Part of the cache key: raise it whenever the same text would give other tokens."""
FEWEST_HELDOUT_TOKENS = 64
"""A score of fewer tokens says nothing."""
TOKENIZER_FILE = "tokenizer.json"
COUNTS_FILE = "train.counts.npy"
_SHAPE = {"sequence_length", "length_step", "batch_size", "batch_rule", "order", "tokens_limit"}
NAME = "preparation"
"""Name of the file in which its time is remembered."""
_PREPARED: set[str] = set()
_TOKENS: dict[str, int] = {}
_ABSENT: dict[str, int] = {}
"""Text that was not prepared, and when the cache had last changed then."""


def prepare(data: Data, say: Say = print) -> PreparedData:
    """Return both splits of a corpus as memory-mapped tokens; made once, then read from the cache.

    Documents become ``[CLS] tokens [SEP]``. The text is streamed: memory does not grow with the corpus.

    Raises:
        DataError: the corpus cannot be read, is empty, or is too small for one batch or to be scored on; the
            cache cannot be written.

    Example:
        >>> from workbench.choices.data import Files
        >>> prepared = prepare(Files(paths=("docs",)))  # doctest: +SKIP
        >>> prepared.train.tokens  # doctest: +SKIP
        1048576
    """
    for notice in data.notices():
        say(notice.message)
    made_from = _made_from(data)
    key = key_of(made_from)

    built = False

    def build(aside: Path) -> dict[str, Any]:
        nonlocal built
        built, began = True, time.monotonic()
        content = _build(data, aside, say)
        seconds = round(time.monotonic() - began, 1)
        remember(cache_folder() / FOLDER, NAME, _subject(data), {"seconds": seconds}, 0.0)
        return content

    folder, manifest = cache_entry("tokens", key, build, say)
    stores = {split: open_store(folder, split, manifest["dtype"], **manifest[split]) for split in SPLITS}
    # After the cache: the same tokens may be too few for this batch and enough for the next recipe's.
    _check_size(data, stores["train"], stores["heldout"], manifest["heldout_overlap_before"])
    parts = _parts(data, stores, manifest)
    files = manifest["files"]
    fingerprint = {
        "key": key,
        **made_from,
        "added_special_tokens": manifest["added"],
        "vocabulary": manifest["vocabulary"],
        "heldout_split": manifest["split"],
        "heldout_overlap": manifest["heldout_overlap"],
        "heldout_overlap_before": manifest["heldout_overlap_before"],
        **({"text": manifest["text"]} if "text" in manifest else {}),
        **({"preparation": manifest["preparation"]} if data.steps else {}),
        **({"parts": {name: _sizes(part, stores) for name, part in parts.items()}} if parts else {}),
        "tokenizer_sha256": files[TOKENIZER_FILE]["sha256"],
        **{split: {**manifest[split], "sha256": files[f"{split}.ids.bin"]["sha256"]} for split in SPLITS},
    }
    vocabulary = Vocabulary(**manifest["vocabulary"], pieces=Pieces.of(folder / TOKENIZER_FILE))
    prepared = PreparedData(
        train=stores["train"],
        heldout=stores["heldout"],
        vocabulary=vocabulary,
        tokenizer_file=str(folder / TOKENIZER_FILE),
        counts_V=np.load(folder / COUNTS_FILE),
        fingerprint=fingerprint,
        parts=parts,
    )
    if data.tokens_limit:
        prepared = limited(prepared, data.tokens_limit)
        _check_size(data, prepared.train, prepared.heldout, manifest["heldout_overlap_before"])
    if built:
        say(in_words(tokenizer_report(prepared)))
    return prepared


def prepared_counts(key: str) -> np.ndarray | None:
    """Return the occurrences of each id in a prepared training split, int64; None where the cache has it no more.

    Args:
        key: of the split's fingerprint, as a run keeps it.
    """
    try:
        counts_V: np.ndarray = np.load(cache_folder() / "tokens" / key / COUNTS_FILE)
    except (OSError, ValueError):
        return None
    return counts_V


def training_texts(data: Data) -> Iterator[str]:
    """Return the training documents as :func:`prepare` reads them.

    Raises:
        DataError: the corpus cannot be read.
    """
    data.collect(lambda line: None)
    return Texts(data, lambda line: None).all(heldout=False)


def is_prepared(data: Data) -> bool:
    """Return whether :func:`prepare` would find its tokens in the cache, or fail; no text is read."""
    # A corpus of many packages takes a tenth of a second to name: once prepared, always prepared, and what is not stays
    # so until something comes into the cache.
    entries = cache_folder() / "tokens"
    asked = f"{entries} {data.model_dump_json(exclude=_SHAPE)}"
    if asked in _PREPARED:
        return True
    changed = entries.stat().st_mtime_ns if entries.is_dir() else 0
    if _ABSENT.get(asked) == changed:
        return False
    try:
        key = key_of(_made_from(data))
    except DataError:
        return True
    if (entries / key / MANIFEST).is_file():
        _PREPARED.add(asked)
        return True
    _ABSENT[asked] = changed
    return False


def training_tokens(data: Data) -> int | None:
    """Return about how many tokens the training text has: as prepared, at most ``tokens_limit``; None where unknown.

    Nobody knows for a stream, and of a mixture each part is read another number of times. No text is read.
    """
    if getattr(data, "stream", 0) or len(data.corpora()) > 1:
        return None
    limit = data.tokens_limit or None
    asked = f"{cache_folder() / 'tokens'} {data.model_dump_json(exclude=_SHAPE)}"
    if asked not in _TOKENS and is_prepared(data):
        with contextlib.suppress(DataError):
            if manifest := read_manifest(cache_folder() / "tokens" / key_of(_made_from(data))):
                _TOKENS[asked] = int(manifest["train"]["tokens"])
    return min(filter(None, (limit, _TOKENS.get(asked))), default=None)


def tokenizer_at_hand(data: Data) -> tuple[str, Vocabulary] | None:
    """Return the ``tokenizer.json`` and the vocabulary (V,) of data that were prepared; None where they were not.

    Raises:
        DataError: what is in the cache is damaged.
    """
    if not is_prepared(data):
        return None
    folder = cache_folder() / "tokens" / key_of(_made_from(data))
    manifest, file = read_manifest(folder), folder / TOKENIZER_FILE
    if manifest is None:
        return None
    return str(file), Vocabulary(**manifest["vocabulary"], pieces=Pieces.of(file))


def usual_seconds(data: Data) -> float | None:
    """Return seconds that :func:`prepare` took here for such text the last time; None where it never did."""
    record = recalled(cache_folder() / FOLDER, NAME, _subject(data))
    seconds = number(record.value.get("seconds")) if record else math.nan
    return seconds if math.isfinite(seconds) else None


def _subject(data: Data) -> dict[str, Any]:
    """Return what decides how long it takes: which text, and what learns its vocabulary."""
    return data.model_dump(mode="json", exclude={*_SHAPE, "heldout_fraction"})


def _made_from(data: Data) -> dict[str, Any]:
    """Return everything that decides the tokens; not the shape of a batch, which is cut from them afterwards."""
    sources = data.sources()
    tokenizer = data.tokenizer.key(sources)
    # A trained tokenizer names the corpus in its key; once is enough for a reader of the fingerprint.
    tokenizer = {k: ("the sources" if v is sources else v) for k, v in tokenizer.items()}
    split = {"rule": RULE, "heldout_fraction": data.heldout_fraction}
    kind = data.model_dump(include={"kind"})
    # Only where there are any: text that was prepared before there were steps stays prepared.
    steps = {"steps": [step.key() for step in data.steps]} if data.steps else {}
    return {"format": FORMAT_VERSION, "sources": {**kind, **sources}, "tokenizer": tokenizer, "split": split, **steps}


def _build(data: Data, folder: Path, say: Say) -> dict[str, Any]:
    """Fill a cache entry; returns the content of its manifest."""
    if isinstance(data, TokenFile):
        tokenizer, vocabulary, added = _tokenizer(data, iter(()), folder, say)
        counts_V, content = build_from_tokens(data, folder, tokenizer, vocabulary, added, say)
        np.save(folder / COUNTS_FILE, counts_V)
        return {"vocabulary": vocabulary.ids(), "added": added, **content}
    data.collect(say)
    say("reading the text and splitting it, once")
    texts = Texts(data, say)
    repeats = Repeats(texts.all(heldout=True))
    # Training documents only: a vocabulary that had seen the held-out text would flatter the held-out loss.
    reading = Pace(say, data.tokenizer.doing)
    training = reading.watch(repeats.watch(texts.all(heldout=False)))
    tokenizer, vocabulary, added = _tokenizer(data, training, folder, say)
    say("turning the text into tokens, once")
    pace = Pace(say, "turning the text into tokens", reading.seen)
    with ExitStack() as stack:
        train, heldout = (stack.enter_context(StoreWriter(folder, split, vocabulary.size)) for split in SPLITS)
        ends, shared, origins = [], Shared(), Origins()
        for name in texts.sides:
            own = pace.watch(shared.watch(name, origins.watch(texts.sourced(name, heldout=False))))
            write_documents(tokenizer, vocabulary, own, train, with_bytes=False)
            foreign = (repeats.without(text) for text in texts.of(name, heldout=True))
            write_documents(tokenizer, vocabulary, (text for text in foreign if text), heldout, with_bytes=True)
            ends.append([train.documents, heldout.documents])
    np.save(folder / COUNTS_FILE, train.counts_V)
    origins.write(folder, train.documents)
    texts.write(folder)
    for line in shared.told():
        say(line)
    if texts.heldout_in_training:
        say(f"{many(texts.heldout_in_training, 'document')} of the training text stand in the held-out text, too, and "
            "were left out of training")  # fmt: skip
    if data.steps:
        texts.documents.write(folder)
    say(
        f"{train.tokens:,} training tokens in {train.documents:,} documents, {heldout.tokens:,} held-out tokens in "
        f"{heldout.documents:,}; before its repeats were removed, {repeats.share:.2%} of the held-out text's runs of "
        f"{RUN_WORDS} words stood in the training text, now {repeats.overlap:.2%}"
    )
    if repeats.shortened:
        say(f"parts of {many(repeats.shortened, 'held-out document')} that repeat training text nearly word for word "
            "were left out of the held-out text")  # fmt: skip
    return {
        "dtype": train.dtype.str,
        "vocabulary": vocabulary.ids(),
        "added": added,
        **texts.described(ends),
        "heldout_overlap": repeats.overlap,
        "heldout_overlap_before": repeats.share,
        "text": {s: {"bytes": w.text_bytes, "words": w.words} for s, w in zip(SPLITS, (train, heldout), strict=True)},
        **({"preparation": texts.documents.described()} if data.steps else {}),
        **{s: {"documents": w.documents, "tokens": w.tokens} for s, w in zip(SPLITS, (train, heldout), strict=True)},
    }


def _tokenizer(
    data: Data, training: Iterator[str], folder: Path, say: Say
) -> tuple[Tokenizer, Vocabulary, list[str]]:  # fmt: skip
    """Write a cache entry's tokenizer; returns it, its vocabulary (V,) and the special tokens that were added."""
    from tokenizers import Tokenizer

    say(f"{data.tokenizer.doing}, once")
    target = folder / TOKENIZER_FILE
    declared = data.tokenizer.make(training, target)
    # Tokenizers need not read all of it, or any; what the held-out text repeats must be known to the end.
    collections.deque(training, maxlen=0)
    tokenizer = Tokenizer.from_file(str(target))
    added = complete(tokenizer, declared)
    if added:
        say(f"the tokenizer has no {', '.join(added)}: added, with new ids")
        target.write_text(tokenizer.to_str(), encoding="utf-8")
    vocabulary = vocabulary_of(tokenizer, data.tokenizer.asked_size(), declared)
    # Text that happens to contain "[MASK]" is text, not a mask.
    tokenizer.encode_special_tokens = True
    return tokenizer, vocabulary, added


def _parts(data: Data, stores: dict[str, TokenStore], manifest: dict[str, Any]) -> dict[str, StorePart]:
    """Return where each part of a mixture lies in the stores; refuse one that fills no row."""
    ends = [[0, 0], *manifest.get("parts", [])]
    names = [name for name in data.corpora() if name]
    parts = {name: StorePart(*(range(*pair) for pair in zip(*bounds, strict=True)))
             for name, bounds in zip(names, pairwise(ends), strict=True)}  # fmt: skip
    for name, part in parts.items():
        if (tokens := stores["train"].part(part.train).tokens) < data.longest:
            what = "holds no text" if not tokens else f"holds {tokens:,} training tokens"
            raise DataError(
                f"data.parts: part '{name}' {what}, and one row needs {data.longest:,}; give it more text, leave it "
                "out, or set a shorter data.sequence_length"
            )
    return parts


def _sizes(part: StorePart, stores: dict[str, TokenStore]) -> dict[str, dict[str, int]]:
    """Return documents and tokens of a part in both splits, for a fingerprint."""
    return {split: {"documents": len(documents), "tokens": stores[split].part(documents).tokens}
            for split, documents in part._asdict().items()}  # fmt: skip


def _check_size(data: Data, train: TokenStore, heldout: TokenStore, repeated: float) -> None:
    """Refuse a corpus that cannot fill one batch, or be scored on.

    Args:
        repeated: share of the held-out text that stood in the training text, and was left out.
    """
    if train.tokens + heldout.tokens == 0:
        raise DataError(
            "the corpus is empty: no document has any text; check data.paths and data.field, if it has them"
        )
    length, rows = data.longest, data.most_rows
    needed = length * rows
    if train.tokens < needed:
        raise DataError(
            f"the corpus is too small: {train.tokens:,} training tokens in {many(train.documents, 'document')}, but "
            f"one batch needs {needed:,} ({rows} rows of {length} tokens); use more text, a "
            "smaller data.batch_size or a shorter data.sequence_length"
        )
    if heldout.tokens < FEWEST_HELDOUT_TOKENS:
        characters = getattr(data, "document_characters", 0)
        shorter = f", lower data.document_characters (now {characters})" if characters else ""
        why = (f", without the paragraphs that repeat training text ({repeated:.0%} of its runs of {RUN_WORDS} words)"
               if repeated else "")  # fmt: skip
        raise DataError(
            f"the held-out split is too small: {heldout.tokens:,} tokens in {many(heldout.documents, 'document')}"
            f"{why}; a score needs at least {FEWEST_HELDOUT_TOKENS}; raise data.heldout_fraction (now "
            f"{data.heldout_fraction:g}){shorter} or use more text"
        )
