"""The baselines of a held-out set against slow sums, and against what models without context really score."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from workbench.choices.data.tokens import TokenStore, Vocabulary
from workbench.choices.objectives import text_baselines
from workbench.choices.objectives.causal import Causal
from workbench.choices.objectives.corruption import Corruption
from workbench.choices.objectives.frequencies import frequencies, predictable
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.choices.objectives.masked import Masked
from workbench.choices.objectives.objective import Objective
from workbench.choices.objectives.text_baselines import count_baselines
from workbench.telemetry.baselines import learned

VOCABULARY = Vocabulary(size=64, used=31, cls=2, sep=3, mask=4, pad=0, unk=1)


def text(seed: int, documents: int) -> TokenStore:
    """Tokens of uneven frequency, each of which makes its successor likely."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(documents):
        ids = [int(5 + 25 * rng.random() ** 2)]
        for _ in range(rng.integers(1, 90)):
            ids.append(5 + (ids[-1] * 3) % 26 if rng.random() < 0.5 else int(5 + 25 * rng.random() ** 2))
        found.append([2, *ids, 3])
    offsets_D1 = np.cumsum([0, *map(len, found)]).astype(np.int64)
    return TokenStore(np.concatenate(found).astype(np.uint16), offsets_D1)


def documents_of(store: TokenStore) -> list[list[int]]:
    return [store.ids_N[a:b].tolist() for a, b in pairwise(store.offsets_D1)]


def slow_baselines(train: TokenStore, heldout: HeldoutSet) -> tuple[float, float]:
    """Both baselines by dictionaries and loops, as the formulas say."""
    legal = set(range(VOCABULARY.used)) - {0, 2, 3, 4} | ({3} if heldout.causal else set())
    unigrams = Counter(token for document in documents_of(train) for token in document if token in legal)
    total = sum(unigrams.values()) + len(legal)
    p = {word: (unigrams[word] + 1) / total for word in legal}
    pairs = [pair for document in documents_of(train) for pair in pairwise(document)]

    def witten_bell(beside: Counter[int]) -> dict[int, float]:
        kinds, seen = len(beside), sum(beside.values())
        return {w: (beside[w] + kinds * p[w]) / (seen + kinds) if seen else p[w] for w in legal}

    scored = set(heldout.scored_S.tolist())
    unigram = neighbours = 0.0
    for place in sorted(scored):
        word = int(heldout.ids_N[place])
        shares = dict(p)
        if heldout.causal or place - 1 not in scored:
            before = int(heldout.ids_N[place - 1])
            left = witten_bell(Counter(b for a, b in pairs if a == before and b in legal))
            shares = {w: shares[w] * left[w] / p[w] for w in legal}
        if not heldout.causal and place + 1 not in scored and place + 1 < heldout.tokens:
            behind = int(heldout.ids_N[place + 1])
            right = witten_bell(Counter(a for a, b in pairs if b == behind and a in legal))
            shares = {w: shares[w] * right[w] / p[w] for w in legal}
        unigram -= math.log(p[word])
        neighbours -= math.log(shares[word] / sum(shares.values()))
    return unigram / len(scored), neighbours / len(scored)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_floors_equal_the_slow_sums(causal: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    train, heldout = text(seed, 20), HeldoutSet.of(text(seed + 9, 20), VOCABULARY, 512, causal=causal)
    counts_V = np.bincount(train.ids_N, minlength=64)
    found, expected = count_baselines(train, counts_V, heldout), slow_baselines(train, heldout)
    assert tuple(found) == pytest.approx(expected, rel=1e-9)
    # Read a few tokens and contexts at a time, as a long text is.
    monkeypatch.setattr(text_baselines, "CHUNK_TOKENS", 7)
    monkeypatch.setattr(text_baselines, "PART_PAIRS", 100)
    assert count_baselines(train, counts_V, heldout) == found


def test_neighbours_help_where_they_foretell() -> None:
    train, heldout = text(0, 400), HeldoutSet.of(text(1, 100), VOCABULARY, 4096, causal=True)
    unigram, neighbours = count_baselines(train, np.bincount(train.ids_N, minlength=64), heldout)
    assert neighbours < unigram - 0.3


class Copying(torch.nn.Module):
    """The best model that reads no context under 80/10/10: it trusts a visible token, and knows word frequencies."""

    def __init__(self, p_V: np.ndarray) -> None:
        super().__init__()
        self.p_V = torch.from_numpy(p_V)
        self.replacements = int((p_V > 0).sum())

    def nats(self, shown_N: torch.Tensor, labels_N: torch.Tensor) -> torch.Tensor:
        kept_N = self.p_V[shown_N]
        posterior_NV = self.p_V / self.replacements + F.one_hot(shown_N, 64) * kept_N[:, None]
        shares_NV = posterior_NV / posterior_NV.sum(1, keepdim=True)
        return -shares_NV.gather(1, labels_N[:, None])[:, 0].log()


def test_a_model_that_copies_visible_tokens_has_learned_word_frequencies() -> None:
    """The old score let copying pass for context; under this one it is worth nothing, to 0.01 nats."""
    train = text(0, 2000)
    counts_V = np.bincount(train.ids_N, minlength=64)
    heldout = HeldoutSet.of(text(1, 400), VOCABULARY, 1 << 14, causal=False)
    baselines = count_baselines(train, counts_V, heldout)
    model = Copying(frequencies(counts_V, predictable(VOCABULARY, causal=False)))
    losses, old = [], []
    for batch, seen in heldout.batches(64, 16):
        losses.append(model.nats(seen.tokens_BT.flatten()[seen.index_N], seen.labels_N))
        corrupted = Corruption(VOCABULARY, torch.device("cpu"))(batch, 0.15, 0, always_mask=False)
        nats = model.nats(corrupted.tokens_BT.flatten()[corrupted.index_N], corrupted.labels_N)
        old.append(nats[corrupted.weight_N > 0])
    loss = torch.cat(losses).mean().item()
    assert loss == pytest.approx(baselines.unigram, abs=0.01)
    assert learned(loss, baselines) == "word frequencies"
    # By the score of before it was 0.2 nats "below word frequencies", and its training curve still shows that.
    assert learned(torch.cat(old).mean().item(), baselines) == "neighbours"
    baseline = Masked().context_free_loss(counts_V, VOCABULARY)
    assert torch.cat(old).mean().item() == pytest.approx(baseline, abs=0.03)


def test_the_training_floor_equals_the_slow_sum() -> None:
    counts_V = np.bincount(text(3, 30).ids_N, minlength=64)
    ordinary_V = predictable(VOCABULARY, causal=False)
    p_V = frequencies(counts_V, ordinary_V)
    ordinary = np.flatnonzero(ordinary_V).tolist()
    masked, kept, replaced = 0.8, 0.1, 0.1
    expected = 0.0
    for shown in [4, *ordinary]:
        # Joint probability of this visible token and each label.
        joint = {
            w: p_V[w] * masked if shown == 4 else kept * p_V[w] * (w == shown) + replaced * p_V[w] / len(ordinary)
            for w in ordinary
        }
        whole = sum(joint.values())
        expected -= sum(share * math.log(share / whole) for share in joint.values() if share)
    assert Masked().context_free_loss(counts_V, VOCABULARY) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("objective", [Causal(), Masked(corruption="all_mask")])
def test_training_that_shows_nothing_it_asks_for_has_no_floor_of_its_own(objective: Objective) -> None:
    assert objective.context_free_loss(np.bincount(text(3, 30).ids_N, minlength=64), VOCABULARY) is None
