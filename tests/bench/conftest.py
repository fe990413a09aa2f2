"""What is measured on a tiny recipe takes the trainer's; and contenders that train here."""

from tests.bench.here import turns_here
from tests.training.conftest import tiny

__all__ = ["tiny", "turns_here"]
