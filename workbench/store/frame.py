"""Rows as a table of pandas, which only who asks for one needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.base.errors import WorkbenchError

if TYPE_CHECKING:
    import pandas


def frame(rows: Sequence[dict[str, Any]]) -> pandas.DataFrame:
    """A row of the table for each.

    Raises:
        WorkbenchError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise WorkbenchError(
            "frame() makes a table of pandas, which is not installed: `pip install pandas`, or take the same rows "
            "as a list of dictionaries from .rows"
        ) from None
    return pandas.DataFrame(rows)
