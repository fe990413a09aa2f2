"""Compiles every Triton kernel for sm_90 without a GPU, and prints the size of what comes out; run by test_cuda.py."""

from __future__ import annotations

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from workbench_kernels.layerwise import cuda

TYPES = {
    "addresses_6T": "*i64", "sizes_T": "*i64", "chunks_2C": "*i64", "starts_T1": "*i64", "sums_3C": "*fp32",
    "numbers_7T": "*fp32", "lr": "*fp64", "grad_scale": "*fp64", "T": "i32", "C": "i32",
}  # fmt: skip
SIZES = {"CHUNK": cuda.CHUNK, "BLOCK": cuda.BLOCK, "SUMS": cuda.SUMS}


def main() -> None:
    """Both types of gradients, both methods."""
    kernels = (cuda.sum_squares, cuda.set_scale, cuda.move_moments, cuda.set_step, cuda.move_weights)
    for kernel in kernels:
        for flag in (True, False):
            constants = {p.name: SIZES.get(p.name, flag) for p in kernel.params if p.is_constexpr}
            types = {p.name: "constexpr" if p.is_constexpr else TYPES.get(p.name, "fp32") for p in kernel.params}
            source = ASTSource(kernel, types, constexprs=constants)
            built = triton.compile(source, target=GPUTarget("cuda", 90, 32))
            assert ".target sm_90" in built.asm["ptx"]
            assert "atom." not in built.asm["ptx"], "sums must not depend on who comes first"
            print(kernel.__name__, flag, len(built.asm["cubin"]))


if __name__ == "__main__":
    main()
