"""A run folder and a recipe of this version's schemas, small enough to keep: ``python -m tests.packages.example``.

Made anew only with a new schema, in a folder of its own: earlier ones must go on opening.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import workbench as wb
from tests.tiny_runs import tiny_recipe
from workbench.store.folder import RunFolder

KEPT = Path(__file__).parent / "schema_1"
TEXT = Path("/tmp/workbench-schema-1/text.txt")
"""Where the recipe says that the text lies: a checkpoint belongs to one recipe, its paths included."""
RUN = "20260101-000000-example-000000-0000"
STEPS, STOPPED_AFTER = 200, 1


def make() -> None:
    """Write recipe and run folder."""
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir()
    lay_text()
    os.environ["WORKBENCH_REPORT"] = "off"  # a page would be written after the end
    recipe = tiny_recipe(TEXT, STEPS, "example").with_(
        architecture={"layers": 1, "width": 16}, data={"batch_size": 128}
    )
    recipe.save(KEPT / "recipe.json")
    run = wb.launch(recipe, runs_dir=KEPT / "runs", run_id=RUN)
    while not run.final and run.state.step < STOPPED_AFTER:
        time.sleep(0.01)
    run.stop()
    run.wait()
    _thin(run.folder)


def lay_text() -> None:
    """Write the text."""
    TEXT.parent.mkdir(exist_ok=True)
    facts = [f"Kettle number {i} boils {i * 7 % 19} cups of water in {i * 3 % 11 + 2} minutes.\n\n" for i in range(400)]
    TEXT.write_text("".join(facts), encoding="utf-8")


def _thin(folder: RunFolder) -> None:
    """Leave out what no reader needs and what says something of this machine; of the checkpoints the last stays."""
    for checkpoint in sorted(folder.checkpoints.glob("step-*"), key=lambda path: int(path.name[5:]))[:-1]:
        shutil.rmtree(checkpoint)
    for path in (folder.lock, folder.reserve, folder.log):
        path.unlink(missing_ok=True)
    own = {"host": "example", "git": None, "folder": ".", "python": "python", "settings": {}}
    for path in (folder.launched, folder.state, folder.environment):
        kept = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({name: own.get(name, value) for name, value in kept.items()}, indent=1))


if __name__ == "__main__":
    make()
