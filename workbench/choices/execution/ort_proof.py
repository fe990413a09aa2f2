"""Completes and proves an environment of ONNX Runtime: ``python -P -m workbench.choices.execution.ort_proof``, there.

Compiles ORTModule's extension beside ORTModule, then takes gradients of a small module through ORT and through torch.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

EXTENSION = "aten_op_executor"
"""Lets ORT run operators of torch that ONNX has none for: the look-up of embeddings, indexing."""


def compile_extension() -> None:
    """Build the extension where ORTModule looks for it.

    Raises:
        subprocess.CalledProcessError: it does not compile; the compiler has said why.
    """
    package = importlib.util.find_spec("onnxruntime")
    assert package is not None
    assert package.origin is not None
    home = Path(package.origin).parent / "training" / "ortmodule" / "torch_cpp_extensions"
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        setup = home / "cpu" / EXTENSION / "setup.py"
        command = [sys.executable, str(setup), "build_ext", "--build-lib", scratch, "--build-temp", scratch]
        # It only hands calls over, so nothing is gained by optimising it, and 8 of 33 seconds are saved by not.
        subprocess.run(command, check=True, cwd=scratch, env=os.environ | {"CFLAGS": "-O0 -g0"})
        (built,) = Path(scratch).glob(f"{EXTENSION}*.so")
        # Renamed into place: whole or absent, whenever this is killed.
        built.replace(home / built.name)


def prove() -> None:
    """Check gradients of ORTModule against torch's.

    Raises:
        AssertionError: they differ.
    """
    from workbench.choices.execution.ort_adapter import load_ortmodule

    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 8), nn.LayerNorm(8, bias=False), nn.GELU())
    tokens_BT = torch.arange(16).view(2, 8)
    expected = torch.autograd.grad(module(tokens_BT).square().mean(), list(module.parameters()))
    load_ortmodule().ORTModule(module)(tokens_BT).square().mean().backward()
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    compile_extension()
    prove()
    print("gradients through ONNX Runtime equal torch's")
