"""Real runs of a tiny recipe, each test in a runs folder of its own."""

from tests.run_folders import folder, root  # noqa: F401  (fixtures)
