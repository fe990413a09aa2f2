"""The Triton kernels: interpreted and built for a GPU wherever Triton is installed, run on a GPU where there is one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("workbench_kernels", reason="workbench-kernels is not installed: `make kernels` builds it")

TRITON = Path(sys.prefix, "triton")
"""Where `make kernels` puts Triton: apart from other packages, or torch would take it along on a CPU."""
has_triton = TRITON.exists() or importlib.util.find_spec("triton") is not None
needs_triton = pytest.mark.skipif(not has_triton, reason="triton is not installed: `make kernels` does it")


def run(script: str, **environment: str) -> str:
    """Standard output of a script beside this file, in a process of its own: the interpreter is chosen at import."""
    command = [sys.executable, str(Path(__file__).with_name(script))]
    environment["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(TRITON)])
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.extended
@needs_triton
@pytest.mark.slow
@pytest.mark.process
def test_steps_equal_the_reference_under_the_interpreter() -> None:
    assert run("interpreted_steps.py", TRITON_INTERPRET="1") == "equal\n"


@pytest.mark.extended
@needs_triton
@pytest.mark.process
def test_every_kernel_builds_for_hopper(tmp_path: Path) -> None:
    built = run("built_for_hopper.py", TRITON_CACHE_DIR=str(tmp_path)).splitlines()
    assert len(built) == 10
    assert all(int(line.split()[-1]) > 1000 for line in built)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("normalised", [True, False], ids=["lans", "lamb"])
def test_a_gpu_follows_the_reference_bit_for_bit_twice(normalised: bool) -> None:
    from workbench_kernels.layerwise import cuda, reference

    shapes = ([32320, 1024], [1], [18011], [33, 17])
    ended = []
    for _ in range(2):
        generator = torch.Generator("cuda").manual_seed(0)
        weights = [torch.randn(shape, device="cuda", generator=generator) for shape in shapes]
        moments, squares = ([torch.zeros_like(x) for x in weights] for _ in range(2))
        ratios, counts = ([torch.zeros((), device="cuda") for _ in weights] for _ in range(2))
        slow = [x.double() for x in weights]
        slow_state = [[x.double() for x in each] for each in (moments, squares, ratios)]
        for _ in range(7):
            for count in counts:
                count += 1
            grads = [torch.randn(x.shape, device="cuda", generator=generator) for x in weights]
            lr, scale = (torch.tensor(value, device="cuda", dtype=torch.float64) for value in (0.01, 1.0))
            torch.cuda.set_sync_debug_mode("error")
            cuda.step(
                weights, grads, moments, squares, ratios, [], counts, lr, scale, beta1=0.9, beta2=0.999, eps=1e-6,
                weight_decay=0.01, lowest=0.0, highest=float("inf"), bias_correction=True, adapts=True,
                normalised=normalised,
            )  # fmt: skip
            torch.cuda.set_sync_debug_mode("default")
            reference.layerwise_step(
                slow, grads, *slow_state, counts, lr=0.01, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                normalised=normalised,
            )  # fmt: skip
        for ours, theirs in zip(weights, slow, strict=True):
            torch.testing.assert_close(ours.double(), theirs, rtol=2e-5, atol=2e-6)
        ended.append([*weights, *moments, *squares])
    assert all(torch.equal(one, other) for one, other in zip(*ended, strict=True))
