"""Taking Notes on the Fly: notes of the surroundings in which rare words were seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.choices.architectures.notes.notes import Notebook, Notes
from workbench.choices.choice import Problem, knob
from workbench.choices.data.tokens import Batch, TokenStore, Vocabulary

# Shape legend: B rows, T positions, D width, N tokens of the text, W rare words, V ids, L longest row,
# S sums before each place (T + 1), C places where a rare word begins, U different words among them.

_BASE = 0x9E3779B97F4A7C15
"""Odd, of 64 bits: the golden ratio's (Knuth, The Art of Computer Programming 3, section 6.4)."""
_NOBODY = torch.iinfo(torch.int64).max
_CHUNK = 1 << 22
"""Tokens whose words are counted at once: bounds the memory."""


class RareWords(Notes):
    """Keep a vector for every rare word: a running mean of the model's states around it, mixed into its input.

    x_i = (1 - share) (token_i + position_i) + share note_w at every token i of a rare word w. After the forward pass
    note_w <- (1 - rate) note_w + rate mean of the states (D,) from ``window`` tokens before w to ``window`` after it.

    Source: Wu et al. 2021, ICLR, "Taking Notes on the Fly Helps Language Pre-training" (arXiv 2008.01466), section 3.2.
    """

    kind: Literal["rare_words"] = "rare_words"
    fewest: int = knob(100, "a rare word occurs at least so often in the training text", ge=1)
    most: int = knob(500, "a rare word occurs at most so often in the training text", ge=1)
    words: int = knob(
        16_384, "rare words at most, the most frequent of them; each costs a vector of the model's width", ge=1,
        le=1 << 22, scale="log",
    )  # fmt: skip
    window: int = knob(16, "states to both sides of the word that its note is made of", unit="tokens", ge=0, le=1024)
    share: float = knob(0.5, "weight of the note in the input", gt=0, lt=1)
    rate: float = knob(0.1, "weight of the newest states in the note", gt=0, le=1)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield whose rows (B, T) would be told what they must predict, and a width that changes."""
        objective, depth = recipe.objective, recipe.depth
        if self.fewest > self.most:
            yield Problem(
                "architecture.notes.fewest", f"no word occurs at least {self.fewest} and at most {self.most} times"
            )
        if objective.causal or objective.shifted or objective.masks != "built" or not objective.one_network:
            yield Problem(
                "architecture.notes",
                f"a note tells the whole word, of which objective '{objective.kind}' predicts parts that it would "
                "betray; use objective 'masked' or 'diffusion', or notes 'none'",
            )
        if any(
            depth.architecture_at(recipe.architecture, stage) != depth.architecture_at(recipe.architecture, 0)
            for stage in range(len(depth.starts()))
        ):
            yield Problem(
                "architecture.notes", f"depth '{depth.kind}' changes the width, and notes have one; use 'none'"
            )

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that each process would take notes of its own rows (B, T)."""
        yield Problem("architecture.notes", "several processes would take different notes; use 'none', or one process")

    def build(self, vocabulary: Vocabulary, length: int, width: int) -> RareWordNotes:
        """Return notes (W, D), all empty."""
        return RareWordNotes(self, vocabulary, length, width)


class RareWordNotes(Notebook):
    """Notes of the rare words of a text; a word is known by the hash of its tokens.

    A word that the edge of a row cuts is another word, which is not rare or not known.

    Args:
        choice: gives the knobs. vocabulary: says where words begin. length: longest row, L.
    """

    words_W: Tensor
    written_W: Tensor
    notes_WD: Tensor
    begins_V: Tensor
    powers_L: Tensor

    def __init__(self, choice: RareWords, vocabulary: Vocabulary, length: int, width: int) -> None:
        super().__init__()
        self.choice = choice
        begins_V = np.ones(vocabulary.size, bool)
        if vocabulary.pieces is not None:
            begins_V = vocabulary.pieces.begins(vocabulary.size)
            begins_V[list(vocabulary.special)] = True
        powers = np.full(length, _BASE, np.uint64)
        powers[0] = 1
        self.register_buffer("begins_V", torch.tensor(begins_V), persistent=False)
        powers_L = np.multiply.accumulate(powers).view(np.int64)
        self.register_buffer("powers_L", torch.tensor(powers_L), persistent=False)
        self.special = vocabulary.special
        self.register_buffer("words_W", torch.full((choice.words,), _NOBODY))
        self.register_buffer("written_W", torch.zeros(choice.words, dtype=torch.bool))
        self.register_buffer("notes_WD", torch.zeros(choice.words, width))

    def study(self, text: TokenStore) -> None:
        """See :meth:`Notebook.study`; words of special tokens and of more than L tokens are not rare words."""
        counts: dict[int, int] = {}
        begins_V, powers_L = self.begins_V.cpu().numpy(), self.powers_L.cpu().numpy().view(np.uint64)
        legal_V = np.ones(len(begins_V), bool)
        legal_V[list(self.special)] = False
        for ids_N in _whole_documents(text):
            begin_W = np.flatnonzero(begins_V[ids_N])
            begin_W = begin_W if len(begin_W) and begin_W[0] == 0 else np.r_[0, begin_W]
            length_W = np.diff(np.r_[begin_W, len(ids_N)])
            offset_N = np.arange(len(ids_N)) - np.repeat(begin_W, length_W)
            terms_N = (ids_N.astype(np.uint64) + np.uint64(1)) * powers_L[np.minimum(offset_N, len(powers_L) - 1)]
            keys_W = np.add.reduceat(terms_N, begin_W)
            keys, times = np.unique(keys_W[legal_V[ids_N[begin_W]] & (length_W <= len(powers_L))], return_counts=True)
            for key, many in zip(keys.tolist(), times.tolist(), strict=True):
                counts[key] = counts.get(key, 0) + many
        rare = [(many, key) for key, many in counts.items() if self.choice.fewest <= many <= self.choice.most]
        kept = [key for _, key in sorted(rare, reverse=True)[: self.choice.words]]
        words = np.sort(np.array(kept, np.uint64).view(np.int64))
        self.words_W[: len(words)] = torch.from_numpy(words).to(self.words_W.device)

    def read(self, x_BTD: Tensor, shown_BT: Tensor, batch: Batch) -> Tensor:
        """See :meth:`Notebook.read`: a word of which one token is hidden or replaced gets no note, (B, T, D)."""
        word_BT, row_BT, known_BT, _ = self._words(batch)
        changed_BT = (shown_BT != batch.tokens_BT).long()
        hidden_BT = torch.zeros_like(changed_BT).scatter_add(1, word_BT, changed_BT).gather(1, word_BT) > 0
        noted_BT = known_BT & self.written_W[row_BT] & ~hidden_BT
        share_BT1 = (noted_BT * self.choice.share).to(x_BTD.dtype)[..., None]
        return x_BTD + share_BT1 * (self.notes_WD[row_BT].to(x_BTD.dtype) - x_BTD)

    @torch.no_grad()
    def write(self, x_BTD: Tensor, batch: Batch) -> None:
        """See :meth:`Notebook.write`, (B, T, D): the mean over a word's places in the batch; its first is the note."""
        if type(x_BTD) is not Tensor:
            # A forecast has shapes alone, and no places where words are.
            return
        _, row_BT, known_BT, starts_BT = self._words(batch)
        length, window = x_BTD.shape[1], self.choice.window
        place_BT = torch.arange(length, device=row_BT.device).expand_as(row_BT)
        piece_BT = batch.positions_BT == 0
        first_BT, end_BT = _first(piece_BT, place_BT), _end(piece_BT, place_BT)
        low_BT = torch.maximum(place_BT - window, first_BT)
        high_BT = torch.minimum(_end(starts_BT, place_BT) + window, end_BT)
        sums_BSD = F.pad(x_BTD.float().cumsum(1), (0, 0, 1, 0))
        chosen = (starts_BT & known_BT).nonzero(as_tuple=True)
        rows_C, low_C, high_C = row_BT[chosen], low_BT[chosen], high_BT[chosen]
        mean_CD = (sums_BSD[chosen[0], high_C] - sums_BSD[chosen[0], low_C]) / (high_C - low_C)[:, None]
        seen_U, where_C = rows_C.unique(return_inverse=True)
        total_UD = mean_CD.new_zeros(len(seen_U), mean_CD.shape[1]).index_add(0, where_C, mean_CD)
        mean_UD = total_UD / where_C.bincount(minlength=len(seen_U))[:, None]
        rate_U1 = torch.where(self.written_W[seen_U], self.choice.rate, 1.0)[:, None]
        self.notes_WD[seen_U] = torch.lerp(self.notes_WD[seen_U], mean_UD, rate_U1)
        self.written_W[seen_U] = True

    def _words(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return by place (B, T): which word of the row, row of its note, whether it has one, whether it begins."""
        tokens_BT = batch.tokens_BT
        starts_BT = self.begins_V[tokens_BT] | (batch.positions_BT == 0)
        word_BT = starts_BT.long().cumsum(1) - 1
        place_BT = torch.arange(tokens_BT.shape[1], device=tokens_BT.device).expand_as(tokens_BT)
        terms_BT = (tokens_BT + 1) * self.powers_L[place_BT - _first(starts_BT, place_BT)]
        keys_BT = torch.zeros_like(tokens_BT).scatter_add(1, word_BT, terms_BT).gather(1, word_BT)
        row_BT = torch.searchsorted(self.words_W, keys_BT).clamp(max=len(self.words_W) - 1)
        return word_BT, row_BT, self.words_W[row_BT] == keys_BT, starts_BT


def _first(starts_BT: Tensor, place_BT: Tensor) -> Tensor:
    """Return the nearest start at or before each place, (B, T); the first place of a row is one."""
    return place_BT.where(starts_BT, 0).cummax(1).values


def _end(starts_BT: Tensor, place_BT: Tensor) -> Tensor:
    """Return the nearest start after each place, (B, T), or the end of the row."""
    length = starts_BT.shape[1]
    next_BT = place_BT.where(starts_BT, length).roll(-1, 1)
    next_BT[:, -1] = length
    return next_BT.flip(1).cummin(1).values.flip(1)


def _whole_documents(text: TokenStore) -> Iterator[np.ndarray]:
    """Yield the tokens (N,) of a text in pieces of whole documents, about ``_CHUNK`` of them at a time."""
    offsets, done = text.offsets_D1, 0
    while done < text.documents:
        until = max(done + 1, int(np.searchsorted(offsets, offsets[done] + _CHUNK, "right")) - 1)
        yield np.asarray(text.ids_N[offsets[done] : offsets[until]])
        done = until
