"""The outcome of a race for machines: JSON, a JUnit file for CI, and whether an arm failed it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from workbench.base.errors import TargetMissed
from workbench.base.files import write_bytes
from workbench.base.text import plain, plain_lines
from workbench.experiments.result import FAIL_ON, ExperimentResult, check_fail_on
from workbench.telemetry.baselines import MARGIN_NATS


class RaceResult(ExperimentResult):
    """The result of a race, or its result so far; see :class:`ExperimentResult`.

    Keys:
        race, name, status, score, budget, clock, seeds, looks, alpha, margin, baseline: as asked.
        arms: recipe and share of the budget, by name.
        verdicts: of each arm, see :class:`~workbench.experiments.race.verdicts.Verdict`; None for one that failed.
        runs: see :attr:`~workbench.experiments.race.race_words.RaceSnapshot.rows`.
        trained_on: see :func:`~workbench.experiments.readings.trained_on`. cost, warnings, note, error, summary.
        verdict, difference, interval, speedup, to_target, p: of the first arm beside the baseline, for races of two;
            None where unknown.
    """

    noun: ClassVar[str] = "race"

    def __repr__(self) -> str:
        # A notebook's last line: whole recipes would scroll the verdict away.
        sentences = "; ".join(str(verdict["sentence"]) for verdict in self["verdicts"])
        return f"<race {plain(self['name'], 60)} {self['status']}: {plain(sentences, 400)}>"

    def failures(self, fail_on: str) -> dict[str, str]:
        """Return the arms that fail the race, each with its sentence.

        Raises:
            WorkbenchError: ``fail_on`` is none of :data:`FAIL_ON`.
        """
        check_fail_on(fail_on)
        level = FAIL_ON.index(fail_on)

        def fails(arm: Mapping[str, Any]) -> bool:
            worse = arm["verdict"] == "worse" or arm["reason"] == "failed"
            undecided = worse or arm["verdict"] == "undecided"
            return (False, worse, undecided, arm["verdict"] != "better")[level]

        return {arm["arm"]: arm["sentence"] for arm in self["verdicts"] if fails(arm)}

    @property
    def unmeasured(self) -> dict[str, str]:
        """Arms without anything to compare, since no seed learned anything; each with its sentence."""
        return {arm["arm"]: arm["sentence"] for arm in self["verdicts"] if arm.get("unmeasured")}

    @property
    def gate_note(self) -> str:
        """A remark for a gate that lets the race pass; empty where every arm was compared."""
        named = ", ".join(plain(arm) for arm in self.unmeasured)
        none = f"no seed of it or of {plain(self['baseline'])} got more than {MARGIN_NATS} nats below word frequencies"
        return named and f"nothing was compared for {named}: {none}; give the race a larger budget"

    def require(self, fail_on: str = "worse") -> None:
        """Raise unless the race ended and no arm fails it: the last line of a notebook that CI judges.

        Raises:
            RunFailed: it failed, was cancelled, or has not ended.
            TargetMissed: an arm fails it.
        """
        failed = self.failures(fail_on)
        super().require()
        if failed:
            raise TargetMissed("; ".join(failed.values()))

    def write(self, path: str | Path, fail_on: str = "worse") -> Path:
        """Write it as JSON at ``path`` and as JUnit XML beside it (``.xml``); returns the path of the JSON file.

        Raises:
            OSError: the folder cannot be written.
        """
        path = super().write(path)
        write_bytes(path.with_suffix(".xml"), self.junit(fail_on))
        return path

    def junit(self, fail_on: str = "worse") -> bytes:
        """Return a JUnit test suite, UTF-8: a case for the race itself with the baseline's time, and one per arm.

        Times are the seconds that runs trained. An arm of which there was nothing to compare is skipped.
        """
        failed, broken = self.failures(fail_on), self["status"] != "finished"
        skipped = self.unmeasured.keys() - failed.keys()
        suite = ElementTree.Element(
            "testsuite", name="workbench race", tests=str(1 + len(self["verdicts"])), failures=str(len(failed)),
            errors=str(int(broken)), skipped=str(len(skipped)), time=self._seconds(*self["arms"]),
        )  # fmt: skip
        name = plain(self["name"])
        whole = ElementTree.SubElement(
            suite, "testcase", classname=name, name="race", time=self._seconds(self["baseline"])
        )
        if broken:
            ElementTree.SubElement(whole, "error", message=plain(self["error"] or self["status"], 300))
        for arm in self["verdicts"]:
            case = ElementTree.SubElement(
                suite, "testcase", classname=name, name=plain(arm["arm"]), time=self._seconds(arm["arm"])
            )
            # XML 1.0 cannot hold control characters, not even escaped.
            text = plain_lines(arm["sentence"])
            if arm["arm"] in failed:
                ElementTree.SubElement(case, "failure", message=plain(text, 300)).text = text
            elif arm["arm"] in skipped:
                ElementTree.SubElement(case, "skipped", message=plain(text, 300)).text = text
            else:
                ElementTree.SubElement(case, "system-out").text = text
        return ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)

    def _seconds(self, *arms: str) -> str:
        """Return the seconds that the runs of arms trained, all together."""
        return f"{sum(run.get('seconds') or 0.0 for run in self['runs'] if run['arm'] in arms):.3f}"
