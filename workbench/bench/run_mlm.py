"""Lay out rows and labels as transformers' ``run_mlm`` does, for contenders that must do as it does."""

from __future__ import annotations

import numpy as np
import torch

from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.layout import everywhere
from workbench.choices.objectives.objective import Labelled

IGNORED = -100
"""Label of a position that does not count, in transformers' losses."""

# Shape legend: B rows, T positions of a row, N labelled slots.


class GroupedRows(RowOrder):
    """The same rows (B, T), each as one piece: attention crosses documents and positions count along the row."""

    def batch(self, samples: np.ndarray) -> Batch:
        """See :meth:`RowOrder.batch`; positions 0 .. T - 1 and piece 0 everywhere."""
        batch = super().batch(samples)
        positions_BT = torch.arange(batch.tokens_BT.shape[1]).expand_as(batch.tokens_BT).contiguous()
        return batch._replace(positions_BT=positions_BT, documents_BT=torch.zeros_like(batch.documents_BT))


def ignoring(seen: Labelled) -> torch.Tensor:
    """Labels (B, T) as transformers takes them: :data:`IGNORED` where nothing counts."""
    every = everywhere(seen)
    return torch.where(every.weight_N > 0, every.labels_N, IGNORED).view_as(seen.tokens_BT)
