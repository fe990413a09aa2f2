"""The study of methods as tables: in the terminal, and as a page of all verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.bench.study_tracks import BASELINE

HEADS = ("method", "verdict", "speed-up", "difference, nats", "seeds", "rate", "time per step")
COMPILED = ("compilation", "speed-up, compilation counted")
"""Further heads of a section that is compiled."""


def rows(section: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Per arm what :data:`HEADS` says."""
    pace = section["shares"][BASELINE]["seconds_per_step"]
    found: list[tuple[str, ...]] = []
    for each in section["verdicts"]:
        name, estimate = each["arm"], each["estimate"]
        numbers = ("", "") if estimate is None else (
            f"{estimate['mean']:+.3f} ({estimate['low']:+.3f} to {estimate['high']:+.3f})", str(estimate["seeds"])
        )  # fmt: skip
        word = (each["verdict"] or "none") + (f" ({each['reason']})" if each["reason"] else "")
        ratio = each["speedup"]["text"] if each["speedup"] else ""
        rate = f"{section['recipes'][name]['optimizer']['lr']:g}"
        row = (name, word, ratio, *numbers, rate, f"{section['shares'][name]['seconds_per_step'] / pace:.2f}x")
        found.append((*row, *_compiled(section, name)))
    return found


def heads(section: Mapping[str, Any]) -> tuple[str, ...]:
    """The titles of :func:`rows`."""
    return (*HEADS, *(COMPILED if section.get("compilation") else ()))


def with_compilation(speedup: Mapping[str, Any], seconds: float, base: float, arm: float) -> dict[str, Any]:
    """A speed-up of which compilation is a part, on both sides.

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


def _compiled(section: Mapping[str, Any], name: str) -> tuple[str, ...]:
    if not (took := section.get("compilation")):
        return ()
    ratio = section["with_compilation"].get(name)
    return f"{took[name]:.0f} s", ratio["text"] if ratio else ""


def show(title: str, section: Mapping[str, Any], console: Console) -> None:
    """The table of one section."""
    table = Table(*heads(section), title=title)
    for row in rows(section):
        table.add_row(*row)
    console.print(table)
    for name, why in section["refused"].items():
        console.print(f"not in this track: {name} ({why})", markup=False)


def page(data: Mapping[str, Any], lacking: Mapping[str, Sequence[str]]) -> str:
    """All verdicts as Markdown.

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
        where = section["measured"]
        lines += ["", f"## {title}, track {track}", "",
                  f"{section['steps']} steps of the baseline ({section['budget']}); it ends "
                  f"{section['baseline_below_unigram']:.2f} nats below word frequencies. Measured on "
                  f"{where['processor']}, {where['date']}, revision {where['revision']}.", "",
                  f"| {' | '.join(heads(section))} |", "|" + " --- |" * len(heads(section))]  # fmt: skip
        lines += [f"| {' | '.join(row)} |" for row in rows(section)]
        if took := section.get("compilation"):
            lines += ["", f"Compiled: the baseline compiles for {took[BASELINE]:.0f} s where nothing of it is in the "
                      "compiler's cache, each arm as long as its row says, all stages of its schedule together. "
                      "Verdicts and speed-ups leave that out; the last column counts it on both sides."]  # fmt: skip
        lines += [f"\nNot in this track: {arm} ({why})." for arm, why in section["refused"].items()]
    if lacking:
        lines += ["", "## Not raced yet", "", "These carry no verdict on their loss here.", ""]
        lines += [f"* {place}: {', '.join(names)}" for place, names in lacking.items()]
    return "\n".join(lines) + "\n"
