"""A resumed run repeats the uninterrupted one bit for bit where its text is mixed, or read while it trains."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.training.test_resume import Live, assert_same, train
from workbench.base.cache_folder import cache_folder
from workbench.choices.data import Mixture
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import read_evaluations


def mixed_of(tiny: Recipe, parts: list[dict[str, Any]], **knobs: Any) -> Recipe:
    """Return the recipe on a mixture of these parts, in rows and batches as before."""
    shared = {name: getattr(tiny.data, name) for name in ("tokenizer", "sequence_length", "batch_size")}
    return tiny.with_(data=Mixture(parts=parts, heldout_fraction=0.2, **shared, **knobs))


def test_a_mixture_whose_parts_leave_resumes_bit_for_bit(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    """Stopped while weights move and after a part has left; each part's tokens and held-out loss are on record."""
    text = Path(tiny.data.paths[0]).read_text(encoding="utf-8").splitlines(keepends=True)
    for name, lines in (("a", text[:300]), ("b", text[300:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    source = {name: {"kind": "files", "paths": [str(tmp_path / f"{name}.jsonl")]} for name in "ab"}
    weight = {"kind": "linear", "start": 3.0, "end": 1.0}
    parts_of = [{"name": "a", "source": source["a"], "weight": weight},
                {"name": "b", "source": source["b"], "weight": 2.0, "epochs": 0.5}]  # fmt: skip
    recipe = mixed_of(tiny, parts_of, span_tokens=10_240)
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=4).step == 4
    assert train(parts, resume=True, stop_at=15).step == 15
    assert_same(straight, train(parts, resume=True))
    names = [f"data.{what}/{name}" for what in ("tokens", "epochs") for name in "ab"]
    for name in ("loss", *names):
        assert whole.telemetry.series(name) == parts.telemetry.series(name), name
    assert sum(whole.telemetry.series(f"data.tokens/{name}")[1][-1] for name in "ab") == 20 * 16 * 32
    epochs = whole.telemetry.series("data.epochs/b")[1]
    assert 0.48 < epochs[-1] <= 0.5
    assert epochs[-1] == epochs[-2], "the part has left"
    (last,) = [point["scores"] for point in read_evaluations(whole.folder)["points"] if point["step"] == 20]
    both = [last[f"heldout_loss/{name}"] for name in "ab"]
    mean = sum(score["value"] * score["count"] for score in both) / sum(score["count"] for score in both)
    assert mean == pytest.approx(last["heldout_loss"]["value"])


@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "in a mixture"])
def test_a_stream_resumes_bit_for_bit(tiny: Recipe, live: Live, tmp_path: Path, mixed: bool) -> None:
    """Ten blocks of 1,024 tokens: stopped within one, at the end of one, and taken up without what lay on the disk."""
    stream = {"stream": 150, "stream_block": 1024, "stream_mib": 1}
    recipe = tiny.with_(data=stream)
    if mixed:
        (tmp_path / "b.jsonl").write_text("\n".join(Path(tiny.data.paths[0]).read_text().splitlines()[:200]))
        sources = {"a": {"paths": list(tiny.data.paths), **stream}, "b": {"paths": [str(tmp_path / "b.jsonl")]}}
        parts_of = [{"name": name, "source": {"kind": "files", **source}} for name, source in sources.items()]
        recipe = mixed_of(tiny, parts_of)
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=3).step == 3
    assert train(parts, resume=True, stop_at=12).step == 12
    shutil.rmtree(cache_folder() / "streams")
    assert_same(straight, train(parts, resume=True))
    for name in ("loss", "data.epochs/a" if mixed else "data.epochs"):
        assert whole.telemetry.series(name)[1], name
        assert whole.telemetry.series(name) == parts.telemetry.series(name), name
