"""Baselines that a held-out loss is held against, and the four words for what it shows was learned.

Two predictors that read no context, or next to none, are scored on the very positions that a model is scored on:

* *unigram*: the frequencies of the training text, add-one. A model that ignores its input reaches this and no less.
* *neighbours*: Witten-Bell interpolated bigrams of the training text; the left one for causal models, the product of
  the left and the right one over the unigram for masked models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

ScoreKind = Literal["masked-only", "next-token", "80-10-10", "own-loss", "examples"]
Learned = Literal["nothing yet", "word frequencies", "neighbours", "context"]

MARGIN_NATS = 0.1
"""A loss must lie this far below the unigram baseline before more than word frequencies is credited to the model."""
TOLERANCE_NATS = 0.02
"""A loss this little above the unigram baseline still counts as word frequencies: rounding and sampling explain it."""


class Baselines(NamedTuple):
    """Losses of predictors without a model, in nats per scored token.

    Attributes:
        unigram: of word frequencies.
        neighbours: of the nearest visible tokens; NaN where a run was scored before this baseline existed.
    """

    unigram: float
    neighbours: float = math.nan


def learned(loss: float, baselines: Baselines) -> Learned:
    """Return the word for a held-out loss in nats, scored on the positions that the baselines were scored on.

    A loss that is not finite has learned nothing. Without a neighbours' baseline, "neighbours" is the best verdict.

    Example:
        >>> baselines = Baselines(unigram=6.37, neighbours=3.86)
        >>> [learned(loss, baselines) for loss in (6.41, 6.36, 4.90, 3.80)]
        ['nothing yet', 'word frequencies', 'neighbours', 'context']
    """
    if not loss <= baselines.unigram + TOLERANCE_NATS:
        return "nothing yet"
    if loss > baselines.unigram - MARGIN_NATS:
        return "word frequencies"
    return "context" if loss < baselines.neighbours else "neighbours"


def learned_briefly(word: Learned) -> str:
    """Return a word of :func:`learned` where there is room for no number; of "neighbours" no baseline was reached yet.

    Example:
        >>> [learned_briefly(word) for word in ("nothing yet", "neighbours", "context")]
        ['learned: nothing yet', 'learning neighbours', 'uses context']
    """
    return {"neighbours": "learning neighbours", "context": "uses context"}.get(word, f"learned: {word}")


def learned_in_words(loss: float, baselines: Baselines) -> str:
    """Return words for a held-out loss in nats between the baselines, claiming no baseline that it has not reached.

    Example:
        >>> baselines = Baselines(unigram=6.37, neighbours=3.86)
        >>> [learned_in_words(loss, baselines) for loss in (6.36, 3.80)]
        ['has learned word frequencies only', 'uses context: 0.06 nats below neighbour counts']
        >>> learned_in_words(3.858, baselines)
        'uses context: less than 0.01 nats below neighbour counts'
        >>> learned_in_words(4.90, baselines)
        'learning neighbours: 1.47 nats below word frequencies, 1.04 above neighbour counts'
        >>> learned_in_words(324_103.0, baselines)
        'has learned nothing: it ends 324,097 nats above word frequencies, as after too few steps or too high a rate'
    """
    word = learned(loss, baselines)
    if word == "context":
        below = baselines.neighbours - loss
        nats = f"{below:.2f}" if below >= 0.01 else "less than 0.01"
        return f"{learned_briefly(word)}: {nats} nats below neighbour counts"
    if word == "neighbours":
        above = loss - baselines.neighbours
        more = f", {above:.2f} above neighbour counts" if math.isfinite(above) else ""
        return f"{learned_briefly(word)}: {baselines.unigram - loss:.2f} nats below word frequencies{more}"
    # A new model says every word with equal chance, at most half as many nats again: what lies beyond has diverged.
    if loss > 2 * baselines.unigram:
        nats = f"{loss - baselines.unigram:,.0f} nats"
        return f"has learned nothing: it ends {nats} above word frequencies, as after too few steps or too high a rate"
    return f"has learned {word}{' only' if word == 'word frequencies' else ''}"


MOST_OVERLAP = 0.005
"""Share of held-out 13-grams that may stand in the training text before a score is said to be of known text."""


def known_text(overlap: float | None) -> str:
    """Return what a score of text that training has partly seen has said with it; empty below :data:`MOST_OVERLAP`.

    Args:
        overlap: share of the held-out text's word 13-grams that also stand in the training text, if that is known.

    Example:
        >>> known_text(0.65)
        'but 65% of the held-out text, by runs of 13 words, also stands in the training text'
        >>> known_text(0.001)
        ''
    """
    if overlap is None or overlap <= MOST_OVERLAP:
        return ""
    share = f"{overlap:.0%}" if overlap >= 0.01 else f"{overlap:.1%}"
    return f"but {share} of the held-out text, by runs of 13 words, also stands in the training text"


SCORE_VERSION = 2
"""Version of the held-out score: 1 scored masked models at 80/10/10, where copying labels passes for learning."""
SCORE_TITLES = {
    "masked-only": "held-out loss at [MASK]",
    "next-token": "held-out loss of the next token",
    "80-10-10": "80/10/10 score",
    "own-loss": "held-out loss",
    "examples": "dev loss",
}
"""Title of a held-out loss, by the kind of its score."""


class References(NamedTuple):
    """Measure of a run's held-out losses, read from its folder.

    Attributes:
        score: ``masked-only``, ``next-token``, or ``80-10-10`` for masked runs of before the score was changed;
            ``own-loss`` where the user's own loss is the score.
        baselines: to hold the losses against; None if the run did not record them, or if a copying model passes its
            score: then nothing is claimed about what was learned.
        training_baseline: nats that the training loss has without context where it asks for words that are shown;
            None where it shows none of them, as next-token prediction.
        heldout_overlap: share of the held-out text's word 13-grams that also stand in the training text.
    """

    score: ScoreKind
    baselines: Baselines | None = None
    training_baseline: float | None = None
    heldout_overlap: float | None = None

    @classmethod
    def of(cls, evaluations: Mapping[str, Any], environment: Mapping[str, Any], *, causal: bool) -> References:
        """From a run's ``evaluations.json`` and ``environment.json``; either may be empty.

        Args:
            causal: whether the objective predicts next tokens, for runs that were scored before scores had names.
        """
        recorded = {**environment, **{key: value for key, value in evaluations.items() if value is not None}}
        score = recorded.get("score")
        kind = score.get("kind") if isinstance(score, Mapping) else None
        if not isinstance(kind, str) or kind not in SCORE_TITLES:
            # A run that has recorded nothing yet will be scored as runs are today.
            kind = "next-token" if causal else "80-10-10" if recorded else "masked-only"
        unigram, neighbours = _number(recorded.get("unigram_entropy")), _number(recorded.get("bigram_entropy"))
        baselines = None
        if unigram is not None and kind != "80-10-10":
            baselines = Baselines(unigram, math.nan if neighbours is None else neighbours)
        return cls(
            cast(ScoreKind, kind),
            baselines,
            # Runs of before stored the entropy of their training text here: word frequencies, on another text.
            None if kind == "next-token" else _number(recorded.get("training_floor")),
            _number(recorded.get("heldout_overlap")),
        )

    @property
    def title(self) -> str:
        """Return what a held-out loss of this score is called on axes and in tables."""
        return SCORE_TITLES[self.score]

    @property
    def levels(self) -> dict[str, float]:
        """Lines to compare losses with, nats by name: the baselines, and the training loss without context."""
        lines: dict[str, float] = {}
        if self.baselines is not None:
            lines["word frequencies"] = self.baselines.unigram
            if math.isfinite(self.baselines.neighbours):
                lines["neighbours"] = self.baselines.neighbours
        if self.training_baseline is not None:
            lines["training without context"] = self.training_baseline
        return lines

    def learned(self, loss: float | None) -> Learned | None:
        """Return the word for a held-out loss in nats; None without a loss or baselines."""
        return None if loss is None or self.baselines is None else learned(loss, self.baselines)


def is_causal(recipe: object) -> bool:
    """Return whether the objective of a ``recipe.json`` predicts next tokens; False of anything damaged."""
    objective = recipe.get("objective") if isinstance(recipe, Mapping) else None
    # By its name: every objective of the time before scores had names was "causal" or was not causal.
    return isinstance(objective, Mapping) and objective.get("kind") == "causal"


def _number(value: object) -> float | None:
    """Return a finite number of a run's JSON; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON knows integers of any length
        return None
    return number if math.isfinite(number) else None
