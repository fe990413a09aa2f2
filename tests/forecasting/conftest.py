"""The forecaster is tested with the trainer's tiny recipe and corpus."""

from tests.training.conftest import _one_thread, build, prepared, tiny

__all__ = ["_one_thread", "build", "prepared", "tiny"]
