"""How many runs of an experiment train side by side, and what one takes beside its training."""

from __future__ import annotations

import os
from collections.abc import Iterable

from workbench.experiments.budget import Share

START_SECONDS = 5.0
"""Of a run beside its training: start-up, scoring, saving."""


def at_once(shares: Iterable[Share]) -> int:
    """Runs side by side: of one GPU one, of cores as many as have their threads."""
    threads = max(share.threads for share in shares)
    return max(1, (os.cpu_count() or 1) // threads) if threads else 1
