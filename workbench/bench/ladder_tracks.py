"""Define the tracks of the ladder, a causal and a masked model, and the changes that are tried above the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.bench.presets import TUNING_SEED
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

_SCHEDULE = {"kind": "warmup_hold_decay", "hold": 0.0, "warmup": 0.1}
_EARLY = {**_SCHEDULE, "warmup": 0.05}


@dataclass(frozen=True)
class Track:
    """A ladder's first recipe and what is tried above it.

    Attributes:
        base: the recipe that the Trainer trains, at so many steps.
        rungs: (what is new, changes to the recipe), in the order in which they are tried above the engine.
        steps: of the default Trainer.
        quick: every arm keeps the rate and the warm-up that it begins with, and nothing is compiled, neither theirs nor
            ours, which would take longer than training: minutes instead of an hour or so, and fair to no arm.
    """

    base: Callable[[int], Recipe]
    rungs: Sequence[tuple[str, Mapping[str, Any]]]
    steps: int
    quick: bool = False


def _small(recipe: Recipe, steps: int, *, vocabulary: int, rows: int, length: int, lr: float, **shape: int) -> Recipe:
    """Return a recipe on the embedded corpus, on one CPU thread, on the seed that no result uses."""
    return recipe.with_(
        data={"tokenizer": {"vocabulary_size": vocabulary}, "sequence_length": length, "batch_size": rows},
        architecture=shape,
        optimizer={"lr": lr, "schedule": _SCHEDULE},
        execution={"threads": 1, "device": "cpu"},
        # So many tokens tell arms apart by 0.01 nats: they are the same for all.
        budget={"amount": steps, "unit": "steps", "evaluation_tokens": 65_536},
        seed=TUNING_SEED,
    )


def causal(steps: int) -> Recipe:
    """Return GPT-2's block, 4 layers x 128, 32 rows of 64 tokens, 2,048 word pieces."""
    shape = {"layers": 4, "width": 128, "heads": 4}
    return _small(presets.gpt2_like(), steps, vocabulary=2048, rows=32, length=64, lr=1e-3, **shape)


def workshop(steps: int) -> Recipe:
    """As :func:`causal`, on a text that is prepared in seconds, 512 word pieces, the default Trainer's best rate."""
    return causal(steps).with_(
        data={"packages": ("python", "numpy"), "tokenizer": {"vocabulary_size": 512}},
        optimizer={"lr": 4e-3, "schedule": {"warmup": 0.4}},
        budget={"evaluation_tokens": 32_768},
    )


def masked(steps: int) -> Recipe:
    """Return BERT's block, 2 layers x 64, 64 rows of 16 tokens, 300 word pieces: there the default Trainer learns.

    At half the rate of the first pilot it ends 6,000 steps 1.26 nats below word frequencies, 10,000 steps 1.99. With
    more words, wider layers and longer rows it does not leave them within half an hour (LOG.md, 2026-11-24, -25).
    """
    shape = {"layers": 2, "width": 64, "heads": 2}
    base = _small(presets.bert(), steps, vocabulary=300, rows=64, length=16, lr=1.5e-3, **shape)
    return base.with_(architecture={"dropout": 0.0})


def bert_base(steps: int) -> Recipe:
    """Return BERT-base as published, 256 rows of 128 tokens, on a GPU."""
    return presets.bert().with_(
        data={"sequence_length": 128, "batch_size": 256},
        architecture={"layers": 12, "width": 768, "heads": 12, "dropout": 0.0},
        optimizer={"lr": 2e-4, "schedule": _SCHEDULE},
        execution={"device": "cuda"},
        budget=f"{steps} steps",
        seed=TUNING_SEED,
    )


# Each beginning where a sweep of a causal model found it best: at its own default it hardly learns at this size.
_LANS = ("optimizer: LANS", {"optimizer": {"kind": "lans", "lr": 2.7e-2, "schedule": _EARLY}})
_ADAFACTOR = ("optimizer: Adafactor", {"optimizer": {"kind": "adafactor", "schedule": _EARLY}})
_PAIRS = ("architecture: a table of pairs of tokens", {"architecture": {"bigram_rows": 16_384}})
_TABLES = (_PAIRS, ("architecture: a table of values per layer", {"architecture": {"value_embeddings": True}}))
_MODERN = (
    "architecture: rotary positions, RMSNorm, squared ReLU",
    {"architecture": {"positions": "rope", "norm": "rms_norm", "ffn": "relu2", "bias": False}},
)
_QUARTER = ("data: a quarter of the rows", {"data": {"batch_size": 8}})
_MSLT = ("depth: MSLT, layers stacked and trained in stages", {"depth": "multi_stage"})
_ZERO = ("architecture: residual products from zero", {"architecture": {"residual_init": "zero"}})
_MASKED = (
    ("architecture: normalised before each branch, rotary positions, RMSNorm, squared ReLU",
     {"architecture": "pre_ln"}),
    ("objective: 30% masks falling to 15%",
     {"objective": {"mask_rate": {"kind": "linear", "start": 0.3, "end": 0.15}}}),
    _ZERO, _LANS, _ADAFACTOR, *_TABLES,
)  # fmt: skip

TRACKS = {
    "causal": Track(causal, [
        _MODERN, _ZERO, _LANS, _ADAFACTOR, *_TABLES,
        ("data: half the rows, twice the steps", {"data": {"batch_size": 16}}),
        _QUARTER, _MSLT,
    ], 150),
    "workshop": Track(
        workshop, [_MODERN, _LANS, _ADAFACTOR, _PAIRS, _QUARTER, _MSLT], 70, quick=True
    ),
    "masked": Track(masked, [
        *_MASKED,
        ("data: half the rows, twice the steps", {"data": {"batch_size": 32}}),
        ("depth: MSLT, layers stacked and trained in stages", {"depth": {"kind": "multi_stage", "shares": [6, 5]}}),
    ], 6_000),
    "bert_base": Track(bert_base, [
        *_MASKED,
        ("data: half the rows, twice the steps", {"data": {"batch_size": 128}}),
        _MSLT,
    ], 2000),
}  # fmt: skip
"""By name; the last needs a GPU."""
