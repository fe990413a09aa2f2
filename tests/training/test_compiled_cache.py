"""A cache of compiled graphs that a killed process has damaged, with the real compiler in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.training.compiled_cache import damaged_library, mending

PROGRAM = """
import torch
import torch._inductor.config
from workbench.training.compiled_cache import mending

# Headers compiled ahead pay off from a dozen kernels on; here is one, and every cache would need its own.
torch._inductor.config.cpp_cache_precompile_headers = False
function, x = torch.compile(lambda x: (x * 2).sin() + x), torch.ones(99)
print(len(mending(lambda: torch.testing.assert_close(function(x), (x * 2).sin() + x))))
"""


def run(cache: Path) -> int:
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.process
def test_half_a_library_is_made_anew(tmp_path: Path) -> None:
    assert run(tmp_path) == 0
    # Kernels only: other files there are probes of the processor, made in a moment.
    libraries = list(tmp_path.rglob("*.main.so"))
    assert libraries
    for path in libraries:
        path.write_bytes(path.read_bytes()[:100])
    assert run(tmp_path) >= 1
    assert run(tmp_path) == 0


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
