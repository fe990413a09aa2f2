"""``wb.Lesson``: a learner commits to a prediction, the experiment runs, the outcome stands beside it."""

from __future__ import annotations

import os
import pkgutil
import re
import time
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from workbench.base.errors import LessonError
from workbench.base.text import aligned, plain
from workbench.launchers.queue.ticket import present_owner
from workbench.lessons import record
from workbench.lessons.question import Question, Still, moment, value_text, verdict
from workbench.lessons.record import Check, Prediction, Record, Value
from workbench.store.folder import runs_root
from workbench.store.lease import user_name

ASK, SHOW = "workbench.jupyter.lesson_question:ask", "workbench.jupyter.lesson_question:show"
"""The functions that a lesson calls but must not import, since the page stands above it."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")


class Lesson:
    """One learner's way through one lesson.

    What is committed to and answered lies in ``<runs>/lessons/<lesson>/<learner>.json``: it is there after a page was
    loaded again or a kernel was started anew, and a board may show it.

    Args:
        name: of the notebook, without its number: ``did_it_learn`` of ``60_did_it_learn.ipynb``.
        learner: else the owner that runs get: ``$WORKBENCH_OWNER``, else the user.
        runs: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``. ``lesson.runs`` has its path.

    Raises:
        LessonError: the name is not of this form, the learner's name is taken by another account, or the learner's
            file cannot be read.

    Example:
        >>> lesson = wb.Lesson("did_it_learn")  # doctest: +SKIP
        >>> lesson.predict("which", "Which has learned?", options=["A", "B", "C"])  # doctest: +SKIP
        >>> lesson.committed("which")  # doctest: +SKIP
        'B'
    """

    def __init__(self, name: str, learner: str | None = None, runs: str | Path | None = None) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise LessonError(
                f"lesson '{name}': a lesson is called as its notebook without the number: small letters, digits and _"
            )
        self.name, self.runs = name, runs_root(runs)
        self.learner = plain(present_owner() if learner is None else learner)
        if not self.learner:
            raise LessonError(f"lesson {name}: the learner's name is empty; leave it out to be called as your runs are")
        self._asked: dict[str, Question] = {}
        self.record()

    def record(self) -> Record:
        """Return what the learner has done so far.

        Raises:
            LessonError: it cannot be read, or is another account's.
        """
        found = record.read(self._path)
        if found is None:
            return Record(lesson=self.name, learner=self.learner, account=_account())
        if found.account not in ("", _account()):
            raise LessonError(
                f"lesson {self.name}: '{self.learner}' is the name of somebody else, under the account "
                f"'{found.account}'; give another: wb.Lesson({self.name!r}, learner='{self.learner} 2')"
            )
        return found

    def predict(
        self,
        key: str,
        question: str,
        *,
        options: Sequence[str] | None = None,
        unit: str = "",
        low: float | None = None,
        high: float | None = None,
        given: Any = None,
    ) -> None:
        """Ask for a prediction, or show the one that was committed to.

        Args:
            key: of the prediction within the lesson.
            question: as the learner reads it.
            options: ask for one of these.
            unit, low, high: ask for a number from ``low`` to ``high`` in this unit.
            given: commit to this at once (a notebook's parameter under papermill); None asks.

        Raises:
            LessonError: ``given`` is no legal answer, or another prediction was committed to before.
        """
        asked = self._asked[key] = Question.of(f"lesson {self.name}, {key}", question, options, unit, low, high)
        if given is not None:
            self._commit(key, given)
        if key in self.record().predictions:
            self._show(self._predicted(key))
        else:
            waiting = Still(question, (f"not committed yet: {asked.legal}",), self._whose)
            pkgutil.resolve_name(ASK)(
                asked, waiting, "Commit", lambda answer: self._committing(key, answer), self._whose
            )

    def committed(self, key: str) -> Value:
        """Return the prediction: an option, or a number in the question's unit.

        Raises:
            LessonError: there is none yet.
        """
        return self._prediction(key).value

    def outcome(self, key: str, value: Any, why: str = "") -> None:
        """Keep what came of a prediction, once, and show both.

        Args:
            key: of the prediction.
            value: an option, or a number in the question's unit.
            why: one or two sentences.

        Raises:
            LessonError: nothing was predicted, or ``value`` is no possible outcome.
        """
        made = self._prediction(key)
        asked = self._asked.get(key)
        if asked is None:
            raise LessonError(f"lesson {self.name}, {key}: run the cell that asks for the prediction first")
        found: Value = asked.answer(value) if asked.options else asked.number(value)
        if made.outcome is None:
            # An option is right or not, a number has an error; the other stays unknown.
            graded: dict[str, Any] = (
                {"right": made.value == found}
                if isinstance(made.value, str)
                else {"error": made.value - asked.number(found)}
            )
            made = made.model_copy(update={"outcome": found, "outcome_at": time.time(), **graded})
            self._keep(predictions={key: made})
        lines = [
            f"your prediction: {value_text(made.value, made.unit)}",
            f"the outcome: {value_text(made.outcome, made.unit)}",
            verdict(made),
        ]
        if made.outcome != found:
            lines.append(f"this time: {value_text(found, made.unit)}; the first outcome is the one that counts")
        self._show(Still(made.question, (*lines, *([why] if why else [])), self._whose))

    def check(
        self,
        key: str,
        question: str,
        *,
        options: Sequence[str],
        answer: str,
        hints: Sequence[str] = (),
        why: str = "",
        given: Any = None,
    ) -> None:
        """Ask a question that has an answer; a wrong one is met with the next hint.

        Args:
            key: of the question within the lesson.
            question: as the learner reads it.
            options: the possible answers.
            answer: the right one.
            hints: shown one after another; the last one again and again.
            why: shown with the right answer.
            given: answer at once (under papermill); None asks.

        Raises:
            LessonError: ``given`` or ``answer`` is none of the options.
        """
        asked = Question.of(f"lesson {self.name}, {key}", question, options)
        asked.answer(answer)

        def right() -> Still:
            tries = self.record().checks[key].tries
            return Still(question, (f"{answer}: right, {_ordinal(tries)} answer", *([why] if why else [])), self._whose)

        def submit(chosen: Any) -> tuple[Still | None, str]:
            before = self.record().checks.get(key, Check(question=question))
            known = before.right or asked.answer(chosen) == answer
            tried = Check(question=question, tries=before.tries + (not before.right), right=known)
            self._keep(checks={key: tried})
            if known:
                return right(), ""
            hint = hints[min(tried.tries, len(hints)) - 1] if hints else "try another answer"
            return None, f"Not “{chosen}”. {hint}"

        done = self.record().checks.get(key, Check(question=question)).right
        still, hint = (right(), "") if done else submit(given) if given is not None else (None, "")
        if still is not None:
            self._show(still)
            return
        waiting = Still(question, (hint or f"not answered yet: {asked.legal}",), self._whose)
        pkgutil.resolve_name(ASK)(asked, waiting, "Check", submit, self._whose, hint)

    def summary(self) -> None:
        """Show all predictions with their outcomes, and all questions, as a table."""
        found = self.record()
        rows = [("question", "your answer", "outcome", "")]
        for each in found.predictions.values():
            words = value_text(each.value, each.unit), value_text(each.outcome, each.unit)
            rows.append((each.question, *words, verdict(each) or "the experiment has not ended"))
        for asked in found.checks.values():
            tries = f"{_ordinal(asked.tries)} answer" if asked.right else f"tries: {asked.tries}"
            rows.append((asked.question, "right" if asked.right else "not yet", "", tries))
        if len(rows) == 1:
            rows.append(("nothing predicted or answered yet", "", "", ""))
        cells = ["".join(f"<td style='text-align: left'>{escape(cell)}</td>" for cell in row) for row in rows]
        cells[0] = cells[0].replace("td", "th")
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        text = f"lesson {self.name}, {self._whose}"
        html = f"<p>{escape(text)}</p><table>{table}</table>"
        pkgutil.resolve_name(SHOW)({"text/html": html, "text/plain": f"{text}\n{aligned(rows)}"})

    def restart(self) -> None:
        """Forget all that this learner has predicted and answered in this lesson."""
        self.record()
        self._path.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"Lesson({self.name!r}, learner={self.learner!r}, runs={str(self.runs)!r})"

    @property
    def folder(self) -> Path:
        """Folder for files that this learner's lesson writes, beside the answers; made on first use."""
        folder = self._path.with_suffix("")
        record.make_folder(folder)
        return folder

    @property
    def _path(self) -> Path:
        return record.path_of(self.runs, self.name, self.learner)

    @property
    def _whose(self) -> str:
        return f"{self.learner}'s answers, kept in {self.runs}"

    def _prediction(self, key: str) -> Prediction:
        found = self.record().predictions.get(key)
        if found is None:
            raise LessonError(
                f"lesson {self.name}, {key}: commit to a prediction first: answer above, press Commit, then run this "
                f"cell again (under papermill, give it as a parameter). {self.learner}'s answers are kept in "
                f"{self.runs}; if the notebook was moved, set runs_dir to the old folder"
            )
        return found

    def _commit(self, key: str, given: Any) -> None:
        asked = self._asked[key]
        value, before = asked.answer(given), self.record().predictions.get(key)
        if before is None:
            made = Prediction(question=asked.text, unit=asked.unit, value=value, made_at=time.time())
            self._keep(predictions={key: made})
        elif before.value != value:
            raise LessonError(
                f"{asked.where}: '{value_text(value)}' comes too late: {self.learner} committed to "
                f"'{value_text(before.value)}' at {moment(before.made_at)}, which stands. To begin anew: "
                "lesson.restart(); for somebody else: wb.Lesson(..., learner=...)"
            )

    def _committing(self, key: str, given: Any) -> tuple[Still, str]:
        self._commit(key, given)
        return self._predicted(key), ""

    def _predicted(self, key: str) -> Still:
        made = self._prediction(key)
        lines = [f"your prediction: {value_text(made.value, made.unit)}, committed at {moment(made.made_at)}"]
        if made.outcome is not None:
            lines.append(f"the outcome: {value_text(made.outcome, made.unit)}; {verdict(made)}")
        return Still(made.question, tuple(lines), self._whose)

    def _keep(self, **added: dict[str, Any]) -> None:
        now = self.record()
        merged = {name: {**getattr(now, name), **entries} for name, entries in added.items()}
        now.model_copy(update=merged).write(self._path)

    def _show(self, still: Still) -> None:
        pkgutil.resolve_name(SHOW)(still.bundle)


Submit = Callable[[Any], tuple[Still | None, str]]
"""Takes an answer; returns what stands there from now on, or None and what to say to a wrong one."""


def _account() -> str:
    """Return the account of this process. In a JupyterHub of containers everybody is the same user of the system."""
    return os.environ.get("JUPYTERHUB_USER") or user_name()


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
