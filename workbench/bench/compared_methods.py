"""The methods whose cost is compared: each as a change to one recipe."""

from __future__ import annotations

from typing import Any

from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

Methods = dict[str, dict[str, dict[str, Any]]]
"""Section -> name -> changes to a recipe, as ``Recipe.with_`` takes them."""


def small_base() -> Recipe:
    """Return ``fast`` with 8 thin layers on one CPU thread; AdamW at full depth."""
    return presets.fast().with_(
        architecture={"layers": 8, "width": 96, "heads": 2},
        execution={"threads": 1, "device": "cpu", "scalars_every": 25},
        budget={"evaluations": 1},
    )


def larger_base() -> Recipe:
    """Return BERT-base's size on a GPU (not yet run on one)."""
    return presets.bert_base().with_(
        data={"sequence_length": 128, "batch_size": 256},
        execution={"device": "cuda", "micro_batch_size": None, "scalars_every": 25},
        budget={"evaluations": 1, "evaluation_tokens": 1 << 20},
    )


def depth_and_optimizers() -> Methods:
    """Return those that can be compared at any size, for both bases."""
    depth = ("progressive_drop", "raptr", "stacking", "multi_stage", "freeze", "grow_width")
    optimizers = ("lans", "lamb", "stable_adamw", "lion", "muon", "soap", "sophia", "adafactor")
    return {
        "Optimizer": {kind: {"optimizer": {"kind": kind}} for kind in optimizers},
        "Depth": {kind: {"depth": {"kind": kind}} for kind in depth},
    }


def all_methods(base: Recipe) -> Methods:
    """Return every method that changes what a step costs, for :func:`small_base`;
    ``base`` gives the shape of ``post_ln``.
    """
    return {
        **depth_and_optimizers(),
        "Architecture": {
            **{f"positions: {kind}": {"architecture.positions": kind}
               for kind in ("learned", "sinusoidal", "alibi", "tupe_a", "tupe_r")},
            "norm: layer_norm": {"architecture.norm": "layer_norm"},
            "post_ln": {"architecture": _post_ln(base)},
            **{f"ffn: {kind}": {"architecture.ffn": kind} for kind in ("gelu", "geglu", "swiglu")},
            "bias: yes": {"architecture.bias": True},
            "head: untied": {"architecture.tied": False},
            "residual: from zero": {"architecture.residual_init": "zero"},
            "embedding: pairs": {"architecture.bigram_rows": 16_384},
            "values: tables": {"architecture.value_embeddings": True},
            "attention: local": {"architecture.local_window": 16, "architecture.global_every": 3},
        },
        "Batch and length": {
            "batch_ramp": {"data.batch_size": _stages([8, 16, 24], [1 / 3, 2 / 3])},
            "length_warmup": {"data.sequence_length": _stages([16, 32, 48, 64], [0.1, 0.2, 0.3])},
            "two phases of length": {
                "data.sequence_length": _stages([32, 64], [0.7]), "data.batch_size": _stages([32, 16], [0.7]),
            },
            "simigrad": {"data.batch_rule": {"kind": "simigrad"}},
        },
        "Objective": {f"masks: {rate:.0%} throughout": {"objective.mask_rate": rate} for rate in (0.15, 0.30)},
    }  # fmt: skip


def as_published() -> dict[str, dict[str, Any]]:
    """Return depth methods at the schedules of their papers, as far as these say them; without their batch and length.

    PLD: theta 0.5, gamma 100 over the run (Zhang & He 2020, arXiv 2010.13369), also with the rate of its paper: 2%
    warm-up, then x0.99 per 1,000 of 200,000 steps. Stacking: 50, 70 and 280 of 400 thousand steps (Gong et al. 2019).
    MSLT: equal stages and a joint one of a fifth, the rate warmed up in each (Yang et al. 2020, arXiv 2011.13635).
    """
    drop = {"kind": "progressive_drop", "theta": 0.5}
    # Straight lines between places on the fall: within 1% of it.
    places = [0.02 + 0.98 * part / 10 for part in range(11)]
    values = [round(0.99 ** (200 * place - 4), 4) for place in places]
    rate = {"kind": "points", "places": [0.0, *places], "values": [0.0, *values]}
    return {
        "progressive_drop": {"depth": drop},
        "progressive_drop at its own rate": {"depth": drop, "optimizer": {"schedule": rate}},
        "stacking": {"depth": {"kind": "stacking", "shares": [50, 70, 280]}},
        "multi_stage in equal stages": {"depth": {"kind": "multi_stage", "shares": [1, 1, 1, 1], "joint": 0.2}},
    }


def _post_ln(base: Recipe) -> dict[str, Any]:
    # Its own norm, positions and biases, but neither its dropout nor its head: the question is where the norms stand.
    shape = {name: getattr(base.architecture, name) for name in ("layers", "width", "heads")}
    return {"kind": "post_ln", **shape, "dropout": 0.0, "head": "linear"}


def _stages(values: list[int], until: list[float]) -> dict[str, Any]:
    return {"kind": "stages", "values": values, "until": until}
