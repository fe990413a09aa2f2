"""The real Trainer and the real loop take turns on a tiny model: what is asserted is bookkeeping, never speed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from workbench.bench import peers
from workbench.ops.attention import ATTENTION
from workbench.recipe import Recipe


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """One layer x 16 on a page of text, eager."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    words = [f"word{number}" for number in range(17)]
    lines = [" ".join(words[(i * j) % len(words)] for j in range(1, 60)) for i in range(1, 60)]
    (tmp_path / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    return Recipe(
        data={
            "kind": "files", "paths": [str(tmp_path / "text.txt")], "document_characters": 200,
            "sequence_length": 16, "batch_size": 4,
            "heldout_fraction": 0.2, "tokenizer": {"kind": "trained", "vocabulary_size": 256},
        },
        architecture={"kind": "pre_ln", "layers": 1, "width": 16, "heads": 2},
        execution={"kind": "native", "precision": "fp32", "compile": False, "threads": 1},
    )  # fmt: skip


@pytest.mark.process
def test_contenders_alternate_and_every_reading_is_kept(tiny: Recipe, capfd: pytest.CaptureFixture[str]) -> None:
    result = peers.measure(tiny, rounds=2, steps=2, warmup=1, workers=0, peers=["transformers default"])
    assert set(result["contenders"]) == {"workbench", "transformers default"}
    for figures in result["contenders"].values():
        assert len(figures["readings"]) == 2
        assert min(figures["readings"]) > 0
        assert figures["ready"]["parameters"] > 256 * 16
    # What was remembered for ours; transformers' own default for BERT.
    attention = {name: figures["attention"] for name, figures in result["contenders"].items()}
    assert attention["workbench"] in ATTENTION
    assert attention["transformers default"] == "sdpa"
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(peers.table(result))
    rows = [line for line in console.export_text().splitlines() if "tokens/s" not in line]
    for name, choice in attention.items():
        assert any(name in row and choice in row for row in rows)
    a, b = (result["contenders"][name]["readings"] for name in ("workbench", "transformers default"))
    ratios = result["ratios"]["transformers default"]
    assert ratios["max"] == pytest.approx(max(x / y for x, y in zip(a, b, strict=True)))
    assert "round 2 of 2" in capfd.readouterr().err


@pytest.mark.process
def test_a_contender_that_dies_says_why(tiny: Recipe) -> None:
    broken = tiny.with_(data={"paths": ["nowhere.txt"]})
    with pytest.raises(RuntimeError, match=r"(?s)contender 'workbench' ended.*nowhere\.txt"):
        peers.measure(broken, rounds=1, steps=1, warmup=1, workers=0, peers=[])


def test_peers_see_our_data_size_and_seed(tiny: Recipe) -> None:
    settings = [setting for _, setting in peers.contenders(tiny, warmup=1, workers=3)]
    assert [setting["name"] for setting in settings] == ["workbench", "transformers default", "transformers tuned"]
    assert all(setting["recipe"] == tiny.to_dict() for setting in settings)
    assert [setting.get("workers") for setting in settings] == [None, 0, 3]
