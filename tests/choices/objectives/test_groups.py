"""Words, spans and n-grams against a slow walk over each row, one place at a time."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from workbench.choices.data.pieces import Pieces
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.objectives.corruption import LENGTH, SELECT, TREAT, Corruption, random_bits, slots_per_row
from workbench.choices.objectives.groups import LENGTH_SHARES, Selection, lengths_of

CPU = torch.device("cpu")
# Every third ordinary token continues a word.
NAMES = (
    "[PAD]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[UNK]",
    *(f"{'##' * (token % 3 == 0)}w{token}" for token in range(5, 120)),
)
VOCABULARY = Vocabulary(size=128, used=120, cls=1, sep=2, mask=3, pad=0, unk=4, pieces=Pieces(NAMES, "##"))
GROUPED: tuple[Selection, ...] = ("whole_word", "span", "ngram")


def packed(rows: int, length: int, seed: int = 0) -> Batch:
    """Rows of documents of random lengths, the first of a row without its beginning."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(5, 120, (rows, length), generator=generator)
    documents, positions = torch.zeros(rows, length, dtype=torch.int32), torch.zeros(rows, length, dtype=torch.int64)
    for row in range(rows):
        begin = 0
        while begin < length:
            size = int(torch.randint(3, 20, (), generator=generator))
            end = min(length, begin + size)
            documents[row, begin:] += int(begin > 0)
            positions[row, begin:end] = torch.arange(end - begin)
            if begin:
                tokens[row, begin] = 1
            if begin + size <= length:
                tokens[row, end - 1] = 2
            begin = end
    return Batch(tokens, positions, documents, torch.arange(rows) + 40)


def words_of(tokens: list[int], documents: list[int]) -> list[list[int]]:
    """Places of each word; special tokens are in none, and end one."""
    words: list[list[int]] = []
    for place, token in enumerate(tokens):
        if token in VOCABULARY.special:
            continue
        before = place - 1
        joined = place and tokens[before] not in VOCABULARY.special and documents[before] == documents[place]
        if joined and NAMES[token].startswith("##"):
            words[-1].append(place)
        else:
            words.append([place])
    return words


def slow_picks(
    batch: Batch, row: int, rate: float, seed: int, selection: Selection
) -> tuple[set[int], list[list[int]]]:
    """Labelled places of a row, and its groups."""
    tokens, documents = batch.tokens_BT[row].tolist(), batch.documents_BT[row].tolist()
    length, sample = len(tokens), batch.samples_B[row : row + 1]
    slots = slots_per_row(length, rate, selection)
    select = random_bits(seed, SELECT, sample, length)[0].tolist()
    words = words_of(tokens, documents)
    if selection == "whole_word":
        groups = [[word] for word in words]
    else:
        drawn = lengths_of(random_bits(seed, LENGTH, sample, length), LENGTH_SHARES[selection])[0].tolist()
        # Special tokens count as words while lengths are counted off, so that rows need nothing but one running sum.
        numbers = [number for number, words_in in enumerate(drawn) for _ in range(words_in)]
        units = sorted([*words, *([place] for place, token in enumerate(tokens) if token in VOCABULARY.special)])
        groups, last = [], -1
        for before, unit, number in zip([None, *units], units, numbers, strict=False):
            if tokens[unit[0]] in VOCABULARY.special or len(unit) > slots:
                continue
            same = before is not None and tokens[before[0]] not in VOCABULARY.special and len(before) <= slots
            same = same and documents[before[0]] == documents[unit[0]] and last == number
            if same:
                groups[-1].append(unit)
            else:
                groups.append([unit])
            last = number
    groups = [group for group in groups if len(group[0]) <= slots]
    labelled: set[int] = set()
    left = slots
    for group in sorted(groups, key=lambda group: (select[group[0][0]] >> 34, group[0][0]), reverse=True):
        for word in group:
            if len(word) > left:
                left = 0
                break
            labelled |= set(word)
            left -= len(word)
    return labelled, [[place for word in group for place in word] for group in groups]


@pytest.mark.parametrize("selection", GROUPED)
@pytest.mark.parametrize(("length", "rate"), [(16, 0.15), (33, 0.4), (128, 0.15), (8, 0.05)])
def test_picks_equal_a_walk_over_each_row(selection: Selection, length: int, rate: float) -> None:
    batch = packed(12, length)
    seen = Corruption(VOCABULARY, CPU)(batch, rate, 5, always_mask=True, selection=selection)
    assert seen.index_N is not None
    slots = slots_per_row(length, rate, selection)
    places = seen.index_N.view(12, slots) - torch.arange(12)[:, None] * length
    for row in range(12):
        expected, groups = slow_picks(batch, row, rate, 5, selection)
        kept = seen.weight_N.view(12, slots)[row] > 0
        assert set(places[row][kept].tolist()) == expected
        assert all(len({int(batch.documents_BT[row, place]) for place in group}) == 1 for group in groups)
        assert torch.equal(seen.tokens_BT[row] != batch.tokens_BT[row], (seen.tokens_BT[row] == 3))
        assert set((seen.tokens_BT[row] == 3).nonzero().flatten().tolist()) == expected


@pytest.mark.parametrize("selection", GROUPED)
def test_groups_depend_on_the_sample_alone(selection: Selection) -> None:
    batch, corrupt = packed(8, 64), Corruption(VOCABULARY, CPU)
    whole = corrupt(batch, 0.2, 9, always_mask=False, selection=selection).tokens_BT
    part = Batch(*(tensor[[5, 2]] for tensor in batch))
    assert torch.equal(corrupt(part, 0.2, 9, always_mask=False, selection=selection).tokens_BT, whole[[5, 2]])
    assert not torch.equal(corrupt(batch, 0.2, 8, always_mask=False, selection=selection).tokens_BT, whole)


def test_lengths_are_those_of_spanbert_and_albert() -> None:
    bits = random_bits(0, LENGTH, torch.arange(400), 100)
    for name, mean in (("span", 3.797), ("ngram", 18 / 11)):
        lengths, shares = lengths_of(bits, LENGTH_SHARES[name]), LENGTH_SHARES[name]
        assert float(lengths.double().mean()) == pytest.approx(mean, abs=0.06)
        found = torch.bincount(lengths.flatten(), minlength=len(shares) + 1)[1:] / lengths.numel()
        for share, expected in zip(found.tolist(), shares, strict=True):
            assert abs(share - expected) < 4 * (expected * (1 - expected) / lengths.numel()) ** 0.5
    assert LENGTH_SHARES["ngram"] == pytest.approx((6 / 11, 3 / 11, 2 / 11))


def test_a_span_is_treated_as_one() -> None:
    batch = packed(256, 64)
    corrupt = Corruption(VOCABULARY, CPU)
    picks = corrupt.pick(batch, 0.3, 1, "span")
    seen = corrupt.show(batch, picks, 1, always_mask=False, together=True)
    assert picks.groups is not None
    tenth = random_bits(1, TREAT, batch.samples_B, 64) % 10
    kinds: Counter[str] = Counter()
    for row in range(256):
        treated: dict[int, set[str]] = {}
        for place, counts in zip(picks.column_BK[row].tolist(), picks.counts_BK[row].tolist(), strict=True):
            first, token = int(picks.groups.first_BT[row, place]), int(seen.tokens_BT[row, place])
            if counts:
                draw = int(tenth[row, first])
                kind = "mask" if draw < 8 else "random" if draw < 9 else "kept"
                assert (token == 3) == (kind == "mask")
                assert kind != "kept" or token == int(batch.tokens_BT[row, place])
                treated.setdefault(first, set()).add(kind)
        kinds.update(kind for each in treated.values() for kind in each)
    assert kinds["mask"] / kinds.total() == pytest.approx(0.8, abs=0.05)


def test_nothing_is_wasted_but_less_than_a_word_of_each_row() -> None:
    batch = packed(64, 128)
    rows = zip(batch.tokens_BT.tolist(), batch.documents_BT.tolist(), strict=True)
    longest = max(len(word) for row in rows for word in words_of(*row))
    for selection in GROUPED:
        seen = Corruption(VOCABULARY, CPU)(batch, 0.15, 3, always_mask=True, selection=selection)
        spare = (seen.weight_N.view(64, -1) == 0).sum(1)
        assert int(spare.max()) < longest
    assert slots_per_row(128, 0.15, "span") == 20
    assert slots_per_row(100, 0.07, "span") == 7, "0.07 * 100 is 7.000000000000001"
