"""The tiny recipe and runs of it, as in ``tests/training``."""

from tests.training.conftest import live, tiny

__all__ = ["live", "tiny"]
