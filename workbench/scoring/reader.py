"""A model that reads text: how likely it finds a continuation, and what it would put in a place.

Causal models give log p(token | those before it). The others give pseudo-log-likelihoods: each token is hidden behind
[MASK] in turn and read from both sides. Everything goes through :meth:`TrainingModel.token_logits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Labelled
from workbench.training.assemble import TrainedModel

# Shape legend: P pairs of context and continuation, G pairs of one length, T tokens of a row, R rows, K slots of a row,
# N = R * K, V vocabulary rows.

_TOKENS = 2048
"""The size of a batch: enough to fill a core, little enough for its caches."""
_LOGITS = 1 << 24
"""The most of a batch, in float32: 64 MiB."""

Ids = tuple[int, ...]
Pair = tuple[Ids, Ids]
"""Context and continuation."""


class Likelihoods(NamedTuple):
    """Hold what a model says about continuations.

    Attributes:
        nats_P: float64 log-likelihood, summed over the tokens of each continuation.
        likeliest_P: True where every token of it is the model's first choice.
        tokens_P: how many were read.
        cut_P: True where context and continuation are longer than the model's row: they lost their beginning.
    """

    nats_P: np.ndarray
    likeliest_P: np.ndarray
    tokens_P: np.ndarray
    cut_P: np.ndarray


class Reader:
    """A run's model, read without gradient, dropout or dropped layers, in the precision in which the run evaluates.

    Args:
        trained: model, vocabulary and engine; put into evaluation mode.
        tokenizer: of the run.
        finished: layers of the finished model.
    """

    def __init__(self, trained: TrainedModel, tokenizer: Tokenizer, finished: int) -> None:
        self.model, self.vocabulary, self.longest = trained.model.eval(), trained.vocabulary, trained.longest
        self.causal, self._engine = trained.model.choice.causal, trained.engine
        self._plan = LayerPlan.full(trained.layers, finished)
        self.tokenizer = tokenizer
        # Text that happens to contain "[MASK]" is text, not a mask, as in training.
        tokenizer.encode_special_tokens = True

    @property
    def how(self) -> str:
        """Name the likelihood, in words."""
        return "log-likelihood" if self.causal else "pseudo-log-likelihood, one position hidden at a time"

    def ids(self, text: str) -> Ids:
        """Return the tokens of a text, without a frame."""
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def pairs(self, texts: Sequence[tuple[str, str]]) -> list[Pair]:
        """Return contexts and continuations as tokens, cut where the context ends, as lm-evaluation-harness cuts.

        Args:
            texts: context (may be empty) and continuation, which brings its space along.
        """
        encode = self.tokenizer.encode_batch_fast
        whole = encode([context + text for context, text in texts], add_special_tokens=False)
        contexts = encode([context for context, _ in texts], add_special_tokens=False)
        split = ((tuple(both.ids), len(context.ids)) for both, context in zip(whole, contexts, strict=True))
        return [(ids[:length], ids[length:]) for ids, length in split]

    def likelihoods(
        self, pairs: Sequence[Pair], *, at_once: bool = False, tell: Callable[[float], None] = lambda share: None
    ) -> Likelihoods:
        """Return how likely the model finds each continuation after its context.

        Equal pairs are read once, so that they get equal numbers.

        Args:
            pairs: tokens, as :meth:`pairs` gives them.
            at_once: hide a continuation's tokens together instead of one at a time; causal models hide nothing.
            tell: called now and then with the share that is done.
        """
        places = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
        nats, likeliest = np.zeros(len(places)), np.ones(len(places), bool)
        tokens, cut = np.zeros(len(places), np.int64), np.zeros(len(places), bool)
        by_length: dict[int, list[tuple[int, Ids, int]]] = {}
        for (context, text), place in places.items():
            if not text:
                continue
            row, tokens[place], cut[place] = self._row(context, text)
            by_length.setdefault(len(row), []).append((place, row, tokens[place]))
        each = not (self.causal or at_once)
        # Tokens to be read, for the progress.
        work = {length: length * sum(count if each else 1 for *_, count in group)
                for length, group in by_length.items()}  # fmt: skip
        done, whole = 0, max(1, sum(work.values()))
        # The longest first: what does not fit into memory fails at once.
        # Entered once: autocast then keeps the weights that it has rounded.
        with self._engine.autocast():
            for length in sorted(by_length, reverse=True):
                for place_N, nats_N, first_N, read in self._read(by_length[length], each):
                    np.add.at(nats, place_N, nats_N)
                    np.logical_and.at(likeliest, place_N, first_N)
                    done += read
                    tell(done / whole)
        order_P = np.array([places[pair] for pair in pairs], np.int64)
        return Likelihoods(nats[order_P], likeliest[order_P], tokens[order_P], cut[order_P])

    def logits(self, rows: Sequence[Ids], slots: Sequence[int], *, causal: bool | None = None) -> Tensor:
        """Return the logits of the token at a slot of each row, or at R slots of the only row, (R, V), float32.

        Args:
            rows: equally long rows as the model sees them. slots: one of each, as for ``token_logits``; any of one row.
            causal: see ``token_logits``.
        """
        tokens_RT = torch.tensor(rows)
        index_R = torch.arange(len(rows)) * tokens_RT.shape[1] + torch.tensor(slots)
        return self._logits(tokens_RT, index_R, causal)

    def _row(self, context: Ids, text: Ids) -> tuple[Ids, int, bool]:
        """Return the row that shows a pair to the model, how many of its tokens are read, and whether it was cut.

        The last token of a causal row is what the one before it predicts; no model reads it.
        """
        whole = (self.vocabulary.cls, *context, *text)
        if not self.causal:
            whole = (*whole, self.vocabulary.sep)
        # Training's rows cut documents as well, and what goes on in the next row has no [CLS].
        row = whole[-(self.longest + int(self.causal)) :]
        return row, min(len(text), len(row) - 1), len(row) < len(whole)

    def _read(
        self, group: Sequence[tuple[int, Ids, int]], each: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
        """Read rows of one length; yields for each slot its pair, nats and whether its token is the first choice.

        And how many tokens were read for them.
        """
        shown_GT = torch.tensor([row for _, row, _ in group])
        count_G = torch.tensor([count for *_, count in group])
        place_G = np.array([place for place, *_ in group])
        length = shown_GT.shape[1]
        # Each token of a continuation: its pair, and its column. It ends its row, but for a [SEP].
        pair_N = torch.repeat_interleave(torch.arange(len(group)), count_G)
        ends_G = count_G.cumsum(0)
        back_N = ends_G[pair_N] - torch.arange(len(pair_N))
        column_N = length - int(not self.causal) - back_N
        # Rows: one for each token, or one for each pair.
        row_N, pair_R = (torch.arange(len(pair_N)), pair_N) if each else (pair_N, torch.arange(len(group)))
        most = 1 if each else max(1, int(count_G.max()))
        rows = max(1, min(_TOKENS // length, _LOGITS // (self.vocabulary.size * most)))
        bounds = torch.searchsorted(row_N, torch.arange(0, len(pair_R) + rows, rows)).tolist()
        for number, (begin, end) in enumerate(pairwise(bounds)):
            first = number * rows
            tokens_RT = shown_GT[pair_R[first : first + rows]]
            here_N, at_N = row_N[begin:end] - first, column_N[begin:end]
            label_N = tokens_RT[here_N, at_N]
            if not self.causal:
                tokens_RT[here_N, at_N] = self.vocabulary.mask
            nats_N, first_N = self._judged(tokens_RT, here_N, at_N, label_N)
            yield place_G[pair_N[begin:end].numpy()], nats_N, first_N, tokens_RT.numel()

    def _judged(
        self, tokens_RT: Tensor, row_N: Tensor, column_N: Tensor, label_N: Tensor
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-probability of each label, and whether it is the model's first choice."""
        if self.causal:
            # The last token is read by nobody; each other is predicted from the one before it.
            tokens_RT, column_N = tokens_RT[:, :-1], column_N - 1
        logits_NV = self._logits(tokens_RT, row_N * tokens_RT.shape[1] + column_N)
        label_N = label_N.to(logits_NV.device)
        nats_N = -torch.nn.functional.cross_entropy(logits_NV, label_N, reduction="none")
        return nats_N.double().cpu().numpy(), (logits_NV.argmax(-1) == label_N).cpu().numpy()

    @torch.no_grad()
    def _logits(self, tokens_RT: Tensor, index_N: Tensor, causal: bool | None = None) -> Tensor:
        """Return the logits at flat places of rows that hold one document each, (N, V)."""
        rows, length = tokens_RT.shape
        batch = Batch(
            tokens_RT, torch.arange(length).repeat(rows, 1), torch.zeros(rows, length, dtype=torch.int32),
            torch.arange(rows),
        )  # fmt: skip
        nothing_N = torch.zeros_like(index_N)
        device, seen = self._engine.device, Labelled(tokens_RT, index_N, nothing_N, nothing_N.float())
        with self._engine.autocast(), torch.compiler.set_stance("force_eager"):
            return self.model.token_logits(batch.to(device), seen.to(device), self._plan, causal=causal)
