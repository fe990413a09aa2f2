"""Fused optimizer steps as torch custom ops: C++ for CPUs, Triton for CUDA. Nothing here imports workbench."""

__version__ = "0.1.0"
