"""The tiny recipe and runs of it, as in ``tests/training``."""

from tests.training.conftest import _one_thread, live, tiny

__all__ = ["_one_thread", "live", "tiny"]
