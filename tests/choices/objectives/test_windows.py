"""Windows of three tokens against a set of tuples."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from workbench.choices.data.tokens import TokenStore
from workbench.choices.objectives import windows
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.choices.objectives.windows import seen_windows

from .test_text_baselines import VOCABULARY, text


def slow(train: TokenStore, heldout: HeldoutSet) -> list[bool]:
    known = set()
    for begin, end in pairwise(train.offsets_D1.tolist()):
        ids = train.ids_N[begin:end].tolist()
        known |= set(zip(ids, ids[1:], ids[2:], strict=False))
    found = []
    for place in heldout.scored_S.tolist():
        places = [place - 2, place - 1, place] if heldout.causal else [place - 1, place, place + 1]
        inside = all(0 <= each < heldout.tokens for each in places)
        inside = inside and len({int(heldout.document_N[each]) for each in places}) == 1
        found.append(inside and tuple(heldout.ids_N[places].tolist()) in known)
    return found


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("chunk", [7, 64, 1 << 22])
def test_windows_equal_a_set_of_triples(causal: bool, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "CHUNK_TOKENS", chunk)
    train, heldout = text(0, 12), HeldoutSet.of(text(1, 30), VOCABULARY, 1000, causal=causal)
    seen_S = seen_windows(train, heldout)
    assert seen_S.tolist() == slow(train, heldout)
    assert 0.05 < seen_S.mean() < 0.95, "the text has both"


def test_a_text_or_a_set_below_one_window_has_none() -> None:
    heldout = HeldoutSet.of(text(1, 30), VOCABULARY, 600, causal=True)
    empty = TokenStore(np.array([2, 3], np.uint16), np.array([0, 2]))
    assert not seen_windows(empty, heldout).any()
    assert not seen_windows(text(0, 9), HeldoutSet.of(empty, VOCABULARY, 600, causal=True)).any()


def test_the_flags_are_kept_with_the_set(tmp_path: Path) -> None:
    heldout = HeldoutSet.of(text(1, 2000), VOCABULARY, 50_000, causal=False)
    marked = replace(heldout, seen_S=seen_windows(text(0, 20), heldout))
    assert marked.seen_S is not None
    for each in (heldout, marked, marked.part(8)):
        each.save(tmp_path / "heldout.npz")
        again = HeldoutSet.load(tmp_path / "heldout.npz", VOCABULARY)
        assert np.array_equal(again.seen_S, each.seen_S)  # type: ignore[arg-type]
        assert again.described() == each.described()
    assert marked.part(8).seen_S.tolist() == marked.seen_S[: len(marked.part(8).scored_S)].tolist()  # type: ignore[union-attr]
