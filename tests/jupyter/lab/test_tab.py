"""The Lab of a tab: one per browser window, and what was composed outlives the kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jupyter.live import run_folder
from workbench import presets
from workbench.base.fields import put
from workbench.jupyter.lab import tab
from workbench.jupyter.lab.lab import Lab
from workbench.jupyter.lab.tab import kept_in, lab_of_tab


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(tab, "_labs", {})
    yield tmp_path / "runs"
    for lab in tab._labs.values():
        lab.close()


def another_kernel() -> None:
    """Stand for another kernel: what is left of the Labs when theirs has died is files."""
    for lab in tab._labs.values():
        lab.close()
    tab._labs.clear()


def test_a_page_that_asks_again_is_shown_the_same_lab(runs: Path) -> None:
    lab = lab_of_tab(runs)
    assert lab_of_tab(runs) is lab
    # Looking at it keeps nothing: the next one begins with the preset of its day.
    assert not kept_in(runs).exists()
    lab.close()
    assert lab_of_tab(runs) is not lab


def test_another_kernel_goes_on_with_knobs_fork_and_watched_runs(runs: Path) -> None:
    folder = run_folder(runs / "20260101-000000-a-000000-0000", "finished", False)
    gone = run_folder(runs / "20260102-000000-b-000000-0000", "finished", False)
    presets.get("pld").save(folder.recipe)
    (folder.checkpoints / "step-10").mkdir(parents=True)
    (folder.checkpoints / "step-10" / "state.json").write_text('{"step": 10, "tokens": 1, "seconds": 1.0}')
    lab = lab_of_tab(runs)
    lab.fork(folder.id)
    lab.composer.axes["optimizer"].part.knobs["lr"].input.source.value = "0.004"
    # Half-typed is kept as well: it is what the user sees.
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "3"
    lab.table.watched = [gone.id, folder.id]
    lab.table.look = {"columns": ["name", "loss"], "sort": None}
    lab.composer.show.value = "Difference"
    lab.composer.opened = ["architecture", "optimizer"]
    problems = lab.composer.problems
    another_kernel()
    gone.path.rename(runs / ".gone")

    lab = lab_of_tab(runs)
    assert lab.composer.fields["optimizer"]["lr"] == 0.004
    assert lab.composer.fields["architecture"]["heads"] == 3
    assert lab.composer.problems == problems
    assert lab.forking.point is not None
    assert (lab.forking.point.folder.id, lab.forking.point.step) == (folder.id, 10)
    assert "Fork of" in lab.forking.bar.text.value
    assert lab.composer.show.value == "Difference"
    assert lab.composer.opened == ["architecture", "optimizer"], "the budget was closed"
    assert lab.table.look == {"columns": ["name", "loss"], "sort": None}
    assert lab.table.watched == [folder.id]
    assert lab.monitor is not None
    assert [run.id for run in lab.monitor.runs] == [folder.id]


def test_each_window_has_a_form_of_its_own_that_begins_with_what_was_composed_last(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = lambda lab: lab.composer.fields["optimizer"]["lr"]  # noqa: E731
    first = lab_of_tab(runs, "a")
    first.composer.enter(put(first.composer.fields, "optimizer.lr", 0.004))
    second = lab_of_tab(runs, "b")
    assert second is not first
    assert rate(second) == 0.004
    second.composer.presets.value = "pld"
    second.composer.enter(put(second.composer.fields, "optimizer.lr", 0.002))
    assert (rate(first), rate(second)) == (0.004, 0.002)
    assert lab_of_tab(runs, "a") is first
    another_kernel()
    assert [rate(lab_of_tab(runs, name)) for name in "ab"] == [0.004, 0.002]
    # Windows that were closed are not kept for ever.
    monkeypatch.setattr(tab, "MOST_WINDOWS", 2)
    held = lab_of_tab(runs, "a")
    third = lab_of_tab(runs, "c")
    assert [*tab._labs.values()] == [held, third]
    third.composer.enter(put(third.composer.fields, "seed", 5))
    assert [*json.loads(kept_in(runs).read_text())["windows"]] == ["b", "c"]


def test_a_form_kept_by_the_version_before_is_restored(runs: Path) -> None:
    lab = lab_of_tab(runs)
    lab.composer.enter(put(lab.composer.fields, "optimizer.lr", 0.004))
    file = kept_in(runs)
    one = json.loads(file.read_text())["windows"][""]
    another_kernel()
    file.write_text(json.dumps(one))
    assert lab_of_tab(runs, "a").composer.fields["optimizer"]["lr"] == 0.004


def test_the_preset_it_began_with_is_still_what_changes_are_marked_against(runs: Path) -> None:
    lab = lab_of_tab(runs)
    lab.composer.presets.value = "pld"
    lab.composer.axes["optimizer"].part.knobs["lr"].input.source.value = "0.004"
    another_kernel()
    lab = lab_of_tab(runs)
    assert lab.composer.presets.value == "pld"
    assert "1 knob changed" in lab.composer.verdict.value


def test_a_file_that_cannot_be_read_any_more_is_told_and_the_lab_works(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("workbench.jupyter.runs.runs_table.RunsTable.say", lambda _, result: said.append(result.text))
    file = kept_in(runs)
    file.parent.mkdir(parents=True)
    for text in ('{"fields": {}}', '{"fields": 3, "base": {"name": 1}, "source": null}', json.dumps(["a", "list"])):
        file.write_text(text)
        assert lab_of_tab(runs).composer.recipe is not None
        another_kernel()
    assert len(said) == 2
    assert all("cannot be read any more" in text for text in said)


def test_each_runs_folder_has_its_own(runs: Path, tmp_path: Path) -> None:
    assert kept_in(runs) != kept_in(tmp_path / "other")
    assert lab_of_tab(runs) is not lab_of_tab(tmp_path / "other")


def test_a_lab_in_a_cell_keeps_nothing(runs: Path) -> None:
    lab = Lab(runs_dir=runs)
    lab.composer.axes["optimizer"].part.knobs["lr"].input.source.value = "0.004"
    assert lab.kept["fields"]["optimizer"]["lr"] == 0.004
    assert not kept_in(runs).exists()
    lab.close()
