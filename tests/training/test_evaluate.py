"""Held-out loss depends on the weights and the held-out text, on nothing else."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.costs import quick_ones
from tests.training.conftest import LiveRun
from workbench.choices.data.tokens import Batch, PreparedData, TokenStore
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Labelled, TrainingModel
from workbench.choices.objectives.windows import seen_windows
from workbench.choices.progress import Budget, Progress
from workbench.models.export import main as export
from workbench.plots.facts import facts
from workbench.plots.report import main as report
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import LABELS, SEEN_LOSS, UNSEEN_LOSS, scores_by_step
from workbench.store.folder import read_json
from workbench.store.view import RunView
from workbench.training.assemble import assemble
from workbench.training.evaluate import DURING, evaluate, main, points_passed


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        {"objective.mask_rate": 0.4},
        {"objective.corruption": "all_mask"},
        {"depth": "progressive_drop"},
        {"data.batch_size": 5},
        {"execution.micro_batch_size": 2},
        {"optimizer.lr": 0.1},
        {"seed": 3},
    ],
)
def test_independent_of_how_it_was_trained(
    tiny: Recipe, prepared: PreparedData, change: dict[str, object], final: bool
) -> None:
    other = tiny.with_(**change)
    one, two = assemble(tiny, prepared), assemble(other, prepared)
    two.model.load_state_dict(one.model.state_dict())
    heldout = one.heldout if final else one.heldout.part(DURING)
    first, second = evaluate(tiny, one, heldout), evaluate(other, two, heldout)
    assert first.loss == pytest.approx(second.loss, abs=1e-5)
    assert (first.tokens, first.scored) == (second.tokens, second.scored)
    assert evaluate(tiny, one, heldout) == first
    assert one.model.training


def test_points_are_spread_evenly_and_end_with_the_run() -> None:
    for unit in ("steps", "tokens", "seconds"):
        budget = Budget(amount=30, unit=unit, evaluations=3)
        at = [points_passed(Progress(step=n, tokens=n, seconds=float(n), budget=budget)) for n in range(31)]
        assert [n for n in range(1, 31) if at[n] > at[n - 1]] == [10, 20, 30]


def test_a_saved_run_is_evaluated_from_outside(
    tiny: Recipe, live: Callable[[Recipe], LiveRun], capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.training.test_resume import train

    run = live(tiny)
    train(run, stop_at=5)
    train(run, resume=True)
    assert main([str(run.folder.path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    said = json.loads(run.folder.evaluations.read_text())["result"]["heldout_loss"]
    assert answer["heldout_loss"] == pytest.approx(said, abs=1e-6)
    # The run has kept both losses of windows itself, and its table names them.
    kept = scores_by_step(run.folder)[20]
    rows = facts(RunView.read(run.folder))
    for name, title in ((name, LABELS[name]) for name in (SEEN_LOSS, UNSEEN_LOSS)):
        assert (kept[name].value, kept[name].count) == pytest.approx(
            (answer["scores"][name]["value"], answer["scores"][name]["count"]), abs=1e-5
        )
        assert f"at step 20 over {kept[name].count:,} tokens" in rows[f"{title} (nats)"]
    assert main([str(run.folder.path), "--json", "--checkpoint", "5"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 5
    assert main([str(run.folder.path), "--checkpoint", "6"]) == 2
    assert "it has those of 5, 20" in capsys.readouterr().err


@pytest.mark.parametrize("objective", quick_ones(["masked", "causal"], "masked"))
def test_the_run_folder_is_enough(
    objective: str, tiny: Recipe, live: Callable[[Recipe], LiveRun], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The text is deleted and the cache is empty: the run is still evaluated, reported and exported."""
    from tests.training.test_resume import train

    text = tmp_path / "text.jsonl"
    text.write_bytes(Path(tiny.data.paths[0]).read_bytes())
    run = live(tiny.with_(data={"paths": (str(text),)}, objective=objective))
    train(run)
    text.unlink()
    empty = tmp_path / "empty"
    monkeypatch.setenv("WORKBENCH_CACHE", str(empty))
    assert main([str(run.folder.path), "--json"]) == 0
    shown = capsys.readouterr()
    answer, result = json.loads(shown.out), read_json(run.folder.evaluations)["result"]
    same = ("heldout_loss", "bits_per_byte", "unigram_entropy", "bigram_entropy", "learned")
    assert {key: answer[key] for key in same} == {key: result[key] for key in same}
    assert shown.err == ""
    assert report([str(run.folder.path)]) == 0
    assert export([str(run.folder.path), str(tmp_path / "model")]) == 0
    assert not empty.exists()


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-40])])
def test_a_run_without_its_heldout_set_takes_it_from_the_data_and_says_so(
    tiny: Recipe, live: Callable[[Recipe], LiveRun], capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    from tests.training.test_resume import train

    run = live(tiny)
    train(run)
    damage(run.folder.heldout)
    assert main([str(run.folder.path), "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["heldout_loss"] == read_json(run.folder.evaluations)["result"]["heldout_loss"]
    assert "preparing the data of the run again" in shown.err


class LookUp(TrainingModel):
    """Word frequencies, and half the probability from a table of what followed two tokens in the training text."""

    def __init__(self, prepared: PreparedData, weight: float) -> None:
        super().__init__()
        counts_V = prepared.counts_V + 1.0
        self.p_V, self.weight = counts_V / counts_V.sum(), weight
        self.after: dict[tuple[int, int], Counter[int]] = {}
        for begin, end in pairwise(prepared.train.offsets_D1.tolist()):
            ids = prepared.train.ids_N[begin:end].tolist()
            for first, second, word in zip(ids, ids[1:], ids[2:], strict=False):
                self.after.setdefault((first, second), Counter())[word] += 1

    def heldout(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        assert seen.index_N is not None
        tokens, starts = seen.tokens_BT.flatten().tolist(), batch.positions_BT.flatten().tolist()
        nats = []
        for place, word in zip(seen.index_N.tolist(), seen.labels_N.tolist(), strict=True):
            p = self.p_V[word]
            found = self.after.get((tokens[place - 1], tokens[place])) if starts[place] else None
            if found:
                p = (1 - self.weight) * p + self.weight * found[word] / found.total()
            nats.append(-math.log(p))
        return torch.tensor(nats)


def test_a_table_of_n_grams_lowers_the_loss_of_seen_windows_alone(tiny: Recipe, prepared: PreparedData) -> None:
    recipe = tiny.with_(objective="causal")
    assembled = assemble(recipe, prepared)
    # A few documents: all of the text, which repeats itself, has nearly every window.
    offsets_D1 = prepared.train.offsets_D1[:4]
    train = TokenStore(prepared.train.ids_N[: offsets_D1[-1]], offsets_D1)
    prepared = replace(prepared, train=train)
    heldout = replace(assembled.heldout, seen_S=seen_windows(train, assembled.heldout))
    without, table = (
        evaluate(recipe, replace(assembled, model=LookUp(prepared, weight)), heldout) for weight in (0.0, 0.5)
    )
    assert without.windows is not None
    assert table.windows is not None
    (seen, seen_count), (unseen, unseen_count) = without.windows
    (seen_with, _), (unseen_with, _) = table.windows
    assert min(seen_count, unseen_count) > 30
    assert seen_count + unseen_count == without.scored
    assert without.loss == pytest.approx((seen * seen_count + unseen * unseen_count) / without.scored)  # type: ignore[operator]
    assert table.loss < without.loss, "it looks like a better model"
    assert seen_with < seen - 0.5  # type: ignore[operator]
    assert unseen_with > unseen  # type: ignore[operator]
    measured = table.scores
    assert (measured[SEEN_LOSS].value, measured[SEEN_LOSS].count) == (seen_with, seen_count)
    assert (measured[UNSEEN_LOSS].value, measured[UNSEEN_LOSS].unit) == (unseen_with, "nats")
