"""The tasks that lie beside the project, where they are there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(
    os.environ.get("WORKBENCH_EVAL", "").split(os.pathsep)[0] or Path(__file__).parents[4] / "shared" / "data"
)
there = pytest.mark.skipif(not (FOLDER / "more" / "boolq").is_dir(), reason=f"no evaluation sets in {FOLDER}")
