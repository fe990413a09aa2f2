"""Real runs of the training tests' tiny recipe."""

from tests.training.conftest import live, tiny  # noqa: F401  (fixtures)
