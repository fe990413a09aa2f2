"""The outcome of a race for machines: JSON, a JUnit file for CI, and whether an arm failed it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.base.errors import TargetMissed, check_known
from workbench.base.files import write_bytes
from workbench.base.json_lines import finite
from workbench.base.text import plain, plain_lines
from workbench.experiments.race.plan import RacePlan
from workbench.experiments.race.sentences import sentence, summary
from workbench.experiments.race.status import Standing, Verdict, run_folder
from workbench.experiments.result import ExperimentResult
from workbench.experiments.trained_on import trained_on
from workbench.telemetry.baselines import MARGIN_NATS

FAIL_ON = ("never", "worse", "undecided", "not-better")
"""What fails a race in CI, each with all before it: nothing; an arm that is worse or has failed; one that is
undecided; one that is not better."""


def rows(plan: RacePlan, now: Standing) -> list[dict[str, Any]]:
    """One row per run that there is: ``arm, seed, ratio, run, status, heldout_loss, bits_per_byte, left_floor,
    seconds`` (of training) and ``difference`` (to the baseline at this seed, in the unit of the score), None where
    unknown."""
    found = []
    for entry, reading in now.readings.items():
        if reading.status == "missing":
            continue
        pair = [now.scores(plan, arm, [entry.seed], entry.ratio)[0] for arm in (entry.arm, plan.baseline)]
        paired = entry.arm != plan.baseline
        found.append({
            **entry._asdict(), "run": plan.run_id(entry), "status": reading.status,
            "heldout_loss": finite(reading.loss), "bits_per_byte": finite(reading.bits_per_byte),
            "left_floor": reading.left_floor if reading.status == "done" else None,
            "seconds": finite(reading.seconds), "difference": finite(pair[0] - pair[1]) if paired else None,
        })  # fmt: skip
    return found


class RaceResult(ExperimentResult):
    """What a race says, or says so far: JSON-able, and each key is an attribute, too.

    Keys:
        race, name, status, score, budget, clock, seeds, looks, alpha, margin, baseline: as asked.
        arms: recipe and share of the budget, by name.
        verdicts: of each arm, see :class:`~workbench.experiments.race.status.Verdict`; None for one that failed. runs:
        see
            :func:`rows`.
        trained_on: see :func:`~workbench.experiments.trained_on.trained_on`. cost, warnings, note, error, summary.
        verdict, difference, interval, speedup, to_target, p: of the first arm beside the baseline, for races of two;
            None where unknown.
    """

    noun = "race"

    @classmethod
    def of(cls, plan: RacePlan, now: Standing, status: str, note: str = "") -> RaceResult:
        """From one reading of a race."""
        first = next(iter(now.verdicts.values()))
        found, ratio = first.estimate, first.speedup
        return cls(
            race=plan.id,
            name=plan.name,
            status=status,
            verdict=verdict_as_json(plan, first)["verdict"],
            difference=found.mean if found else None,
            interval=[found.low, found.high] if found else None,
            p=found.p if found else first.counts_p,
            speedup=ratio and {"text": ratio.text, "factor": ratio.factor, "low": ratio.low, "high": ratio.high},
            to_target=verdict_as_json(plan, first)["to_target"],
            score=plan.score,
            budget=plan.budget,
            clock=plan.clock,
            seeds=plan.seeds,
            looks=plan.design.looks,
            alpha=plan.design.alpha * len(plan.others),
            margin=plan.margin,
            baseline=plan.baseline,
            arms={arm: {"recipe": plan.arms[arm], "share": asdict(plan.shares[arm])} for arm in plan.arms},
            verdicts=[verdict_as_json(plan, each) for each in now.verdicts.values()],
            runs=rows(plan, now),
            trained_on=trained_on(run_folder(plan, entry) for entry in now.readings),
            cost=asdict(plan.cost),
            warnings=plan.warnings,
            note=note,
            error=now.failed,
            summary=summary(plan, now, status, note),
        )

    def __repr__(self) -> str:
        # A notebook's last line: whole recipes would scroll the verdict away.
        sentences = "; ".join(str(verdict["sentence"]) for verdict in self["verdicts"])
        return f"<race {plain(self['name'], 60)} {self['status']}: {plain(sentences, 400)}>"

    def failures(self, fail_on: str) -> dict[str, str]:
        """Arms that fail the race, each with its sentence.

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
        """Arms of which there was nothing to compare, since no seed learned anything; each with its sentence."""
        return {arm["arm"]: arm["sentence"] for arm in self["verdicts"] if arm.get("unmeasured")}

    @property
    def gate_note(self) -> str:
        """What a gate that lets the race pass has to say with it; empty where every arm was compared."""
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
        """As a JUnit test suite, UTF-8: a case for the race itself with the baseline's time, and one per arm.

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
        """That the runs of arms trained, all together."""
        return f"{sum(run.get('seconds') or 0.0 for run in self['runs'] if run['arm'] in arms):.3f}"


def check_fail_on(fail_on: str) -> None:
    """Refuse what is none of :data:`FAIL_ON`.

    Raises:
        WorkbenchError: the message lists them.
    """
    check_known("fail_on", fail_on, FAIL_ON)


def verdict_as_json(plan: RacePlan, verdict: Verdict) -> dict[str, Any]:
    """A verdict with its sentence, JSON-able; of an arm that failed there is none, which is not undecided."""
    found = verdict.estimate
    ratio, target = ({**asdict(each), "text": each.text} if each else None
                     for each in (verdict.speedup, verdict.to_target))  # fmt: skip
    word = None if verdict.reason == "failed" else verdict.verdict
    return {
        **asdict(verdict), "verdict": word, "estimate": found._asdict() if found else None, "speedup": ratio,
        "to_target": target, "unmeasured": verdict.unmeasured, "sentence": sentence(plan, verdict),
    }  # fmt: skip
