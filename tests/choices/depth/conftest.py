"""Depth methods are tested in the loop that carries them out: its tiny recipe, corpus and runs."""

from tests.training.conftest import _one_thread, build, prepared, tiny

__all__ = ["_one_thread", "build", "prepared", "tiny"]
