"""What is measured on a tiny recipe takes the trainer's."""

from tests.training.conftest import tiny

__all__ = ["tiny"]
