"""Names that mean a file or folder of this machine, where a name on the Hub would be legal, too; and the Hub's."""

from __future__ import annotations

import os
from pathlib import Path

ANSWER_SECONDS = 10.0
"""Time for the Hub to answer before only its local cache is asked."""


def local_path(name: str) -> Path | None:
    """Return the path that a name means: absolute, begun with ``.`` or ``~``, or there; None for a name on the Hub."""
    path = Path(name).expanduser()
    begun = name in (".", "..") or name.startswith(tuple(each + os.sep for each in (".", "..", "~")))
    return path.absolute() if begun or path.is_absolute() or os.path.exists(path) else None


def hub_answers(model: str) -> bool:
    """Return whether the Hub can be asked about ``model``, found out in seconds; transformers itself tries for 20 s."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        HfApi().model_info(model, timeout=ANSWER_SECONDS)
    except HfHubHTTPError:
        return True  # it answered; the download reports why it refused
    except Exception:  # no route, no name service, offline mode, a proxy's refusal: each of its own type
        return False
    return True
