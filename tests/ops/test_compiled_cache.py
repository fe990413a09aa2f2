"""A cache of compiled graphs that a killed process has damaged, with the real compiler in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch._dynamo import config as dynamo_config
from torch._inductor import config, cpu_vec_isa

from workbench.ops.compiled_cache import damaged_library, mending, probe_instructions

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


@pytest.mark.extended
@pytest.mark.process
def test_half_a_library_is_made_anew(tmp_path: Path) -> None:
    environment = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout == "mended\n", done.stderr


def test_other_errors_and_a_file_that_stays_damaged_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
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


def test_a_library_that_is_not_of_the_cache_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "libm.so"
    path.write_text("a script of the linker")

    def load_it() -> None:
        raise OSError(f"{path}: invalid ELF header")

    with pytest.raises(OSError, match="invalid ELF header"):
        mending(load_it)
    assert path.exists()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A processor with two sets of instructions, a compiler that knows those in the list, and nobody's own word."""
    known = ["avx2", "avx512"]
    monkeypatch.setattr(cpu_vec_isa, "x86_isa_checker", lambda: ["avx2", "avx512"])
    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", lambda: list(known))
    with config.patch({"cpp.vec_isa_ok": None}):
        yield known


def test_a_compiler_is_asked_for_its_instructions_once_per_machine(asked: list[str], tmp_path: Path) -> None:
    probe_instructions(tmp_path)
    assert config.cpp.vec_isa_ok is True
    config.cpp.vec_isa_ok = None
    asked.clear()  # whoever asked now would be told of none
    probe_instructions(tmp_path)
    assert config.cpp.vec_isa_ok is True
    # On another machine, it is asked.
    config.cpp.vec_isa_ok = None
    probe_instructions(tmp_path / "other")
    assert config.cpp.vec_isa_ok is None


def test_a_compiler_that_lacks_instructions_is_asked_every_time(asked: list[str], tmp_path: Path) -> None:
    asked.remove("avx512")
    probe_instructions(tmp_path)
    assert config.cpp.vec_isa_ok is None
    assert list(tmp_path.iterdir()) == []


def test_nobody_is_asked_for_instructions_where_nothing_is_compiled(asked: list[str], tmp_path: Path) -> None:
    with dynamo_config.patch(disable=True):
        probe_instructions(tmp_path)
    assert config.cpp.vec_isa_ok is None
    assert list(tmp_path.iterdir()) == []


def test_kernels_are_the_same_whether_a_compiler_was_asked_or_not() -> None:
    cpu_vec_isa.valid_vec_isa_list.cache_clear()
    with config.patch({"cpp.vec_isa_ok": None}):
        usable = cpu_vec_isa.valid_vec_isa_list()
    offered = {word for each in cpu_vec_isa.x86_isa_checker() for word in each.split()}
    if {word for each in usable for word in str(each).split()} != offered:
        pytest.skip(f"this compiler lacks instructions: the processor has {offered}")
    cpu_vec_isa.valid_vec_isa_list.cache_clear()
    with config.patch({"cpp.vec_isa_ok": True}):
        assert cpu_vec_isa.valid_vec_isa_list() == usable
