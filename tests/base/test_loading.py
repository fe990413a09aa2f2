"""Modules are loaded while no garbage is looked for, and only then."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.base.loading import load


def test_garbage_is_looked_for_again_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loaded_quietly.py").write_text("import gc\nCOLLECTED = gc.isenabled()\n")
    (tmp_path / "loaded_in_vain.py").write_text("raise OSError('half of it')\n")
    load("loaded_quietly")
    assert gc.isenabled()
    assert sys.modules.pop("loaded_quietly").COLLECTED is False
    with pytest.raises(OSError, match="half of it"):
        load("loaded_in_vain")
    assert gc.isenabled()
    gc.disable()
    try:
        load("json")
        assert not gc.isenabled(), "as the caller had it"
    finally:
        gc.enable()


@pytest.mark.process
@pytest.mark.parametrize("before", [False, True], ids=["with torch", "after torch"])
def test_what_came_with_torch_is_not_looked_at_again_unless_tensors_may_be_among_it(before: bool) -> None:
    program = "import gc, workbench\nworkbench.Recipe\nprint(gc.isenabled(), gc.get_freeze_count() > 0)\n"
    program = f"import torch\n{program}" if before else program
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", str(not before)]


@pytest.mark.process
def test_at_the_end_none_is_looked_for_after_all_that_is_done_then() -> None:
    program = (
        "import atexit, gc\n"
        "atexit.register(lambda: print('last', gc.get_freeze_count() > 0))\n"
        "import workbench.base.loading\n"
        "atexit.register(lambda: print('first', gc.get_freeze_count() > 0))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["first", "False", "last", "True"]


@pytest.mark.process
def test_the_beginning_of_a_process_is_known_to_a_tick() -> None:
    command = [sys.executable, "-c", "from workbench.base.loading import process_began; print(process_began())"]
    before = time.monotonic()
    began = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    # Starts are counted in hundredths; counted from a boot in whole seconds, they were up to one second too early.
    assert before - 0.02 <= began <= before + 0.5


@pytest.mark.process
def test_a_notebook_is_read_without_a_parser_of_addresses() -> None:
    """jsonschema builds one from a grammar, in two seconds of a core, wherever its package is installed."""
    program = "import sys, nbformat; print('rfc3987_syntax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n", "constraints.txt names the jsonschema that does without"
