"""The result of a run, for people and machines: one JSON object, a verdict in words, a JUnit file for CI."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError, RunFailed, TargetMissed
from workbench.base.files import write_bytes
from workbench.base.json_lines import finite
from workbench.base.text import count, decimal, facts_html, plain, plain_lines
from workbench.store.evaluations import benchmark_scores
from workbench.store.folder import write_json
from workbench.store.measured import bits_per_byte, failure, heldout_loss, last_result, learned_in_words, measured
from workbench.store.regression import TOLERANCES, require_as_good, spent_text
from workbench.store.state import ENDED_WELL
from workbench.telemetry.quantities import SECONDS_TRAINED
from workbench.telemetry.streams import number

if TYPE_CHECKING:
    from workbench.store.view import RunView


from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.base.errors import WorkbenchError

if TYPE_CHECKING:
    import pandas

# A traceback with the log's last words fits; a whole log does not belong into a result.
LONGEST_ERROR = 10_000
WHOLE = ("recipe", "environment")
"""Parts of a result that say how the run was made rather than what it achieved."""


class Result(dict[str, Any]):
    """The result of a run so far: JSON-able, and each key is an attribute, too.

    Numbers that are not known (yet) are None, as is a loss that is not finite.

    Keys:
        run, name, path, state: id, name, folder and status of the run.
        steps, tokens, seconds, tokens_per_second: of training; seconds without start-up and compilation.
        train_loss, heldout_loss: nats; the first over the last 50 steps, while a run goes on of the last step.
        bits_per_byte: of the held-out text. score: how it was scored.
        unigram_entropy, bigram_entropy: the baselines of word frequencies and neighbours, nats.
        learned: as :data:`workbench.telemetry.baselines.Learned`, None where nothing can be claimed; learned_in_words:
        a sentence. mfu, parameters, useful_flops, stopped_early: as the run wrote them at its end.
        scores: of benchmarks, and of held-out tokens in windows that training has seen or not, by name: value, unit,
        count, better, and the step that was scored.
        target_loss, target_met: see :meth:`against`. error: why it failed, else empty.
        recipe, environment: whole, so that this object alone is enough to run it again.

    Example:
        >>> run.result.heldout_loss  # doctest: +SKIP
        5.0712
    """

    @classmethod
    def of(cls, view: RunView, path: str | Path = "", target_loss: float | None = None) -> Result:
        """Return the result from one reading of a run.

        Args:
            path: of the run's folder.
            target_loss: held-out loss in nats that was to be reached, if any.
        """
        known, references = last_result(view), view.references
        # A loss that is not finite is none: JSON has no word for it, and it can meet no target.
        loss = finite(heldout_loss(view))
        train_loss = known.get("train_loss", view.state.get("loss"))
        found = cls(
            run=view.id,
            name=plain(view.name, 80),
            path=str(path),
            state=view.status,
            steps=_whole(measured(view, "steps")),
            tokens=_whole(measured(view, "tokens")),
            seconds=finite(measured(view, "seconds")),
            tokens_per_second=finite(measured(view, "tokens_per_second")),
            train_loss=finite(number(train_loss)),
            heldout_loss=loss,
            bits_per_byte=finite(bits_per_byte(view)),
            score=references.score,
            unigram_entropy=references.levels.get("word frequencies"),
            bigram_entropy=references.levels.get("neighbours"),
            learned=references.learned(loss),
            learned_in_words=learned_in_words(view),
            mfu=finite(measured(view, "mfu")),
            parameters=known.get("parameters", view.environment.get("parameters")),
            useful_flops=known.get("useful_flops"),
            stopped_early=known.get("stopped_early"),
            scores={
                name: asdict(score) | {"step": step} for name, (step, score) in benchmark_scores(view.scores).items()
            },
            error=failure(view)[:LONGEST_ERROR],
            recipe=view.recipe,
            environment=view.environment,
        )
        return found.against(target_loss)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a result has no '{name}'; it has {', '.join(self)}") from None

    def against(self, target_loss: float | None) -> Result:
        """Return it with a target: a held-out loss in nats, None for none; a loss that is not known misses it.

        Raises:
            RunError: as for :func:`check_target`.
        """
        check_target(target_loss)
        loss = self["heldout_loss"]
        met = None if target_loss is None else loss is not None and loss <= target_loss
        return Result(self, target_loss=target_loss, target_met=met)

    def require(
        self,
        reference_loss: float | None = None,
        tolerance: float = TOLERANCES["nats"],
        *,
        score: str | None = None,
        budget: str | None = None,
    ) -> None:
        """Raise unless the run ended well and met its target: the last line of a notebook that CI judges.

        Args:
            reference_loss: held-out loss in nats that an earlier run of the recipe ended with; None: not judged.
            tolerance: nats that this one may lie above it.
            score: how the earlier run was scored. budget: its own, as in ``60 steps``; None where nobody knows.

        Raises:
            RunFailed: it failed, is lost, or has not ended.
            TargetMissed: it ended above its target loss, worse than the reference, or is scored in another way.
        """
        if self["state"] not in ENDED_WELL:
            raise RunFailed(self.verdict)
        if self["target_met"] is False:
            raise TargetMissed(self.verdict)
        what = plain(self["name"])
        if reference_loss is not None and score is not None and score != self["score"]:
            raise TargetMissed(f"{what} is scored by '{self['score']}', the original by '{score}': their losses do not "
                               "compare; set reference_loss to None, or to a loss of this score")  # fmt: skip
        require_as_good(what, self["heldout_loss"], reference_loss, tolerance, note=self._other_budget(budget))

    def _other_budget(self, before: str | None) -> str:
        """Say that the budget differs from the one before, which explains a worse end; empty where it does not."""
        known = (self["recipe"] or {}).get("budget") or {}
        now = spent_text(known.get("amount"), known.get("unit"))
        return "" if before is None or now == before else f"its budget was changed to {now} from {before}"

    def write(self, path: str | Path) -> Path:
        """Write it as JSON at ``path`` and as JUnit XML beside it (``.xml``), each whole or not at all.

        Returns:
            The path of the JSON file.

        Raises:
            OSError: the folder cannot be written.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, dict(self))
        write_bytes(path.with_suffix(".xml"), self.junit())
        return path

    @property
    def brief(self) -> dict[str, Any]:
        """Without recipe, environment, and a target that was not given."""
        skipped = {*WHOLE, *(("target_loss", "target_met") if self["target_loss"] is None else ())}
        return {key: value for key, value in self.items() if key not in skipped}

    @property
    def verdict(self) -> str:
        """Return one sentence: loss, what was learned, target met or missed."""
        name, state = plain(self["name"]), self["state"]
        if state in ("failed", "lost"):
            return f"{name} {state}: {self['error'] or 'no reason was written; see worker.log in the run folder'}"
        loss, sentence = self["heldout_loss"], f"{name} {state} without a held-out loss"
        if loss is not None:
            baselines = [self["unigram_entropy"], self["bigram_entropy"]]
            known = " (word frequencies {}, neighbours {}): ".format(*map(_baseline, baselines))
            between = "; what it has learned is " if baselines == [None, None] else known
            sentence = f"{name} {state} at held-out loss {loss:.3f} nats{between}{self['learned_in_words']}"
        if self["target_loss"] is None:
            return sentence
        target = "target met" if self["target_met"] else "target missed"
        return f"{sentence}; {target}: {'none' if loss is None else f'{loss:.3f}'} against {self['target_loss']:.3f}"

    def junit(self) -> bytes:
        """Return a JUnit test suite of two cases, ``run`` and ``target``, UTF-8."""
        name, seconds = plain(self["name"]), f"{self['seconds'] or 0:.3f}"
        broken, missed = self["state"] not in ENDED_WELL, self["target_met"] is False
        # A run that broke has not also missed its target: CI is to show the one cause.
        suite = ElementTree.Element(
            "testsuite", name="workbench", tests="2", failures=str(int(missed and not broken)), errors=str(int(broken)),
            skipped=str(int(self["target_loss"] is None)), time=seconds,
        )  # fmt: skip
        ran = ElementTree.SubElement(suite, "testcase", classname=name, name="run", time=seconds)
        target = ElementTree.SubElement(suite, "testcase", classname=name, name="target", time="0")
        # XML 1.0 cannot hold control characters, not even escaped: one terminal code in a log would void the file.
        text = plain_lines(self.verdict)
        if broken:
            ElementTree.SubElement(ran, "error", message=plain(text, 300)).text = text
        elif missed:
            ElementTree.SubElement(target, "failure", message=plain(text, 300)).text = text
        if self["target_loss"] is None:
            ElementTree.SubElement(target, "skipped", message="no target was given")
        return ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)

    def __str__(self) -> str:
        return self.verdict

    def __repr__(self) -> str:
        return f"<{plain(self.verdict, 300)}>"

    def _repr_html_(self) -> str:
        return facts_html({
            "run": f"{plain(self['name'])}: {self['state']}",
            "held-out loss (nats)": decimal(self["heldout_loss"], 3),
            "word frequencies (nats)": decimal(self["unigram_entropy"], 3),
            "neighbours (nats)": decimal(self["bigram_entropy"], 3),
            "what was learned": self["learned_in_words"],
            "tokens/s": count(self["tokens_per_second"]),
            SECONDS_TRAINED: decimal(self["seconds"], 1),
            "folder": self["path"],
            "error": self["error"],
        })  # fmt: skip


def check_target(target_loss: object, called: str = "target_loss") -> None:
    """Refuse what no held-out loss can be held against, best before anything trains; None is no target.

    Args:
        called: what the message calls it.

    Raises:
        RunError: it is no finite number.
    """
    if target_loss is not None and not (
        isinstance(target_loss, Real) and not isinstance(target_loss, bool) and math.isfinite(target_loss)
    ):
        raise RunError(f"{called}: {target_loss!r:.60} is no held-out loss; give nats, such as 6.5, or none")


def _whole(value: float | None) -> int | None:
    return None if finite(value) is None else int(value or 0)


def _baseline(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def frame(rows: Sequence[dict[str, Any]]) -> pandas.DataFrame:
    """Return rows as a table of pandas.

    Raises:
        WorkbenchError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise WorkbenchError(
            "frame() makes a table of pandas, which is not installed: `pip install pandas`, or take the same rows "
            "as a list of dictionaries from .rows"
        ) from None
    return pandas.DataFrame(rows)
