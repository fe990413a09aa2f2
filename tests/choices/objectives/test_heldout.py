"""The held-out set: the same tokens whatever the rows, all hidden, every byte accounted for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.costs import quick_ones
from workbench.base.errors import DataError
from workbench.choices.data.tokens import TokenStore, Vocabulary
from workbench.choices.objectives import heldout as module
from workbench.choices.objectives.heldout import MASKED_SHARE, REFERENCE_LENGTH, HeldoutSet

VOCABULARY = Vocabulary(size=64, used=60, cls=2, sep=3, mask=4, pad=0, unk=1)


def store_of(lengths: list[int], seed: int = 0) -> TokenStore:
    rng = np.random.default_rng(seed)
    documents = [np.concatenate([[2], rng.integers(5, 60, length - 2), [3]]) for length in lengths]
    offsets_D1 = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids_N = np.concatenate(documents).astype(np.uint16)
    return TokenStore(ids_N, offsets_D1, np.where(ids_N > 4, ids_N % 7, 0).astype(np.uint32))


@pytest.fixture
def store() -> TokenStore:
    return store_of(np.random.default_rng(1).integers(3, 400, 40).tolist())


def scored(heldout: HeldoutSet, length: int, rows: int = 3, shifted: bool = False) -> list[tuple[int, int]]:
    """(place in the stream, label) of everything that is scored, found again in the rows by what the model sees."""
    found = []
    for batch, seen in heldout.batches(length, rows, shifted=shifted):
        assert seen.index_N is not None
        for index, label in zip(seen.index_N.tolist(), seen.labels_N.tolist(), strict=True):
            row, column = divmod(index, batch.tokens_BT.shape[1])
            assert column or not shifted, "there is no position before it to read it from"
            ids = batch.tokens_BT[row].numpy()
            windows = np.lib.stride_tricks.sliding_window_view(heldout.ids_N, len(ids))
            (begin,) = np.flatnonzero((windows == ids).all(1))
            found.append((int(begin) + column + int(heldout.causal), label))
    return found


@pytest.mark.parametrize("kind", ["masked", "shifted", "causal"])
@pytest.mark.parametrize("length", quick_ones([64, 100, 512, 10**6], 100))
def test_every_row_length_scores_the_same_tokens_once(store: TokenStore, kind: str, length: int) -> None:
    heldout = HeldoutSet.of(store, VOCABULARY, 4096, causal=kind == "causal")
    places = heldout.scored_S.tolist()
    assert scored(heldout, length, shifted=kind == "shifted") == list(
        zip(places, heldout.ids_N[places].tolist(), strict=True)
    )


def test_masked_places_are_the_stated_share_of_every_span_and_all_are_hidden(store: TokenStore) -> None:
    heldout = HeldoutSet.of(store, VOCABULARY, 4096, causal=False)
    assert heldout.tokens == 4096
    for span in range(4096 // REFERENCE_LENGTH):
        ids = heldout.ids_N[span * REFERENCE_LENGTH : (span + 1) * REFERENCE_LENGTH]
        inside = heldout.scored_S // REFERENCE_LENGTH == span
        assert inside.sum() == round(MASKED_SHARE * int((ids > 4).sum()))
    for length in (64, 100):
        for batch, seen in heldout.batches(length, 4):
            hidden = seen.tokens_BT != batch.tokens_BT
            assert (seen.tokens_BT[hidden] == VOCABULARY.mask).all()
            # Also what another row scores: rows that overlap must not give it away.
            assert hidden.flatten()[seen.index_N].all()
            rows = [set(map(int, np.flatnonzero(row))) for row in hidden]
            assert all(rows)
    last, seen = list(heldout.batches(100, 1))[-1]
    assert last.tokens_BT.shape == (1, 100)
    assert int((seen.tokens_BT == VOCABULARY.mask).sum()) > len(seen.labels_N), "the last row repeats some"


def test_causal_scores_every_token_but_the_first_of_a_document(store: TokenStore) -> None:
    heldout = HeldoutSet.of(store, VOCABULARY, 4096, causal=True)
    same = HeldoutSet.of(store, VOCABULARY, 4096, causal=False).next_tokens()
    assert same.causal
    assert np.array_equal(same.scored_S, heldout.scored_S)
    assert set(range(4096)) - set(heldout.scored_S.tolist()) == set(np.flatnonzero(heldout.ids_N == 2).tolist())
    for batch, seen in heldout.batches(64, 8):
        assert torch.equal(seen.tokens_BT, batch.tokens_BT)
        document, label = batch.documents_BT.flatten(), seen.index_N + 1
        assert torch.equal(document[label], document[seen.index_N]), "predicted from its own document"
        assert torch.equal(batch.tokens_BT.flatten()[label], seen.labels_N)


def test_pieces_and_positions_are_those_of_the_documents(store: TokenStore) -> None:
    heldout = HeldoutSet.of(store, VOCABULARY, 2048, causal=False)
    for batch, _ in heldout.batches(96, 5):
        for ids, positions, pieces in zip(*(t.tolist() for t in batch[:3]), strict=True):
            piece, position = 0, -1
            for column, token in enumerate(ids):
                piece, position = (piece + 1, 0) if token == 2 and column else (piece, position + 1)
                assert (positions[column], pieces[column]) == (position, piece)


def test_a_part_is_the_first_spans_scored_alike(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = HeldoutSet.of(store, VOCABULARY, 4096, causal=False)
    assert whole.part(8).described() == whole.described(), "all of a small set: one curve"
    monkeypatch.setattr(module, "FEWEST_TOKENS", REFERENCE_LENGTH)
    part = whole.part(4)
    assert part.tokens == 1024
    assert part.scored_S.tolist() == [place for place in whole.scored_S.tolist() if place < 1024]
    assert part.bytes_S.sum() < whole.bytes_S.sum()
    assert whole.part(100).tokens == REFERENCE_LENGTH


def test_the_set_depends_on_text_and_size_alone(store: TokenStore) -> None:
    first, again = (HeldoutSet.of(store, VOCABULARY, 2048, causal=False) for _ in range(2))
    assert np.array_equal(first.scored_S, again.scored_S)
    # Documents from everywhere, and a larger set begins with the smaller one.
    larger = HeldoutSet.of(store, VOCABULARY, 4096, causal=False)
    assert np.array_equal(larger.ids_N[:2048], first.ids_N)
    assert np.array_equal(larger.scored_S[larger.scored_S < 2048], first.scored_S)


@pytest.mark.parametrize("causal", [False, True])
def test_sets_below_one_span_and_one_row(causal: bool) -> None:
    store = store_of([9, 5, 20])
    heldout = HeldoutSet.of(store, VOCABULARY, 4096, causal=causal)
    assert heldout.tokens == 34
    assert len(heldout.scored_S) == (31 if causal else round(MASKED_SHARE * 28))
    assert len(scored(heldout, 64)) == len(scored(heldout, 8)) == len(heldout.scored_S)
    described = heldout.described()
    assert described["kind"] == ("next-token" if causal else "masked-only")
    assert described["bytes"] == int(store.bytes_N[store.ids_N > 4].sum() if causal else heldout.bytes_S.sum())


@pytest.mark.parametrize("causal", [False, True])
def test_a_saved_set_comes_back_whole_and_is_small(store: TokenStore, causal: bool, tmp_path: Path) -> None:
    for tokens in (4096, 100):
        heldout = HeldoutSet.of(store, VOCABULARY, tokens, causal=causal)
        heldout.save(tmp_path / "heldout.npz")
        again = HeldoutSet.load(tmp_path / "heldout.npz", VOCABULARY)
        for name in ("ids_N", "document_N", "start_N", "scored_S", "bytes_S"):
            before, after = getattr(heldout, name), getattr(again, name)
            assert np.array_equal(before, after), name
            assert after.dtype == np.int64, name
        assert (again.described(), again.vocabulary) == (heldout.described(), VOCABULARY)
        assert (tmp_path / "heldout.npz").stat().st_size < 3 * tokens + 2000


def test_a_damaged_set_is_refused_wherever_the_damage_is(store: TokenStore, tmp_path: Path) -> None:
    path = tmp_path / "heldout.npz"
    with pytest.raises(DataError, match="is missing"):
        HeldoutSet.load(path, VOCABULARY)
    HeldoutSet.of(store, VOCABULARY, 1024, causal=False).save(path)
    whole = path.read_bytes()
    cut = [whole[:size] for size in range(0, len(whole), 50)]
    arrays = dict(np.load(path))
    for data in (*cut, b"x" * 1000, b"[1]"):
        path.write_bytes(data)
        with pytest.raises(DataError, match="is damaged"):
            HeldoutSet.load(path, VOCABULARY)
    for name in arrays:
        np.savez(path, **{key: value for key, value in arrays.items() if key != name})
        with pytest.raises(DataError, match="is damaged"):
            HeldoutSet.load(path, VOCABULARY)
    np.savez(path, **arrays | {"ids_N": np.array([{}])}, allow_pickle=True)
    with pytest.raises(DataError, match="is damaged"):
        HeldoutSet.load(path, VOCABULARY)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="is missing"):
        HeldoutSet.load(path, VOCABULARY)
