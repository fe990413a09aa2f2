"""The hash against splitmix64 in plain integers; masks against a slow selection; what a mask may never touch."""

from __future__ import annotations

import pytest
import torch

from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.objectives.corruption import (
    REPLACE,
    SELECT,
    TREAT,
    Corruption,
    labels_per_row,
    random_bits,
    random_bits_at,
)

VOCABULARY = Vocabulary(size=576, used=520, cls=1, sep=2, mask=3, pad=0, unk=4)
WORD = (1 << 64) - 1


def rows(tokens_BT: torch.Tensor, first_sample: int = 0) -> Batch:
    """A batch of one document per row."""
    count, length = tokens_BT.shape
    positions = torch.arange(length).expand(count, length)
    samples = torch.arange(first_sample, first_sample + count)
    return Batch(tokens_BT, positions, torch.zeros(count, length, dtype=torch.int32), samples)


def ordinary_rows(count: int, length: int, first_sample: int = 0) -> Batch:
    """Random ordinary tokens between [cls] and [sep], a [sep][cls] in the middle."""
    tokens = torch.randint(5, 520, (count, length), generator=torch.Generator().manual_seed(first_sample))
    tokens[:, 0], tokens[:, -1] = 1, 2
    tokens[:, length // 2], tokens[:, length // 2 + 1] = 2, 1
    return rows(tokens, first_sample)


def splitmix(x: int) -> int:
    """The finaliser on plain integers modulo 2**64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)


def slow_bits(seed: int, purpose: int, sample: int, position: int) -> int:
    """random_bits for one position, in plain integers."""
    gamma = 0x9E3779B97F4A7C15
    stream = splitmix(splitmix(seed * gamma & WORD) + purpose * gamma & WORD)
    row = splitmix(stream + (sample + 1) * gamma & WORD)
    return splitmix(row + (position + 1) * gamma & WORD) >> 0 & (WORD >> 1)


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 0x5EED_0000_0000])
def test_hash_equals_plain_integers(seed: int) -> None:
    samples = [0, 1, 12_345, 2**40 + 7]
    bits = random_bits(seed, TREAT, torch.tensor(samples), 5)
    assert bits.tolist() == [[slow_bits(seed, TREAT, s, t) for t in range(5)] for s in samples]
    some_BK = torch.tensor([[4, 0], [1, 2], [0, 3], [2, 2]])
    assert torch.equal(random_bits_at(seed, TREAT, torch.tensor(samples), some_BK), bits.gather(1, some_BK))


def test_hash_is_uniform_and_uncorrelated() -> None:
    streams = [random_bits(3, purpose, torch.arange(512), 128).flatten() for purpose in (SELECT, TREAT, REPLACE)]
    count = streams[0].numel()
    for bits in streams:
        cells = torch.bincount(bits % 64, minlength=64).double()
        chi2 = float(((cells - count / 64) ** 2 / (count / 64)).sum())
        assert 20 < chi2 < 130, "63 degrees of freedom: mean 63, standard deviation 11"
        assert bits.unique().numel() == count
    unit = torch.stack(streams).double() / 2.0**63
    correlation = torch.corrcoef(torch.cat([unit[:, :-1], unit[:, 1:]]))
    off_diagonal = correlation - torch.eye(6, dtype=torch.float64)
    assert float(off_diagonal.abs().max()) < 5 / count**0.5


@pytest.mark.parametrize("length", [8, 33, 128])
@pytest.mark.parametrize("rate", [0.05, 0.15, 0.4])
def test_labels_hit_exactly_the_count_and_never_a_special_token(length: int, rate: float) -> None:
    batch = ordinary_rows(17, length)
    seen = Corruption(VOCABULARY, torch.device("cpu"))(batch, rate, seed=5, always_mask=False)
    per_row = labels_per_row(length, rate)
    assert per_row == max(1, round(rate * length))
    assert torch.equal(torch.bincount(seen.index_N // length, minlength=17), torch.full((17,), per_row))
    assert seen.index_N.unique().numel() == 17 * per_row, "no position is labelled twice"
    assert torch.equal(seen.index_N, seen.index_N.sort().values)
    assert torch.equal(seen.labels_N, batch.tokens_BT.flatten()[seen.index_N])
    assert torch.equal(seen.weight_N, torch.ones(17 * per_row))
    assert not set(seen.labels_N.tolist()) & set(VOCABULARY.special)
    untouched = torch.ones(17 * length, dtype=torch.bool)
    untouched[seen.index_N] = False
    assert torch.equal(seen.tokens_BT.flatten()[untouched], batch.tokens_BT.flatten()[untouched])


def test_a_row_of_nearly_empty_documents_labels_what_there_is() -> None:
    tokens = torch.tensor([[1, 7, 2, 1, 2, 1, 2, 1, 9, 2], [1, 5, 6, 7, 8, 9, 10, 11, 12, 2]])
    seen = Corruption(VOCABULARY, torch.device("cpu"))(rows(tokens), 0.5, seed=0, always_mask=True)
    assert len(seen.index_N) == 10, "shapes stay static"
    assert seen.weight_N.view(2, 5).sum(1).tolist() == [2.0, 5.0]
    assert set(seen.labels_N[seen.weight_N > 0][:2].tolist()) == {7, 9}
    assert torch.equal(seen.tokens_BT[0], torch.tensor([1, 3, 2, 1, 2, 1, 2, 1, 3, 2])), "special tokens stay"


def test_shares_of_mask_random_and_kept() -> None:
    batch = ordinary_rows(2048, 64)
    seen = Corruption(VOCABULARY, torch.device("cpu"))(batch, 0.25, seed=1, always_mask=False)
    shown = seen.tokens_BT.flatten()[seen.index_N]
    count = len(shown)
    masked, kept = (shown == VOCABULARY.mask).float().mean(), (shown == seen.labels_N).float().mean()
    replaced = shown[(shown != VOCABULARY.mask) & (shown != seen.labels_N)]
    sigma = (0.1 * 0.9 / count) ** 0.5
    assert abs(masked - 0.8) < 4 * sigma * (16 / 9) ** 0.5
    assert abs(kept - (0.1 + 0.1 / 516)) < 4 * sigma
    assert not set(replaced.tolist()) & set(VOCABULARY.special)
    assert int(replaced.max()) < VOCABULARY.used, "ids of the padding to a multiple of 64 are never drawn"
    cells = torch.bincount(replaced, minlength=520)[4:520].double()
    chi2 = float(((cells - cells.mean()) ** 2 / cells.mean()).sum())
    assert 515 - 5 * 32 < chi2 < 515 + 5 * 32, "515 degrees of freedom: standard deviation 32"


def test_masks_depend_on_the_sample_alone() -> None:
    batch = ordinary_rows(8, 32, first_sample=40)
    corrupt = Corruption(VOCABULARY, torch.device("cpu"))
    whole = corrupt(batch, 0.2, 9, always_mask=False).tokens_BT
    for order in ([3], [7, 0, 2], [5, 4]):
        part = Batch(*(tensor[order] for tensor in batch))
        assert torch.equal(corrupt(part, 0.2, 9, always_mask=False).tokens_BT, whole[order])
    assert not torch.equal(corrupt(batch, 0.2, 10, always_mask=False).tokens_BT, whole)
    later = batch._replace(samples_B=batch.samples_B + 8)
    assert not torch.equal(corrupt(later, 0.2, 9, always_mask=False).tokens_BT, whole), "another epoch, other masks"


def test_every_ordinary_position_is_equally_likely() -> None:
    batch = ordinary_rows(20_000, 16)
    seen = Corruption(VOCABULARY, torch.device("cpu"))(batch, 0.25, seed=2, always_mask=True)
    hits = torch.bincount(seen.index_N % 16, minlength=16).double()
    ordinary = hits[hits > 0]
    assert len(ordinary) == 12, "four positions of each row are special"
    share = ordinary / 20_000
    assert float((share - 1 / 3).abs().max()) < 4.5 * (2 / 9 / 20_000) ** 0.5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_and_cpu_agree() -> None:
    batch = ordinary_rows(64, 128)
    here = Corruption(VOCABULARY, torch.device("cpu"))(batch, 0.3, 4, always_mask=False)
    there = Corruption(VOCABULARY, torch.device("cuda"))(batch.to("cuda"), 0.3, 4, always_mask=False)
    assert all(torch.equal(a, b.cpu()) for a, b in zip(here, there, strict=True))
