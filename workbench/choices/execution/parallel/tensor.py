"""Tensor parallel: every process has some heads and inner units of each block, and all see the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from workbench.choices.architectures.feed_forward import ACTIVATIONS, gated_width
from workbench.choices.architectures.modular import Modular
from workbench.choices.choice import Problem
from workbench.choices.execution.parallel.parallel import Exchange, Parallel, uncut
from workbench.choices.execution.ranks import Ranks


class TensorParallel(Parallel):
    """Projections of the blocks shared out: queries, keys and values by head, the feed-forward part by inner unit.

    y = sum over processes r of f(x A_r) B_r, with (D, F / n) columns A_r of the first product of each half of a block,
    and (F / n, D) rows B_r of the second; n processes.

    Source: Shoeybi et al. 2019 (arXiv 1909.08053), section 3.
    """

    kind: Literal["tensor"] = "tensor"
    shares_rows: ClassVar[bool] = False

    def exchange(self, ranks: Ranks) -> Exchange:
        """Return the twin whose projections are cut."""
        # Not before: loading DTensor takes a second.
        from workbench.choices.execution.parallel.tensor_sharding import TensorSharding

        return TensorSharding(ranks)

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield blocks that cannot be cut into so many parts, and what goes with whole weights alone."""
        yield from _uneven(recipe, processes)
        yield from uncut(recipe, "execution.parallel.kind", "'tensor'", "'data'")


def _uneven(recipe: Any, processes: int) -> Iterator[Problem]:
    architecture = recipe.depth.architecture_at(recipe.architecture, 0)
    if not isinstance(architecture, Modular):
        why = f"parallel 'tensor' cuts blocks of our own, and '{architecture.kind}' brings others"
        yield Problem("architecture.kind", f"{why}; use 'pre_ln', 'post_ln', or parallel 'data'")
        return
    inner = architecture.inner_width
    counts = {
        "heads": architecture.heads,
        "ffn_width": gated_width(inner) if ACTIVATIONS[architecture.ffn][1] else inner,
    }
    for name, count in counts.items():
        if count % processes:
            legal = ", ".join(str(number) for number in range(2, 65) if count % number == 0)
            why = f"{processes} processes cannot have equal parts of {count}"
            yield Problem(f"architecture.{name}", f"{why}; use parallel 'data'" + (legal and f", or {legal} processes"))
    whole = {
        "positions": architecture.positions in ("alibi", "tupe_a", "tupe_r"),
        "value_embeddings": architecture.value_embeddings,
        "dropout": architecture.attention_dropout and architecture.dropout > 0,
    }
    for name in (name for name, unfit in whole.items() if unfit):
        why = f"{getattr(architecture, name)!r} is of all heads, and parallel 'tensor' gives a process some of them"
        default = {"positions": "'rope'", "value_embeddings": "False", "dropout": "0"}[name]
        yield Problem(f"architecture.{name}", f"{why}; use {default}, or parallel 'data'")
