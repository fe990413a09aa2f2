"""What a held-out loss says was learned: the floors it is held against, and the four words for where it stands.

Two predictors that read no context, or next to none, are scored on the very positions that a model is scored on:

* *unigram*: the frequencies of the training text, add-one. A model that ignores its input reaches this and no less.
* *neighbours*: Witten-Bell interpolated bigrams of the training text; the left one for causal models, the product of
  the left and the right one over the unigram for masked models.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Learned = Literal["nothing yet", "word frequencies", "neighbours", "context"]

MARGIN_NATS = 0.1
"""A loss must lie this far below the unigram floor before anything but word frequencies is credited to the model."""
TOLERANCE_NATS = 0.02
"""A loss this little above the unigram floor still counts as word frequencies: what rounding and sampling explain."""


class Floors(NamedTuple):
    """Losses of predictors without a model, in nats per scored token.

    Attributes:
        unigram: of word frequencies.
        neighbours: of the nearest visible tokens; NaN where a run was scored before this floor existed.
    """

    unigram: float
    neighbours: float = math.nan


def learned(loss: float, floors: Floors) -> Learned:
    """The word for a held-out loss in nats, scored on the positions that the floors were scored on.

    A loss that is not finite has learned nothing. Without a neighbours' floor, "neighbours" is the most that is said.

    Example:
        >>> floors = Floors(unigram=6.37, neighbours=3.86)
        >>> [learned(loss, floors) for loss in (6.41, 6.36, 4.90, 3.80)]
        ['nothing yet', 'word frequencies', 'neighbours', 'context']
    """
    if not loss <= floors.unigram + TOLERANCE_NATS:
        return "nothing yet"
    if loss > floors.unigram - MARGIN_NATS:
        return "word frequencies"
    return "context" if loss < floors.neighbours else "neighbours"
