"""English prose from documentation that is already on this machine."""

from __future__ import annotations

from typing import Literal

from workbench.choices.data.data import Data


class Embedded(Data):
    """Docstrings and topics of the standard library and installed packages: no download, no licence question."""

    kind: Literal["embedded"] = "embedded"
