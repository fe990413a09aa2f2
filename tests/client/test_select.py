"""From what people call runs to the runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.client.run_list import select
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label

IDS = {
    "20260101-000001-bert-aaaaaa-0001": "bert",
    "20260101-000002-bert-aaaaaa-0002": "bert",
    "20260102-000001-gpt-bbbbbb-0001": "gpt small",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for run_id, name in IDS.items():
        folder = RunFolder(tmp_path / run_id)
        folder.path.mkdir()
        write_json(folder.recipe, {"name": name})
    return tmp_path


@pytest.mark.parametrize(
    ("given", "places"),
    [
        (["gpt small"], [2]),
        (["bert"], [0, 1]),
        (["bert*"], [0, 1]),
        (["*"], [0, 1, 2]),
        (["*-gpt-*", "bert"], [2, 0, 1]),
        (["20260102"], [2]),
        (["20260101-000002-bert-aaaaaa-0002"], [1]),
        ([["gpt small", "gpt*"], ("20260102",)], [2]),
    ],
)
def test_what_a_text_stands_for_in_the_order_given_and_once(root: Path, given: list, places: list[int]) -> None:
    assert [run.id for run in select(given, root)] == [list(IDS)[place] for place in places]


def test_a_given_name_stands_for_its_run_and_the_recipes_no_longer(root: Path) -> None:
    first, second, third = (Run(root / run_id) for run_id in IDS)
    label(first.folder, name="Best [1]")
    assert select(["Best [1]"], root) == [first]
    assert select(["bert"], root) == [second]
    assert select(["Best*", "gpt*"], root) == [first, third]
    with pytest.raises(RunError, match=r"nearest: 'Best \[1\]'"):
        select(["Best 1"], root)


def test_what_is_called_so_by_its_id_alone_is_found_as_everywhere(root: Path) -> None:
    ids = [*IDS, "20260103-000001-mini-cccccc-0001"]
    (mini := RunFolder(root / ids[3])).path.mkdir()
    label(mini, name="tiny one")
    assert select(["mini"], root) == [Run("mini", root)] == [Run(mini)]
    label(RunFolder(root / ids[2]), name="mini")
    assert select(["mini"], root) == [Run("mini", root)] == [Run(root / ids[2])]


def test_handles_folders_and_paths(root: Path) -> None:
    first, second, third = (Run(root / run_id) for run_id in IDS)
    given = [third, second.folder, root / first.id, str(root / first.id)]
    assert select(given, "/elsewhere") == [third, second, first]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"no run is given; .* holds 3, see `wb\.runs\(\)` or `workbench runs`"),
        ([[]], "no run is given"),
        (["gpt smal"], "nearest: 'gpt small'"),
        (["lans*"], r"no run in .* 'lans\*'"),
        ([""], "no run in"),
        (["20260101"], "begins 2 run ids"),
        (["/dev/null/run"], "no run 'run'"),
        ([7], "7 is no run: give what wb.launch"),
        ([None], "None is no run"),
    ],
)
def test_what_names_no_run_is_one_clear_error(root: Path, given: list, message: str) -> None:
    with pytest.raises(RunError, match=message):
        select(given, root)


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"holds none\. Launch one"):
        select([], tmp_path)
    with pytest.raises(RunError, match="that folder holds no runs"):
        select(["bert"], tmp_path)
