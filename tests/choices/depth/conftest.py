"""Depth methods are tested in the loop that carries them out: its tiny recipe, corpus and runs."""

from tests.training.conftest import build, prepared, tiny

__all__ = ["build", "prepared", "tiny"]
