"""Names that mean a file or folder of this machine, where a name on the Hub would be legal, too."""

from __future__ import annotations

import os
from pathlib import Path


def local_path(name: str) -> Path | None:
    """The path that a name means: absolute, begun with ``.`` or ``~``, or there; None for a name on the Hub."""
    path = Path(name).expanduser()
    begun = name in (".", "..") or name.startswith(tuple(each + os.sep for each in (".", "..", "~")))
    return path.absolute() if begun or path.is_absolute() or os.path.exists(path) else None
