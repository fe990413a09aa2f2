"""The modern block."""

from __future__ import annotations

from typing import Literal

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.choice import knob


class PreLN(Architecture):
    """Normalisation before each branch and at the end, no biases, RoPE or learned positions, optional GLU."""

    kind: Literal["pre_ln"] = "pre_ln"
    norm: Literal["layer_norm", "rms_norm"] = knob("rms_norm", "normalisation")
    positions: Literal["rope", "learned"] = knob("rope", "how positions are told")
    ffn: Literal["gelu", "relu2", "geglu", "swiglu"] = knob("relu2", "feed-forward activation; the last two are gated")
    dropout: float = knob(0.0, "dropout of embeddings and residual branches", ge=0, lt=1)
