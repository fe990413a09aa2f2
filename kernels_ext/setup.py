"""Builds the CPU kernels against the torch that is installed; everything else stands in pyproject.toml."""

from setuptools import setup

try:
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ImportError as error:
    raise SystemExit(
        "workbench-kernels is built against the torch you use, which an isolated build cannot see: install torch, "
        "then `pip install --no-build-isolation ./kernels_ext`"
    ) from error

setup(
    ext_modules=[
        CppExtension(
            "workbench_kernels.layerwise._cpu",
            ["workbench_kernels/layerwise/cpu.cpp"],
            depends=["workbench_kernels/layerwise/loops.h"],
            # Without the flags that keep errno and floating-point traps, a loop around a square root is no vector code.
            extra_compile_args=["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"],
            # torch 2.11, the oldest whose stable ABI is asked for; the library knows no Python at all.
            define_macros=[("TORCH_TARGET_VERSION", "0x020b000000000000"), ("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
        )
    ],
    # Without ninja: one file, and nothing to install for it.
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False, no_python_abi_suffix=True)},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
