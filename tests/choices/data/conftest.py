"""A cache of its own for every test, and small texts."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from workbench.choices.data.tokens import TokenStore

WORDS = """
    the of and to in is that it for was on are as with they be at one have this from or had by hot word but what some
    we can out other were all there when up use your how said an each she which do their time if will way about many
""".split()  # noqa: SIM905


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of the test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("WORKBENCH_CACHE", str(folder))
    return folder


@pytest.fixture
def sentences():
    """``sentences(n, seed)``: n documents of 5 to 80 words, each different."""

    def make(count: int, seed: int = 0) -> list[str]:
        draw = random.Random(seed)
        return [" ".join(draw.choices(WORDS, k=draw.randint(5, 80))) for _ in range(count)]

    return make


@pytest.fixture
def make_store():
    """``make_store(lengths)``: a store whose every token is unique, so that each place of a row names its source."""

    def make(lengths: list[int]) -> TokenStore:
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return TokenStore(np.arange(offsets[-1], dtype=np.uint32), offsets)

    return make
