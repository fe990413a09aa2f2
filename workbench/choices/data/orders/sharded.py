"""Text in disjoint shards, each reshuffled by itself, that the rows of a batch come from in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from workbench.base.errors import DataError
from workbench.choices.choice import Problem, knob
from workbench.choices.data.order import Arrange, EpochPlan, shuffled
from workbench.choices.data.orders.order import Order
from workbench.choices.data.tokens import PreparedData, TokenStore

# Shape legend: R rows of an epoch, S rows of a shard.

_FIRST_STREAM = 3
"""Stream of the first shard's draws; the others follow. Those before permute documents and rows, and draw rows."""


class Sharded(Order):
    """Disjoint shards of rows, each reshuffled whenever it is through; rows of a batch come from them in turn.

    With N shards, sample i is row i // N of shard i mod N, which reads its own rows round and round, in another order
    each time. Process r of N takes every N-th row of a batch, so that it never reads a shard but its own. One process
    sees the same rows: the order depends on the number of shards, not of processes.

    Source: Zheng et al. 2020 (arXiv 2006.13484), on data sharding.
    """

    kind: Literal["sharded"] = "sharded"
    shards: int = knob(
        8, "disjoint parts of the text, one for each process, or several for each", ge=1, le=4096, scale="log"
    )

    def arrange(self, prepared: PreparedData) -> Arrange:
        """Return the plan of an epoch, D documents in R rows."""
        return self._plan

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield shards and batches with which a process would read the shards of others."""
        if self.shards % processes:
            why = f"{self.shards} shards cannot be owned by {processes} processes; use a multiple of {processes}"
            yield Problem("data.order.shards", why)
        if len(recipe.data.corpora()) > 1:
            yield Problem("data.order.kind", "rows of a mixture do not come from the shards in turn; use 'shuffled'")
        micro = recipe.execution.micro_batch_size
        for path, value in (
            ("data.batch_size", recipe.data.batch_size),
            ("execution.micro_batch_size", recipe.data.batch_size if micro is None else micro),
        ):
            if not isinstance(value, int) or value % processes:
                why = (
                    f"a process reads its own shards where this is a fixed multiple of {processes} rows, and it is not"
                )
                yield Problem(path, f"{why}; change it, or use order 'shuffled'")
        if not isinstance(recipe.data.sequence_length, int):
            why = "rows whose length moves do not come from the shards in turn; use a number, or order 'shuffled'"
            yield Problem("data.sequence_length", why)

    def _plan(self, store: TokenStore, sequence_length: int, seed: int, epoch: int) -> EpochPlan:
        rows = store.tokens // sequence_length
        if rows < self.shards:
            raise DataError(
                f"{rows:,} rows of {sequence_length:,} tokens cannot fill {self.shards:,} shards; use fewer of them"
            )
        first, last = epoch * rows, (epoch + 1) * rows
        # Blocks of neighbours: a text lies in one shard, but for one that is cut at a border.
        borders = [rows * shard // self.shards for shard in range(self.shards + 1)]
        rows_R = np.empty(rows, np.int64)
        for shard in range(self.shards):
            sample_S = np.arange(first + (shard - first) % self.shards, last, self.shards)
            size = borders[shard + 1] - borders[shard]
            round_S, place_S = np.divmod(sample_S // self.shards, size)
            for number in np.unique(round_S):
                here_S = round_S == number
                order_S = shuffled(seed, int(number), _FIRST_STREAM + shard, size)
                rows_R[sample_S[here_S] - first] = borders[shard] + order_S[place_S[here_S]]
        return EpochPlan.of(store, shuffled(seed, 0, 0, store.documents), rows_R)
