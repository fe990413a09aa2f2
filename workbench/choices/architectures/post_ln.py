"""BERT as published."""

from __future__ import annotations

from typing import Literal

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.choice import knob


class PostLN(Architecture):
    """BERT as published: normalisation after each residual, learned positions, biases everywhere."""

    kind: Literal["post_ln"] = "post_ln"
    head: Literal["transform", "linear"] = knob("transform", "what stands before the output matrix: BERT's dense + GELU + norm, or nothing")
    dropout: float = knob(0.1, "dropout of embeddings, attention and residual branches", ge=0, lt=1)
