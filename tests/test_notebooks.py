"""Notebooks: the rules they follow, and what they leave under papermill; of those that race, some are only planned."""

from __future__ import annotations

import ast
import functools
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

import workbench
from tests.corpus import CYCLE
from tests.documents import ROOT, Executed, blocks, code_cells, without_compiler
from tests.forecasting.machine_rates import RATES
from workbench.base.errors import RunFailed, WorkbenchError
from workbench.bench import ladder
from workbench.bench.harness import run

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LONGEST_CELL = 12
MOST_OUTPUT_BYTES = 300_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestRules:
    def test_name(self, path: Path) -> None:
        assert re.fullmatch(r"[0-9]{2}_[a-z]+(_[a-z]+)*\.ipynb", path.name)

    def test_format_and_kernel(self, path: Path) -> None:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert notebook.metadata.kernelspec.name == "python3"
        assert set(notebook.metadata) <= {"kernelspec", "language_info"}
        assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)

    def test_stripped(self, path: Path) -> None:
        for cell in code_cells(path):
            assert cell.outputs == []
            assert cell.execution_count is None

    def test_first_code_cell_holds_the_parameters(self, path: Path) -> None:
        tags = [cell.metadata.get("tags", []) for cell in code_cells(path)]
        assert tags[0] == ["parameters"]
        assert not any("parameters" in later for later in tags[1:])

    def test_cells_are_short(self, path: Path) -> None:
        for cell in code_cells(path):
            assert len(cell.source.splitlines()) <= LONGEST_CELL, cell.id

    def test_all_it_needs_of_us_is_wb(self, path: Path) -> None:
        for cell in code_cells(path):
            assert inner_imports(cell.source) == [], cell.id

    def test_every_name_of_wb_exists(self, path: Path) -> None:
        assert {name for cell in code_cells(path) for name in names_of_wb(cell.source)} <= set(workbench.__all__)

    def test_papermill_can_read_every_parameter(self, path: Path) -> None:
        parameters = papermill.inspect_notebook(str(path))
        assert set(re.findall(r"^(\w+) = ", code_cells(path)[0].source, re.MULTILINE)) == set(parameters)


def names_of_wb(source: str) -> set[str]:
    """``race`` of ``wb.race(...)``, and so on."""
    tree = compile(source, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "wb"
    }


def inner_imports(source: str) -> list[str]:
    """Lines of code (with or without a notebook's ``await``) that import anything of ours but ``workbench as wb``."""
    found = []
    for node in ast.walk(compile(source, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)):
        if isinstance(node, ast.Import):
            ours = [(name.name, name.asname) for name in node.names if name.name.split(".")[0] == "workbench"]
            if any(each != ("workbench", "wb") for each in ours):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "workbench":
            found.append(ast.unparse(node))
    return found


def test_the_readmes_python_needs_nothing_else_either() -> None:
    examples = blocks(ROOT / "README.md", "python")
    examples += [
        "\n".join(line[1:] for line in difference.splitlines() if line.startswith("+"))
        for difference in blocks(ROOT / "README.md", "diff")
    ]
    assert any("import workbench as wb" in example for example in examples)
    assert [line for example in examples for line in inner_imports(example)] == []


@pytest.mark.parametrize(
    ("stem", "refused", "written"),
    [
        ("10_train", "preset", ["results.json", "results.xml"]),
        ("20_race", "mine", ["race.json", "race.xml", "race.html"]),
        ("22_sweep", "recipe", ["sweep.json", "sweep.html"]),
    ],
)
def test_refused_parameters_leave_no_results_of_an_earlier_run(
    stem: str, refused: str, written: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    parameters, first, *_ = (cell.source for cell in code_cells(FOLDER / f"{stem}.ipynb"))
    exec(parameters, names)
    earlier = [tmp_path / name for name in written]
    for path in earlier:
        path.write_text("an earlier run")
    with pytest.raises(WorkbenchError, match="quikstart"):
        exec(first, names | {refused: "quikstart", "runs_dir": str(tmp_path / "runs")})
    assert [path for path in earlier if path.exists()] == []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.mark.xdist_group("readme")
def test_train_ends_with_pictures_and_results(readme: Executed) -> None:
    """As README's command for papermill leaves it: 30 steps of a preset with a target that they meet."""
    results = json.loads((readme.folder / "results.json").read_text())
    assert results["state"] == "finished"
    assert results["steps"] == 30
    assert results["heldout_loss"] < 9.0
    assert results["target_met"] is True
    assert results["recipe"]["seed"] == 0
    suite = ElementTree.parse(readme.folder / "results.xml").getroot()
    assert (suite.get("errors"), suite.get("failures")) == ("0", "0")
    executed = readme.folder / "out.ipynb"
    assert executed.stat().st_size < MOST_OUTPUT_BYTES
    outputs = [output for cell in code_cells(executed) for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert any("target met" in output.get("text", "") for output in outputs)


@pytest.mark.xdist_group("readme")
def test_report_of_that_run(place: Path, readme: Executed) -> None:
    page = place / "page.html"
    run = json.loads((readme.folder / "results.json").read_text())["run"]
    run_notebook(place, "12_report_run", run_ids=[run], runs_dir=str(readme.folder / "runs"), report_path=str(page))
    assert page.stat().st_size < 6_000_000
    text = (place / "12_report_run.ipynb").read_text()
    assert "held-out loss" in text
    assert "word frequencies" in text
    assert "image/png" in text


@pytest.mark.extended
@pytest.mark.process
def test_missed_target_fails_but_leaves_results(place: Path, learnable: list[str]) -> None:
    with pytest.raises(PapermillExecutionError, match=r"target missed: \d\.\d+ against 0\.010") as error:
        run_notebook(
            place, "10_train", overrides=" ".join(f"'{change}'" for change in [*learnable, "name=<b>tiny"]), seed=3,
            budget="5 steps", target_loss=0.01, results_path="deep/missed.json",
        )  # fmt: skip
    assert error.value.ename == "TargetMissed"
    found = json.loads((place / "deep" / "missed.json").read_text())
    assert (found["target_met"], found["state"], found["recipe"]["seed"]) == (False, "finished", 3)
    suite = ElementTree.parse(place / "deep" / "missed.xml").getroot()
    assert suite.get("failures") == "1"
    shown = [
        output.get("data", {}).get("text/html", "")
        for cell in code_cells(place / "10_train.ipynb")
        for output in cell.outputs
    ]
    assert any("&lt;b&gt;tiny" in html for html in shown)
    assert not any("<script" in html for html in shown)


@pytest.mark.process
def test_a_failed_run_fails_its_notebook_with_its_reason(place: Path) -> None:
    """Here: that papermill ends with what a cell raised is seen above, and a kernel takes seconds."""
    missing = place / "no-such-text.jsonl"
    missing.write_text('{"text": "there"}\n{"other": "text"}\n')
    data = {"kind": "files", "paths": [str(missing)]}
    given = {"overrides": [f"data={json.dumps(data)}"], "runs_dir": str(place / "runs"), "budget": "5 steps"}
    *cells, judge = code_cells(FOLDER / "10_train.ipynb")
    names: dict[str, Any] = {}
    for cell in cells:
        # That one shows the run in the notebook's page, second by second.
        if cell.id != "wait":
            exec(cell.source, names)
        if cell.id == "parameters":
            names |= {**given, "results_path": str(place / "failed.json")}
        elif cell.id == "launch":
            with pytest.raises(RunFailed):
                names["run"].wait_blocking(timeout=60)
    with pytest.raises(RunFailed, match=r"no-such-text\.jsonl"):
        exec(judge.source, names)
    found = json.loads((place / "failed.json").read_text())
    assert found["state"] == "failed"
    assert "no-such-text.jsonl" in found["error"]


@pytest.mark.extended
@pytest.mark.process
def test_quickstart_headless(place: Path, learnable: list[str]) -> None:
    run_notebook(place, "00_quickstart", overrides=learnable, budget="20 steps")
    assert (place / "00_quickstart.ipynb").stat().st_size < MOST_OUTPUT_BYTES
    outputs = [output for cell in code_cells(place / "00_quickstart.ipynb") for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    by_cell = {cell.id: cell.outputs for cell in code_cells(place / "00_quickstart.ipynb")}
    assert "progressive_drop" in by_cell["compose"][0]["data"]["text/html"]
    ended = "".join(output["text"] for output in by_cell["wait"])
    assert all(name in ended for name in ("every layer", "dropping layers")), ended
    (compared,) = by_cell["compare"]
    assert {"image/png", "text/html"} <= compared["data"].keys()
    assert all(text in compared["data"]["text/html"] for text in ("every layer", "dropping layers", "depth.kind"))
    assert 'href="' in by_cell["report"][0]["data"]["text/html"]
    assert (place / "runs" / "quickstart.html").is_file()
    # Nobody saw the Lab: it stands there as text, with the runs that it would show.
    lab = outputs[-1]["data"]
    assert "need a page" in lab["text/html"]
    assert "dropping layers" in lab["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" not in lab


class TestClaims:
    """A paper's claim each: its source, what it does not show, and parameters that make it small."""

    @pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem[0] == "4"], ids=lambda path: path.stem)
    def test_what_all_of_them_have(self, path: Path) -> None:
        assert {"budget", "seeds", "overrides", "runs_dir"} <= set(papermill.inspect_notebook(str(path)))
        cells = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}
        assert "claim.**" in cells["title"]
        assert re.search(r"\(.+ 20\d\d, .+\)", cells["title"])
        assert "What this cannot show" in cells["limits"]

    @pytest.mark.parametrize("name", ["40_pld", "41_lans", "42_mslt"])
    def test_its_races_can_begin(self, name: str, place: Path, learnable: list[str]) -> None:
        """All cells up to the race, which is only planned, on a machine that never was."""
        planned = functools.partial(workbench.race, dry_run=True, rates=RATES)
        names: dict[str, Any] = {}
        for cell in code_cells(FOLDER / f"{name}.ipynb"):
            exec(cell.source, names)
            if cell.id == "parameters":
                small = [*learnable, "architecture.layers=4"]
                names |= {"overrides": small, "budget": "40 steps", "runs_dir": str(place / "none")}
            elif cell.id == "compose":
                names["wb"] = SimpleNamespace(race=planned)
            elif cell.id == "race":
                break
        plans = names["races"].values() if "races" in names else [names["race"]]
        assert all(len(plan.arms) >= 2 and len(plan.seeds) == names["seeds"] for plan in plans)
        assert not (place / "none").exists()

    @pytest.mark.extended
    @pytest.mark.xdist_group("readme")
    @pytest.mark.usefixtures("held_without_compiler")
    @pytest.mark.process
    def test_headless(self, place: Path, learnable: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        without_compiler(monkeypatch)
        run_notebook(place, "43_execution", budget="20 steps", seeds=1, precision="fp32", overrides=learnable)
        (result,) = (cell.outputs for cell in code_cells(place / "43_execution.ipynb") if cell.id == "result")
        assert re.search(r"ours is \d+\.\d\dx as fast as eager, [+-]\d+%", result[0]["text"])
        # The same mathematics: with nothing compiled and one precision, to the last digit that is printed.
        apart = "ours minus eager, held-out loss at the same seed: +0.000 to +0.000 nats"
        assert apart in result[0]["text"].replace("-0.000", "+0.000")


def test_the_ladder_s_notebook_does_without_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = {cell.id: cell.source for cell in code_cells(FOLDER / "30_tenfold.ipynb")}
    exec(cells["study"], {"Path": Path})
    assert "the command above makes one" in capsys.readouterr().out
    (command,) = re.findall(r"^workbench (.*)$", _text(FOLDER / "30_tenfold.ipynb"), re.MULTILINE)
    assert command == "bench ladder"


def test_all_rungs_can_be_tried_in_the_ladder_s_workshop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the notebook's own options: the last rung is reached after minutes."""
    cells = {cell.id: cell.source for cell in code_cells(FOLDER / "30_tenfold.ipynb")}
    names: dict[str, Any] = {}
    exec(cells["parameters"], names)
    names["out"] = str(tmp_path / "ladder.json")
    exec(cells["workshop"].partition("with Popen")[0], names)
    climbed: list[Sequence[Any]] = []

    def climb(arms: Sequence[Any], *_: Any) -> Any:
        climbed.append(arms)
        raise WorkbenchError("far enough")

    monkeypatch.setattr(ladder, "climb", climb)
    monkeypatch.setattr(ladder.Stage, "train", lambda *_: [])
    with pytest.raises(WorkbenchError, match="far enough"):
        run("ladder", names["short"])
    assert len(climbed[0]) == 3


class TestAccelerate:
    """A model of one's own in three changed lines: the notebook shows the difference, and it is true."""

    @pytest.fixture(scope="class")
    def notebook(self) -> Any:
        return nbformat.read(FOLDER / "21_accelerate_model.ipynb", as_version=4)

    def test_three_lines_change_and_they_are_the_ones_that_run(self, notebook: Any) -> None:
        code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        shown = [re.findall(r"^```diff\n(.*?)^```", cell.source, re.MULTILINE | re.DOTALL) for cell in notebook.cells]
        differences = [difference for found in shown for difference in found]
        assert len(differences) == 2
        for difference in differences:
            added = [line[1:] for line in difference.splitlines() if line.startswith("+")]
            assert len(added) == 3
            assert all(line in code for line in added)
            ast.parse("\n".join(line[1:] for line in difference.splitlines() if line.startswith("-")))

    @pytest.mark.extended
    @pytest.mark.process
    def test_headless(self, place: Path, notebook: Any) -> None:
        run_notebook(place, "21_accelerate_model", budget="12 steps")
        outputs = {cell.id: cell.outputs for cell in code_cells(place / "21_accelerate_model.ipynb")}
        assert "layer 2 is not called with the output of layer 1" in outputs["needs"][0]["text"]
        assert outputs["load"][0]["data"]["text/plain"] == "True"
        assert "stack='bert.encoder.layer'" in outputs["transformers-drop"][0]["data"]["text/plain"]
        assert any("image/png" in output.get("data", {}) for output in outputs["compare"])
        assert (place / "21_accelerate_model.ipynb").stat().st_size < MOST_OUTPUT_BYTES


@pytest.mark.extended
@pytest.mark.process
def test_fine_tuning_on_questions_headless(place: Path, learnable: list[str]) -> None:
    data = write_questions(place / "squad")
    run_notebook(place, "50_finetune_squad", data=str(data), preset="fast", overrides=[*learnable, "budget=20 steps"],
                 length=32, limit=40, rates=[1e-3], epochs=1.0)  # fmt: skip
    (printed,) = (cell.outputs for cell in code_cells(place / "50_finetune_squad.ipynb") if cell.id == "result")
    assert re.search(r"squad f1: trained 0\.\d+, untrained 0\.\d+, overlapping sentence 0\.\d+", printed[0]["text"])
    assert "the paper's F1 of 90.5 needs BERT-large" in printed[0]["text"]


def write_questions(folder: Path) -> Path:
    """Write a development file of 48 articles as SQuAD has them, each with two questions."""
    folder.mkdir()
    articles = []
    for place in range(48):
        first, second = CYCLE[place % 20], CYCLE[(place + 7) % 20]
        text = f"The {first} sat by the {second}. It was {second} day."
        asked = [
            {"id": word, "question": f"Where is {word}?", "answers": [{"text": word, "answer_start": text.index(word)}]}
            for word in (first, second)
        ]
        articles.append({"title": f"{place}", "paragraphs": [{"context": text, "qas": asked}]})
    (folder / "dev-v1.1.json").write_text(json.dumps({"version": "1.1", "data": articles}))
    return folder


def run_notebook(place: Path, name: str, **parameters: Any) -> None:
    """Execute a notebook in ``place``, runs into its ``runs`` folder."""
    papermill.execute_notebook(
        str(FOLDER / f"{name}.ipynb"), str(place / f"{name}.ipynb"), cwd=str(place), progress_bar=False,
        parameters={"runs_dir": str(place / "runs"), **parameters},
    )  # fmt: skip


def _text(path: Path) -> str:
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
