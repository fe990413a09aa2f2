"""What a study found, as rows, as a page and as blocks for the methods' cards."""

from __future__ import annotations

import inspect
import math
import re
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.bench.arms import BASELINE, Arm, StudySet
from workbench.bench.study_statistics import Comparison, compare
from workbench.choices.choice import registry

OPEN, CLOSE = "<!-- study -->", "<!-- /study -->"
"""What stands between them in a card is written by the study."""
ENOUGH_NATS = 0.5
"""A baseline that does not end this far below word frequencies has learned too little to compare anything on it."""
HEADER = (
    "| | s/step, of the baseline's | steps | peak lr | held-out losses by seed | difference, nats (95%) | verdict |\n"
    "|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Row:
    """One arm in a table.

    Attributes:
        arm: what was run.
        losses: held-out, nats, by seed; infinite where a run diverged.
        steps, tokens: of a run, medians over seeds.
        lr: peak learning rate.
        cost: seconds per step over the baseline's; None where the budget was not one of time.
        comparison: with what the arm stands against; None for that itself, or where nothing is paired yet.
    """

    arm: Arm
    losses: dict[int, float]
    steps: int
    tokens: int
    lr: float
    cost: float | None
    comparison: Comparison | None

    @property
    def verdict(self) -> str:
        """In words; empty for a baseline."""
        return self.comparison.verdict if self.comparison else ""

    def markdown(self) -> str:
        """The row under :data:`HEADER`."""
        losses = ", ".join("diverged" if math.isinf(loss) else f"{loss:.3f}" for loss in self.losses.values())
        tuned = "" if self.arm.tuned else " (baseline's)"
        found = self.comparison
        difference = found.text if found else ""
        cost = f"{self.cost:.2f}" if self.cost else ""
        return (
            f"| {self.arm.name} | {cost} | {self.steps:,} | {self.lr:.2g}{tuned} | {losses} | {difference} | "
            f"{self.verdict} |"
        )


def rows(study: StudySet, data: Mapping[str, Any]) -> list[Row]:
    """Every arm that has finished runs, in the study's order.

    Args:
        study: the set that was run.
        data: content of its results file.
    """
    found: dict[str, Row] = {}
    finals: dict[str, list[dict[str, Any]]] = {}
    for run in data["runs"].values():
        if run["phase"] == "seed":
            finals.setdefault(run["arm"], []).append(run)
    for arm in study.arms:
        if arm.name not in finals:
            continue
        newest = max(finals[arm.name], key=lambda run: run["finished"])
        # Runs under an earlier rate or budget stay in the file until they are replaced.
        runs = [run for run in finals[arm.name] if (run["lr"], run["budget"]) == (newest["lr"], newest["budget"])]
        losses = {
            run["seed"]: math.inf if run["loss"] is None else run["loss"]
            for run in sorted(runs, key=lambda r: r["seed"])
        }
        against = found.get(arm.against)
        paired = [seed for seed in losses if against and arm.name != arm.against and seed in against.losses]
        comparison = None
        if against is not None and paired:
            comparison = compare([losses[s] for s in paired], [against.losses[s] for s in paired])
        steps, tokens = (int(statistics.median(run[what] for run in runs)) for what in ("steps", "tokens"))
        cost = None if arm.tokens else data["calibration"]["arms"].get(arm.costs_as or arm.name, {}).get("ratio", 1.0)
        found[arm.name] = Row(arm, losses, steps, tokens, newest["lr"], cost, comparison)
    return list(found.values())


def protocol(data: Mapping[str, Any], table: Sequence[Row]) -> str:
    """How it was measured, in a few sentences of Markdown."""
    base, hardware = data["base"], data["hardware"]
    first = next((row for row in table if row.arm.name == BASELINE), None)
    calibration = data["calibration"]
    milliseconds = 1e3 * statistics.median(calibration["baseline_seconds_per_step"])
    size = f"{base.get('architecture.layers', 4)} layers x {base.get('architecture.width', 256)}"
    seeds = f"fresh paired seeds, {len(first.losses)} in all" if first else "no finished baseline yet"
    text = (
        f"{size}, vocabulary {base.get('data.tokenizer.vocabulary_size')}, rows of {base.get('data.sequence_length')} "
        f"tokens, {base.get('data.batch_size')} per step; {data['seconds']:g} s of reference time per run (seconds per "
        f"step calibrated side by side on {calibration['date']}, baseline {milliseconds:.1f} ms), rate decayed to zero "
        f"inside it; {seeds}. {hardware['processor']}, torch {data['versions']['torch']}."
    )
    if first and math.isfinite(sum(first.losses.values())):
        gap = data["unigram_entropy"] - statistics.mean(first.losses.values())
        text += f" The baseline ends {gap:.2f} nats below word frequencies ({data['unigram_entropy']:.3f})."
        if gap < ENOUGH_NATS:
            text += f" **That is less than {ENOUGH_NATS} nats: these runs are too short to tell methods apart.**"
    return text


def power(table: Sequence[Row]) -> str:
    """One honest sentence on what this study could have seen; empty when nothing was compared."""
    reach = [row.comparison.detectable for row in table if row.comparison and row.comparison.detectable]
    if not reach:
        return ""
    return (
        "A verdict needs one-sided p < .01; with these seeds a mean difference of about "
        f"{statistics.median(reach):.3f} nats reaches it (median over the arms); a smaller true one mostly goes unseen."
    )


def page(study: StudySet, data: Mapping[str, Any], picture: str = "") -> str:
    """All arms on one page of Markdown, by section; ``picture`` is a path to show at the top."""
    table = rows(study, data)
    lines = ["# Every method against the baseline, at equal reference time", ""]
    lines += ["Written by `workbench bench methods --study`; every number is in `docs/results/`.", ""]
    if picture:
        lines += [f"![Difference of held-out loss to the baseline, by method]({picture})", ""]
    lines += [_wrapped(protocol(data, table)), ""]
    lines += [_wrapped(power(table)), ""] if power(table) else []
    baseline = [row for row in table if row.arm.name == BASELINE]
    for section in dict.fromkeys(row.arm.section for row in table):
        here = [row for row in table if row.arm.section == section]
        lines += [f"## {section}", "", HEADER]
        # Large batches stand against a row of their own section.
        lines += [row.markdown() for row in (baseline if here[0].arm.against == BASELINE and here != baseline else [])]
        lines += [row.markdown() for row in here] + [""]
    absent = {**data.get("missing", {}), **data.get("failed", {})}
    if absent:
        lines += ["## Not run", ""] + [f"* {name}: {why.splitlines()[-1]}" for name, why in absent.items()] + [""]
    return "\n".join(lines)


def block(study: StudySet, data: Mapping[str, Any], card: str) -> str:
    """What the study says on one card (``axis/kind``), as Markdown; empty when nothing was run for it."""
    table = rows(study, data)
    ours = [row for row in table if card in row.arm.cards]
    if not ours:
        return ""
    # With what each stands against, once, above it.
    names = {row.arm.name for row in ours} | {row.arm.against for row in ours}
    shown = [row for row in table if row.arm.name in names]
    found = [row for row in ours if row.comparison]
    verdicts = "; ".join(f"{row.arm.name}: {row.verdict}" for row in found)
    sentence = f"**Loss at equal reference time.** {verdicts}. " if found else "**Loss at equal reference time.** "
    lines = [_wrapped(sentence + protocol(data, table)), "", HEADER, *(row.markdown() for row in shown)]
    return "\n".join([*lines, "", _wrapped(power(found))]).rstrip()


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def with_block(card: str, text: str) -> str:
    """The card with ``text`` between the study's marks, whatever stood there before.

    A card without marks gets them at the end of "Evidence here".
    """
    filled = f"{OPEN}\n{text}\n{CLOSE}"
    # A function as replacement: backslashes of formulas must stay what they are.
    if OPEN in card:
        whole = re.compile(re.escape(OPEN) + rf"(.*?{re.escape(CLOSE)})?", re.DOTALL)
        return whole.sub(lambda _: filled, card, count=1)
    before, heading, after = card.partition("\n## Sources")
    return f"{before.rstrip()}\n\n{filled}\n{heading}{after}"


def card_path(card: str) -> Path | None:
    """File of the card ``axis/kind``; None where there is no such choice or it has no card."""
    axis, kind = card.split("/")
    try:
        choice = registry(axis).get(kind)
    except ValueError:
        return None
    path = Path(inspect.getfile(choice)).with_suffix(".md") if choice else None
    return path if path and path.is_file() else None


def write_cards(study: StudySet, data: Mapping[str, Any]) -> list[Path]:
    """Put the study's block into every card it speaks of; returns the files that changed."""
    changed = []
    for card in dict.fromkeys(card for arm in study.arms for card in arm.cards):
        path, text = card_path(card), block(study, data, card)
        if path is None or not text:
            continue
        before = path.read_text(encoding="utf-8")
        after = with_block(before, text)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed.append(path)
    return changed
