"""A cache of compiled graphs that a killed process has damaged, with the real compiler in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.ops.compiled_cache import damaged_library, mending

# Each compiles in a process of its own that has loaded no library yet; forked, for loading torch takes longest.
PROGRAM = """
import os, pathlib, sys, torch
import torch._inductor.compile_fx
from torch._inductor.cpu_vec_isa import pick_vec_isa
from workbench.ops.compiled_cache import mending

pick_vec_isa()  # what the processor can is tried out once for all, in the cache that other tests share
os.environ["TORCHINDUCTOR_CACHE_DIR"] = sys.argv[1]

def compile_and_count():
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    function, x = torch.compile(lambda x: (x * 2).sin() + x), torch.ones(99)
    os._exit(len(mending(lambda: torch.testing.assert_close(function(x), (x * 2).sin() + x))))

assert compile_and_count() == 0
libraries = list(pathlib.Path(sys.argv[1]).rglob("*.main.so"))
assert libraries
for path in libraries:
    path.write_bytes(path.read_bytes()[:100])
assert compile_and_count() == len(libraries)
assert compile_and_count() == 0
print("mended")
"""


@pytest.mark.process
def test_half_a_library_is_made_anew(tmp_path: Path) -> None:
    environment = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout == "mended\n", done.stderr


def test_other_errors_and_a_file_that_stays_damaged_are_raised(tmp_path: Path) -> None:
    assert damaged_library(ValueError("no.so: no such file")) is None
    with pytest.raises(ValueError, match="something else"):
        mending(lambda: (_ for _ in ()).throw(ValueError("something else")))
    path = tmp_path / "a.so"
    calls: list[int] = []

    def compile_again() -> None:
        calls.append(1)
        path.write_bytes(b"")
        raise ImportError(f"{path}: file too short")

    with pytest.raises(ImportError, match="file too short"):
        mending(compile_again)
    assert len(calls) == 2
