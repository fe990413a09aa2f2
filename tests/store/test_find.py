"""From a typed id to a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.client.run_list import select
from workbench.store.find import find, run_ids, typed
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label

IDS = ["20260101-000000-alpha-000000-0000", "20260101-000001-alpha-000000-0000", "20260202-000000-beta-000000-0000"]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    for run_id in IDS:
        (tmp_path / run_id).mkdir()
    return tmp_path


def test_an_id_or_its_unique_beginning(filled: Path) -> None:
    assert find(IDS[0], filled).path == filled / IDS[0]
    assert find("202602", filled).path == filled / IDS[2]
    assert find("beta", filled).path == filled / IDS[2], "the name of one run"


def test_a_run_is_found_by_what_it_is_called_now(filled: Path) -> None:
    first, second, third = (RunFolder(filled / run_id) for run_id in IDS)
    label(first, name="Best, so far")
    assert find("Best, so far", filled) == first
    write_json(second.recipe, {"name": "alpha"})
    assert find("alpha", filled) == second, "the first was only launched as alpha"
    label(third, name="alpha")
    with pytest.raises(RunError, match="'alpha' is the name of 2 runs"):
        find("alpha", filled)
    assert find("beta", filled) == third, "as its id still says"
    with pytest.raises(RunError, match=r"no run 'Best so far' in .*; nearest: 'Best, so far'"):
        find("Best so far", filled)
    (filled / ".trash").mkdir()
    with pytest.raises(RunError, match=r"no run '\.\.'"):
        find("..", filled)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("20260101", "begins 2 run ids"),
        ("alpha", "'alpha' is the name of 2 runs: .*write the beginning of one id"),
        ("20260202-000000-beto-000000-0000", f"nearest: '{IDS[2]}'"),
        ("betta", "nearest: 'beta'"),
        ("nosuch", r"no run 'nosuch' in [^;]*\. `workbench runs` lists them"),
        ("../20260101", r"no run '\.\./20260101' in "),
    ],
)
def test_what_is_not_found_names_the_nearest(filled: Path, typed: str, said: str) -> None:
    with pytest.raises(RunError, match=said):
        find(typed, filled)


def test_the_beginning_of_a_name_is_near_it(filled: Path) -> None:
    label(RunFolder(filled / IDS[2]), name="racer seed 0 at 0.5x")
    with pytest.raises(RunError, match=r"no run 'racer' in .*; nearest: 'racer seed 0 at 0.5x'"):
        find("racer", filled)


def test_ids_that_somebody_made_up_have_no_name_to_be_near(tmp_path: Path) -> None:
    (tmp_path / "baseline").mkdir()
    with pytest.raises(RunError, match="nearest: 'baseline'"):
        find("basline", tmp_path)


def test_links_and_files_are_no_runs(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (filled / "link").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    (filled / "file").write_text("")
    (filled / ".new-abc").mkdir()
    assert sorted(run_ids(filled)) == IDS
    with pytest.raises(RunError, match="no run 'link'"):
        find("link", filled)


def test_a_name_with_a_slash_is_a_name_unless_it_is_a_folder(
    filled: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = RunFolder(filled / IDS[0])
    label(first, name="x/y")
    assert Run("x/y", filled).folder == first
    assert select(["x/y"], filled) == [Run(first)]
    with pytest.raises(RunError, match=r"no run 'z' in .*/x"):
        Run("x/z", filled)
    here = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(here)
    (here / "x").symlink_to(filled)
    (filled / "y").mkdir()
    write_json(filled / "y" / "recipe.json", {"name": "z"})
    assert Run("x/y", filled).id == "y", "an existing folder counts before a name"


@pytest.mark.parametrize("given", [5, None, ["a"]])
def test_what_is_neither_text_nor_path_is_no_run(given: object) -> None:
    with pytest.raises(RunError, match=r"is no run: give an id, the beginning of one, a name, or a folder's path"):
        Run(given)  # type: ignore[arg-type]


def test_an_empty_or_missing_folder_says_so(tmp_path: Path) -> None:
    assert run_ids(tmp_path / "gone") == []
    with pytest.raises(RunError, match="holds no runs"):
        find("a", tmp_path / "gone")


def test_a_folder_that_is_no_runs_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    with pytest.raises(RunError, match=r"no run .etc. in .*neither recipe\.json nor state\.json"):
        typed(tmp_path / "etc")
    (tmp_path / "etc" / "state.json").write_text("{")
    assert typed(tmp_path / "etc") == ("etc", tmp_path)
