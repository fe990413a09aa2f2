"""Tell what the study of methods found: by method, and as a page of all verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.bench.study_tracks import BASELINE


def rows(section: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return what is said of every method, by its name and by the head of the column."""
    pace, took = section["shares"][BASELINE]["seconds_per_step"], section.get("compilation")
    found: dict[str, dict[str, str]] = {}
    for each in section["verdicts"]:
        name, estimate = each["arm"], each["estimate"]
        found[name] = {
            "verdict": (each["verdict"] or "none") + (f" ({each['reason']})" if each["reason"] else ""),
            "speed-up": each["speedup"]["text"] if each["speedup"] else "",
            "difference, nats": ""
            if estimate is None
            else f"{estimate['mean']:+.3f} ({estimate['low']:+.3f} to {estimate['high']:+.3f})",
            "seeds": "" if estimate is None else str(estimate["seeds"]),
            "rate": f"{section['recipes'][name]['optimizer']['lr']:g}",
            "time per step": f"{section['shares'][name]['seconds_per_step'] / pace:.2f}x",
        }
        if took:
            ratio = section["with_compilation"].get(name)
            found[name] |= {
                "compilation": f"{took[name]:.0f} s",
                "speed-up, compilation counted": ratio["text"] if ratio else "",
            }
    return found


def with_compilation(speedup: Mapping[str, Any], seconds: float, base: float, arm: float) -> dict[str, Any]:
    """Return a speed-up of which compilation is a part, on both sides.

    Args:
        speedup: the fields of a :class:`~workbench.experiments.race.speedup.Speedup`.
        seconds: of training at the race's budget. base, arm: of compiling the baseline, and the arm.
    """

    def counted(ratio: float) -> float:
        return (ratio * seconds + base) / (seconds + arm)

    ends, shown = [speedup[key] and counted(speedup[key]) for key in ("factor", "low", "high")], []
    for end, text in zip(ends, speedup["shown"], strict=True):
        # Beyond what was measured, as "> 2x".
        sign, _, bound = text.rpartition(" ")
        shown.append(f"{end:.2g}x" if end else f"{sign} {counted(float(bound.rstrip('x'))):.2g}x")
    return {**dict(zip(("factor", "low", "high"), ends, strict=True)), "text": "{} ({} to {})".format(*shown)}


def page(data: Mapping[str, Any], lacking: Mapping[str, Sequence[str]]) -> str:
    """Return all verdicts as Markdown.

    Args:
        lacking: methods without a verdict, by track and section.
    """
    lines = [
        "# Every method against the baseline", "",
        "Written by `workbench bench study`; every reading stands in [study.json](results/study.json).", "",
        "A track is a baseline and changes to it. Rate and warm-up of every arm were tuned by the same search, on a "
        "seed that no race sees, at as many steps as fit into the baseline's reference time. Verdicts are those of a "
        "race on the same seeds, judged after 4, 6 and 10 of them; where there is no difference, at most one "
        "section in 20 claims one; equivalent is within 0.02 nats. The speed-up says how much longer the baseline "
        "trains to be as good. A verdict holds for this size, text and budget, and for no other.",
    ]  # fmt: skip
    for name, section in data["sections"].items():
        track, _, title = name.partition("/")
        where, methods = section["measured"], rows(section)
        heads = ("method", *next(iter(methods.values()), ()))
        lines += ["", f"## {title}, track {track}", "",
                  f"{section['steps']} steps of the baseline ({section['budget']}); it ends "
                  f"{section['baseline_below_unigram']:.2f} nats below word frequencies. Measured on "
                  f"{where['processor']}, {where['date']}, revision {where['revision']}.", "",
                  f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]  # fmt: skip
        lines += [f"| {' | '.join((method, *row.values()))} |" for method, row in methods.items()]
        if took := section.get("compilation"):
            lines += ["", f"Compiled: the baseline compiles for {took[BASELINE]:.0f} s where nothing of it is in the "
                      "compiler's cache, each arm as long as its row says, all stages of its schedule together. "
                      "Verdicts and speed-ups leave that out; the last column counts it on both sides."]  # fmt: skip
        lines += [f"\nNot in this track: {arm} ({why})." for arm, why in section["refused"].items()]
    if lacking:
        lines += ["", "## Not raced yet", "", "These carry no verdict on their loss here.", ""]
        lines += [f"* {place}: {', '.join(names)}" for place, names in lacking.items()]
    return "\n".join(lines) + "\n"
