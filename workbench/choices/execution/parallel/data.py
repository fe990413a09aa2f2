"""Data parallel: every process has the whole model, and a share of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch

from workbench.choices.choice import Problem, knob
from workbench.choices.depth.full import Full
from workbench.choices.execution.parallel.buckets import Buckets
from workbench.choices.execution.parallel.parallel import Parallel
from workbench.choices.execution.ranks import Ranks


class DataParallel(Parallel):
    """Whole weights and states in every process; gradients are summed while the backward pass computes.

    g = sum over processes r of g_r, in buckets of ``bucket_mib``, each (numbers,).

    Source: Li et al. 2020 (arXiv 2006.15704), sections 3.2 and 4; PowerSGD: Vogels et al. 2019 (arXiv 1905.13727).
    """

    kind: Literal["data"] = "data"
    bucket_mib: float = knob(
        25.0, "gradients that are sent at once; smaller ones leave earlier", unit="MiB", gt=0, le=4096, scale="log"
    )
    compression: Literal["none", "fp16", "bf16", "powersgd"] = knob(
        "none", "what is sent instead of float32 gradients; all but none change the result"
    )
    rank: int = knob(4, "with compression 'powersgd': rank of what stands for a matrix", ge=1, le=256)

    def exchange(self, ranks: Ranks) -> Buckets:
        """Return the buckets; with what makes them smaller."""
        size = round(self.bucket_mib * 2**20)
        if self.compression == "none":
            return Buckets(ranks, size)
        # Not before: loading torch's hooks takes a second.
        from workbench.choices.execution.parallel.compression import low_rank, rounded

        if self.compression == "powersgd":
            made = Buckets(ranks, size, low_rank(ranks, self.rank, lambda: len(made.buckets)), overlaps=False)
            return made
        return Buckets(ranks, size, rounded(ranks, torch.float16 if self.compression == "fp16" else torch.bfloat16))

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse PowerSGD where a step's weights change: it remembers what it left out by bucket."""
        if self.compression == "powersgd" and not isinstance(recipe.depth, Full):
            yield Problem(
                "execution.parallel.compression",
                f"'powersgd' remembers what it left out of every bucket, and depth '{recipe.depth.kind}' changes "
                "which weights have gradients; use 'bf16' or 'none', or depth 'full'",
            )
