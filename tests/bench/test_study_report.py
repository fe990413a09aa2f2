"""From runs to tables, cards and the page; cards keep their headings and change only once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench import presets
from workbench.bench import study_report
from workbench.bench.arms import BASELINE, Arm, StudySet
from workbench.bench.study_report import CLOSE, OPEN, block, page, power, rows, with_block, write_cards

ARMS = (
    Arm(BASELINE, "Baseline", {}, ("optimizer/adamw",), tuned=True),
    Arm("dropped", "Depth", {"depth": "progressive_drop"}, ("depth/progressive_drop",)),
    Arm("broken", "Depth", {"depth": "progressive_drop"}, ("depth/progressive_drop",)),
    Arm("adamw large", "Large", {}, ("optimizer/adamw",), against="adamw large", tokens=4096),
    Arm("lans large", "Large", {}, ("optimizer/lans",), against="adamw large", tokens=4096),
)
STUDY = StudySet("tiny", presets.fast, 100, 0.5, 3, ARMS)
HEADINGS = ["What it does", "The maths", "When to use", "When not", "Knobs", "Evidence here", "Sources"]


def run(arm: str, seed: int, loss: float | None, **more: Any) -> dict[str, Any]:
    return {
        "arm": arm, "phase": "seed", "seed": seed, "loss": loss, "lr": 3e-3, "budget": "100 steps", "steps": 100,
        "tokens": 6400, "finished": f"2026-01-01 00:00:0{seed}", **more,
    }  # fmt: skip


@pytest.fixture
def data() -> dict[str, Any]:
    losses = {
        BASELINE: (5.0, 5.1, 5.2), "dropped": (4.8, 4.91, 5.0), "broken": (None, 5.1, 5.2),
        "adamw large": (6.0, 6.0, 6.1), "lans large": (6.3, 6.1, 6.0),
    }  # fmt: skip
    runs = {f"{a}/seed/{s}": run(a, s, loss) for a, each in losses.items() for s, loss in enumerate(each, 1)}
    runs["baseline/tune/1"] = {**run(BASELINE, 0, 5.5), "phase": "tune"}
    # Of an earlier rate: still in the file, no part of the result.
    runs["dropped/seed/9"] = run("dropped", 9, 1.0, lr=1e-4, finished="2025-01-01 00:00:00")
    return {
        "runs": runs, "seconds": 30.0, "unigram_entropy": 6.5, "failed": {}, "missing": {"later": "no such kind"},
        "base": {"data.sequence_length": 64, "data.batch_size": 16, "data.tokenizer.vocabulary_size": 4096},
        "hardware": {"processor": "A processor"}, "versions": {"torch": "2.13"},
        "calibration": {"date": "2026-01-01", "baseline_seconds_per_step": [0.05], "arms": {"dropped": {"ratio": 0.8}}},
    }  # fmt: skip


def test_arms_are_paired_by_seed_with_what_they_stand_against(data: dict[str, Any]) -> None:
    by_name = {row.arm.name: row for row in rows(STUDY, data)}
    assert by_name[BASELINE].comparison is None
    dropped = by_name["dropped"]
    assert dropped.losses == {1: 4.8, 2: 4.91, 3: 5.0}
    assert dropped.comparison is not None
    assert dropped.comparison.differences == pytest.approx((-0.2, -0.19, -0.2))
    assert (dropped.verdict, dropped.cost) == ("lower loss", 0.8)
    assert by_name["broken"].verdict == "diverged"
    assert by_name["adamw large"].comparison is None
    assert by_name["lans large"].comparison.differences == pytest.approx((0.3, 0.1, -0.1))
    assert by_name["lans large"].cost is None, "a budget in tokens says nothing about time"


def test_the_page_lists_every_run_and_what_could_be_seen(data: dict[str, Any]) -> None:
    text = page(STUDY, data)
    for loss in ("5.000", "5.100", "5.200", "4.910", "diverged", "6.300"):
        assert loss in text
    assert "1.40 nats below word frequencies" in " ".join(text.split())
    assert "nats reaches it" in power(rows(STUDY, data))
    assert "later: no such kind" in text
    shallow = {**data, "unigram_entropy": 5.3}
    assert "too short to tell methods apart" in " ".join(page(STUDY, shallow).split())


def test_a_card_shows_its_arms_and_the_baseline(data: dict[str, Any]) -> None:
    text = block(STUDY, data, "depth/progressive_drop")
    assert "| baseline |" in text
    assert "| dropped |" in text
    assert "dropped: lower loss; broken: diverged" in " ".join(text.split())
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120
    assert "lans large" not in text
    assert block(STUDY, data, "depth/raptr") == ""


def test_blocks_replace_themselves_and_touch_nothing_else() -> None:
    card = "# T\n\n## Evidence here\nTested: \\alpha.\n\n<!-- study -->\n\n## Sources\nA paper.\n"
    once = with_block(card, "first \\1")
    assert once == card.replace(OPEN, f"{OPEN}\nfirst \\1\n{CLOSE}")
    assert with_block(once, "first \\1") == once
    assert with_block(once, "second") == card.replace(OPEN, f"{OPEN}\nsecond\n{CLOSE}")


def test_a_card_without_marks_gets_them_before_its_sources() -> None:
    once = with_block("# T\n\n## Evidence here\nTested.\n\n## Sources\nA paper.\n", "new")
    assert once == f"# T\n\n## Evidence here\nTested.\n\n{OPEN}\nnew\n{CLOSE}\n\n## Sources\nA paper.\n"
    assert with_block(once, "new") == once


def test_cards_on_disk_are_written_once(data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = study_report.card_path

    def copied(card: str) -> Path | None:
        source = real(card)
        target = tmp_path / card.replace("/", "-")
        if source and not target.exists():
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        return target if source else None

    monkeypatch.setattr(study_report, "card_path", copied)
    changed = write_cards(STUDY, data)
    assert {path.name for path in changed} == {"optimizer-adamw", "depth-progressive_drop", "optimizer-lans"}
    for path in changed:
        text = path.read_text(encoding="utf-8")
        assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == HEADINGS
        assert text.count(OPEN) == text.count(CLOSE) == 1
    assert write_cards(STUDY, data) == [], "nothing new, nothing written"
