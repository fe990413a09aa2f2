"""A run's folder and its telemetry, as the tests of the page have them."""

from tests.jupyter.conftest import folder, writer

__all__ = ["folder", "writer"]
