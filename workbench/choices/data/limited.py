"""A fixed sample of the training text, for runs that read little text many times."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from workbench.base.errors import DataError
from workbench.choices.data.order import shuffled
from workbench.choices.data.tokens import PreparedData, TokenStore

# Shape legend: D documents.

_SEED, _STREAM = 0, 7


def limited(prepared: PreparedData, tokens: int) -> PreparedData:
    """Return prepared text whose training split is a sample of whole documents of at most so many tokens.

    The sample is the same for every recipe on this text, and a smaller one is part of a larger. Tokenizer and held-out
    split stay those of the whole text. The sample is held in memory.

    Raises:
        DataError: no document is that short, or the text is a mixture.
    """
    if prepared.parts:
        raise DataError("data.tokens_limit: a mixture has no sample; limit the epochs of its parts, or use one corpus")
    store = prepared.train
    if store.tokens <= tokens:
        return prepared
    order_D = shuffled(_SEED, 0, _STREAM, store.documents)
    # The first that does not fit ends the sample: to go on would prefer short documents.
    count = int(np.searchsorted(np.cumsum(np.diff(store.offsets_D1)[order_D]), tokens, side="right"))
    if count == 0:
        first = int(np.diff(store.offsets_D1)[order_D[0]])
        raise DataError(f"data.tokens_limit: {tokens:,} tokens hold no document; the first has {first:,}: raise it")
    chosen_D = np.sort(order_D[:count])
    pieces = [np.asarray(store.ids_N[slice(*store.offsets_D1[each : each + 2])]) for each in chosen_D]
    offsets_D1 = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]).astype(np.int64)
    train = TokenStore(np.concatenate(pieces), offsets_D1)
    found = {"documents": count, "tokens": train.tokens, "sha256": hashlib.sha256(train.ids_N.tobytes()).hexdigest()}
    return replace(
        prepared,
        train=train,
        counts_V=np.bincount(train.ids_N, minlength=len(prepared.counts_V)),
        fingerprint=prepared.fingerprint | {"tokens_limit": tokens, "train": found},
    )
