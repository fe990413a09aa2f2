"""Runs side by side: numbers with the best of them, knobs that differ."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from workbench.client.comparison import compare
from workbench.plots.facts import facts
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.store.state import write_state
from workbench.store.view import RunView
from workbench.telemetry.scored_text import OTHER_TOKENS
from workbench.telemetry.streams import TelemetryWriter


def make(root: Path, run_id: str, recipe: dict[str, Any], result: dict[str, Any] | None, **state: Any) -> RunFolder:
    folder = RunFolder(root / run_id)
    folder.path.mkdir()
    write_json(folder.recipe, recipe)
    score = {"kind": "masked-only", "version": 2}
    said = {"unigram_entropy": 6.0, "bigram_entropy": 4.0, "score": score, "heldout": [], "result": result}
    write_json(folder.evaluations, said)
    write_state(folder, **{"status": "finished", **state})
    return folder


def test_numbers_best_and_differing_knobs(tmp_path: Path) -> None:
    base = {"name": "a", "notes": "x", "optimizer": {"kind": "adamw", "lr": 0.1}, "seed": 0}
    one = make(
        tmp_path,
        "a",
        base,
        {"heldout_loss": 3.5, "train_loss": 5.75, "tokens_per_second": 100, "steps": 10, "mfu": 0.25},
        loss=5.5,
    )
    other = base | {"name": "b", "notes": "y", "optimizer": {"kind": "lion", "lr": 0.1}}
    two = make(tmp_path, "b", other, {"heldout_loss": 3.2, "tokens_per_second": 90, "steps": 10})
    going = make(tmp_path, "c", base | {"name": "c"}, None, status="queued", step=4, loss=5.0)
    found = compare([one, two, going])
    assert [run["name"] for run in found["runs"]] == ["a", "b", "c"]
    assert found["notes"] == []
    rows = {row["label"]: row for row in found["numbers"]}
    assert rows["held-out loss (nats)"]["values"] == [3.5, 3.2, None]
    assert rows["held-out loss (nats)"]["best"] == [1]
    assert rows["tokens/s"]["best"] == [0]
    assert rows["steps"]["values"] == [10, 10, 4]
    assert rows["steps"]["best"] == []
    assert rows["training loss of the last step (nats)"]["values"] == [5.5, None, 5.0], "as the table of runs has it"
    assert rows["training loss, mean of the last 10 steps (nats)"]["values"] == [5.75, None, None]
    assert "processes" not in rows
    for folder, processes in ((one, 1), (two, 2)):
        write_json(folder.environment, {"processes": processes})
    assert {row["label"]: row["values"] for row in compare([one, two])["numbers"]}["processes"] == [1, 2]
    assert rows["word frequencies (nats)"] == {
        "label": "word frequencies (nats)", "values": [6.0, 6.0, 6.0], "best": [],
    }  # fmt: skip
    assert rows["MFU (%)"]["values"] == [25.0, None, None]
    assert "parameters" not in rows, "nobody said it"
    write_json(going.environment, {"parameters": 1234})
    rows = {row["label"]: row for row in compare([one, two, going])["numbers"]}
    assert rows["parameters"]["values"] == [None, None, 1234], "known from the start of a run"
    assert found["knobs"] == [{"path": "optimizer.kind", "values": ["adamw", "lion", "adamw"]}]


def test_a_knob_that_is_set_to_nothing_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    optimizers = ({"kind": "adamw", "clip_norm": 1.0}, {"kind": "adamw", "clip_norm": None}, {"kind": "sgd"})
    runs = [make(tmp_path, f"run-{place}", {"optimizer": each}, None) for place, each in enumerate(optimizers)]
    knobs = {row["path"]: row["values"] for row in compare(runs)["knobs"]}
    assert knobs["optimizer.clip_norm"] == [1.0, "none", None]


def test_repetitions_have_no_best_and_names_that_tell_them_apart(tmp_path: Path) -> None:
    def run(run_id: str, loss: float, seed: int, lr: float = 0.1) -> RunFolder:
        recipe = {"name": "fast", "seed": seed, "lr": lr, "budget": {"unit": "seconds", "amount": 20}}
        return make(tmp_path, run_id, recipe, {"heldout_loss": loss, "steps": round(100 * loss)})

    first, again = run("20260101-000001-fast-a", 3.5, 0), run("20260101-000002-fast-b", 3.2, 0)
    found = compare([first, again])
    assert [row["best"] for row in found["numbers"]] == [[]] * len(found["numbers"])
    assert found["notes"][0] == "Same recipe: differences are noise."
    assert found["notes"][1].startswith("Equal seconds, unequal steps")
    assert [run["name"][-2:] for run in found["runs"]] == ["01", "02"]
    # 0.3 nats apart are repetitions of one recipe: 0.2 are no lead, 1 is.
    for loss, best in ((3.0, []), (2.0, [2])):
        rows = {row["label"]: row for row in compare([first, again, run(f"lead-{loss:g}", loss, 0, 0.2)])["numbers"]}
        assert rows["held-out loss (nats)"]["best"] == best


def test_all_that_read_the_same_as_the_best_are_marked(tmp_path: Path) -> None:
    losses = (2.3261, 2.3259, 2.3264, 2.4)
    runs = [make(tmp_path, f"a{i}", {"name": f"a{i}", "lr": i}, {"heldout_loss": loss, "tokens_per_second": 1000.2 + i})
            for i, loss in enumerate(losses)]  # fmt: skip
    rows = {row["label"]: row["best"] for row in compare(runs)["numbers"]}
    assert rows["held-out loss (nats)"] == [0, 1, 2]
    assert rows["tokens/s"] == [3]


def test_memory_is_what_training_took_beyond_what_was_held_before(tmp_path: Path) -> None:
    runs = [make(tmp_path, name, {"name": name, "lr": name}, {"steps": 1}) for name in ("a", "b", "c")]
    for folder, peak, before in zip(runs, (1.5, 2.5, 9.0), (0.5, 0.25, None), strict=True):
        write_json(folder.environment, {} if before is None else {"memory_before_gib": before})
        with contextlib.closing(TelemetryWriter(folder.telemetry)) as writer:
            writer.scalars(1, 50, 1.0, loss=5.1, memory_gib=peak)
            writer.scalars(2, 99, 2.0, loss=5.1, memory_gib=peak / 2)
    rows = {row["label"]: row for row in compare(runs)["numbers"]}
    assert rows["memory for training (GiB)"]["values"] == [1.0, 2.25, None]
    assert rows["memory for training (GiB)"]["best"] == [0]
    assert "memory for training (GiB)" not in {row["label"] for row in compare(runs[2:])["numbers"]}


def test_a_stopped_run_has_a_score_of_a_part_and_fewer_seconds(tmp_path: Path) -> None:
    recipe = {"name": "a", "lr": 0.1, "budget": {"unit": "seconds", "amount": 90}}
    whole = make(tmp_path, "a", recipe, {"heldout_loss": 3.5, "steps": 10, "seconds": 90.0})
    stopped = make(
        tmp_path, "b", recipe | {"name": "b", "lr": 0.2}, None, status="stopped", heldout_loss=3.0, step=5, seconds=84.8
    )
    found = compare([whole, stopped])
    (row,) = (row for row in found["numbers"] if row["label"] == "held-out loss (nats)")
    assert (row["values"], row["best"]) == ([3.5, 3.0], [])
    (note,) = found["notes"]
    assert note.startswith("Held-out loss and bits per byte of b may be of a part of the held-out tokens")


def test_a_stopped_run_says_what_the_report_says_of_it(tmp_path: Path) -> None:
    whole = make(tmp_path, "a", {"name": "a", "lr": 0.1}, {"heldout_loss": 5.0, "bits_per_byte": 2.03, "mfu": 0.18})
    stopped = make(tmp_path, "b", {"name": "b", "lr": 0.2}, None, status="stopped", step=5)
    said = read_object(stopped.evaluations) | {"heldout": [{"step": 5, "loss": 5.003, "bits_per_byte": 2.021}]}
    write_json(stopped.evaluations, said)
    with contextlib.closing(TelemetryWriter(stopped.telemetry)) as writer:
        writer.scalars(5, 50, 1.0, loss=5.1, mfu=0.201)
    found = compare([whole, stopped])
    rows = {row["label"]: row for row in found["numbers"]}
    assert rows["held-out bits per byte"] == {
        "label": "held-out bits per byte", "values": [2.03, 2.021], "best": [],
    }, "a part of the text is no better than all of it"  # fmt: skip
    assert rows["MFU (%)"]["values"] == pytest.approx([18.0, 20.1])
    assert rows["MFU (%)"]["best"] == [], "of the last steps alone"
    reported = [facts(RunView.read(folder)) for folder in (whole, stopped)]
    assert reported[1]["what was learned"].startswith("learning neighbours: 1.00 nats")
    for label in ("state", "what was learned"):
        assert rows[label]["values"] == [each[label] for each in reported]
    for label, name in (("held-out bits per byte", "bits per byte"), ("held-out loss (nats)", "held-out loss (nats)")):
        assert [f"{value:.3f}" for value in rows[label]["values"]] == [each[name] for each in reported]


def test_an_mfu_above_all_is_no_best(tmp_path: Path) -> None:
    slow, over = (
        make(tmp_path, name, {"name": name, "lr": 0.1}, {"mfu": mfu}) for name, mfu in (("a", 0.2), ("b", 1.4))
    )
    found = compare([slow, over])
    (row,) = [row for row in found["numbers"] if row["label"] == "MFU (%)"]
    assert (row["values"], row["best"]) == (pytest.approx([20.0, 140.0]), [])
    assert any(note.startswith("No best MFU: that of b is above 100%") for note in found["notes"])


def test_losses_of_two_scores_have_no_best(tmp_path: Path) -> None:
    new, old = (
        make(tmp_path, name, {"name": name, "lr": loss}, {"heldout_loss": loss, "mfu": loss / 10})
        for name, loss in (("a", 5.0), ("b", 4.0))
    )
    write_json(old.evaluations, {"unigram_entropy": 6.0, "heldout": [], "result": {"heldout_loss": 4.0, "mfu": 0.1}})
    rows = {row["label"]: row for row in compare([new, old])["numbers"]}
    assert rows["held-out loss (nats)"]["values"] == [5.0, 4.0]
    assert rows["held-out loss (nats)"]["best"] == []
    assert rows["MFU (%)"]["best"] == [0]
    assert compare([new, old])["notes"] == [
        "No best loss: scores of different kinds (held-out loss at [MASK], 80/10/10 score)."
    ]
    assert rows["word frequencies (nats)"]["values"] == [6.0, None], "its score is not held against floors"


def test_losses_compare_on_the_same_text_and_in_nats_with_the_same_tokens(tmp_path: Path) -> None:
    def run(name: str, text: str, tokenizer: str) -> RunFolder:
        losses = dict.fromkeys(("heldout_loss", "train_loss", "bits_per_byte"), ord(name)) | {"steps": 100}
        losses["mfu"] = ord(name) / 1000
        folder = make(tmp_path, name, {"name": f"<{name}>", "lr": ord(name)}, losses)
        data = {"sources": {"files": text}, "split": {}, "tokenizer_sha256": tokenizer}
        write_json(folder.environment, {"data": data | {"heldout": {"sha256": text + tokenizer}}})
        return folder

    def best_of(*runs: RunFolder) -> tuple[list[list[int]], list[str]]:
        found = compare(runs)
        rows = {row["label"]: row["best"] for row in found["numbers"]}
        losses = ("held-out loss (nats)", "training loss, mean of the last 50 steps (nats)", "held-out bits per byte")
        return [rows[label] for label in (*losses, "MFU (%)")], found["notes"]

    a, same, fine, elsewhere = run("a", "t", "v"), run("b", "t", "v"), run("c", "t", "w"), run("d", "u", "v")
    assert best_of(a, same) == ([[0], [0], [0], [1]], [])
    losses, notes = best_of(a, same, fine)
    assert losses == [[], [], [0], [2]]
    assert notes == [f"No best loss in nats: <a> and <c> {OTHER_TOKENS}; bits per byte compare."]
    losses, notes = best_of(a, fine, elsewhere)
    assert losses == [[], [], [], [2]]
    assert notes == ["No best loss: <a> and <d> are scored on different text."]
    fine.environment.write_text("[")
    assert best_of(a, fine) == ([[0], [0], [0], [1]], []), "a run that has not said yet what it is scored on"


def test_a_resumed_run_shows_what_it_does_now_and_damage_is_passed_over(tmp_path: Path) -> None:
    folder = make(tmp_path, "a", {"name": "a"}, {"steps": 10, "heldout_loss": 3.0}, status="queued", step=12)
    rows = {row["label"]: row["values"] for row in compare([folder])["numbers"]}
    assert rows["steps"] == [12]
    assert "held-out loss (nats)" not in rows
    folder.evaluations.write_text("[")
    folder.recipe.write_text("7")
    found = compare([folder])
    assert found["runs"] == [{"id": "a", "name": "a", "status": "queued"}]
    assert found["knobs"] == []


def test_runs_of_one_time_and_machine_have_no_best_speed(tmp_path: Path) -> None:
    when = (("a", 100, "h", 0.5), ("b", 90, "h", 100.0), ("c", 80, "h", 130.0), ("d", 70, "g", 10.0))
    made = [
        make(tmp_path, name, {"lr": each}, {"tokens_per_second": each}, host=host, started=start, heartbeat=start + 60)
        for name, each, host, start in when
    ]
    for runs, best in ((made[:2], [0]), (made[::3], [0]), (made[:3], []), (made[1:3], [])):
        found = compare(runs)
        assert {row["label"]: row["best"] for row in found["numbers"]}["tokens/s"] == best
        assert any(note.startswith("No best speed") for note in found["notes"]) == (not best)


def test_training_losses_of_two_objectives_have_no_best(tmp_path: Path) -> None:
    recipe = {"optimizer": {"lr": 0.1}, "objective": {"kind": "causal"}}
    one = make(tmp_path, "a", recipe, {"train_loss": 5.0, "steps": 100})
    two = make(tmp_path, "b", recipe | {"optimizer": {"lr": 0.2}}, {"train_loss": 4.0, "steps": 100})
    three = make(tmp_path, "c", recipe | {"objective": {"kind": "my_loss"}}, {"train_loss": 3.0, "steps": 100})
    label = "training loss, mean of the last 50 steps (nats)"
    for runs, best in (([one, two], [1]), ([one, two, three], [])):
        found = compare(runs)
        assert {row["label"]: row["best"] for row in found["numbers"]}[label] == best
        said = "No best training loss: the objectives differ, and each trains on a loss of its own."
        assert (said in found["notes"]) == (not best)


def test_a_mean_of_fewer_steps_is_no_best_one_and_a_fork_says_where_it_began(tmp_path: Path) -> None:
    """Of a fork only its own steps count."""
    whole = make(tmp_path, "a", {"name": "a", "lr": 0.1}, {"train_loss": 5.0, "steps": 100})
    short = make(tmp_path, "b", {"name": "b", "lr": 0.2}, {"train_loss": 4.0, "steps": 49})
    fork = make(tmp_path, "c", {"name": "c", "lr": 0.3}, {"train_loss": 4.0, "steps": 149})
    write_json(fork.origin, {"run": "a", "name": "first", "step": 100})
    label = "training loss, mean of the last 50 steps (nats)"
    found = {name: compare([whole, other]) for name, other in (("short", short), ("fork", fork))}
    for each in found.values():
        assert {row["label"]: row["best"] for row in each["numbers"]}[label] == []
    assert "No best training loss: b trained fewer than 50 steps." in found["short"]["notes"]
    assert "No best training loss: c trained fewer than 50 steps." in found["fork"]["notes"]
    # By the name that the other has now.
    assert any(note.startswith("c goes on from step 100 of a: its steps") for note in found["fork"]["notes"])
    write_json(fork.origin, {"run": "a", "step": 99})
    assert {row["label"]: row["best"] for row in compare([whole, fork])["numbers"]}[label] == [1]
