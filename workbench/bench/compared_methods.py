"""The methods whose cost is compared: each as a change to one recipe."""

from __future__ import annotations

from typing import Any

from workbench import presets
from workbench.recipe import Recipe

Methods = dict[str, dict[str, dict[str, Any]]]
"""Section -> name -> changes to a recipe, as ``Recipe.with_`` takes them."""


def small_base() -> Recipe:
    """``fast`` with 8 thin layers on one CPU thread; AdamW at full depth."""
    return presets.fast().with_(
        architecture={"layers": 8, "width": 96, "heads": 2},
        execution={"threads": 1, "device": "cpu", "scalars_every": 25},
        budget={"evaluations": 1},
    )


def larger_base() -> Recipe:
    """BERT-base's size on a GPU (not yet run on one)."""
    return presets.bert_base().with_(
        data={"sequence_length": 128, "batch_size": 256},
        execution={"device": "cuda", "micro_batch_size": None, "scalars_every": 25},
        budget={"evaluations": 1, "evaluation_tokens": 1 << 20},
    )


def depth_and_optimizers() -> Methods:
    """Those that can be compared at any size, for both bases."""
    depth = ("progressive_drop", "raptr", "stacking", "multi_stage", "freeze", "grow_width")
    optimizers = ("lans", "lamb", "stable_adamw", "lion", "muon", "soap", "sophia", "adafactor")
    return {
        "Optimizer": {kind: {"optimizer": {"kind": kind}} for kind in optimizers},
        "Depth": {kind: {"depth": {"kind": kind}} for kind in depth},
    }


def all_methods(base: Recipe) -> Methods:
    """Every method that changes what a step costs, for :func:`small_base`; ``base`` gives the shape of ``post_ln``."""
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


def _post_ln(base: Recipe) -> dict[str, Any]:
    # Its own norm, positions and biases, but neither its dropout nor its head: the question is where the norms stand.
    shape = {name: getattr(base.architecture, name) for name in ("layers", "width", "heads")}
    return {"kind": "post_ln", **shape, "dropout": 0.0, "head": "linear"}


def _stages(values: list[int], until: list[float]) -> dict[str, Any]:
    return {"kind": "stages", "values": values, "until": until}
