"""A small extension of the Jupyter server: what runs have said, and requests to them, without any kernel.

Plots so move, and Stop works, while the kernel is in a long cell, restarts or is gone. Installed with the package;
``jupyter server extension disable workbench.jupyter.server`` turns it off, and kernels feed their pages alone. No
torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "workbench.jupyter.server"}]


def _load_jupyter_server_extension(app: ServerApp) -> None:
    # Here, so that listing extensions imports nothing of ours.
    from workbench.jupyter.server.handlers import routes
    from workbench.jupyter.server.registered_runs import Places

    base_url = app.web_app.settings["base_url"]
    # So that a page knows that we are here: asking in vain would be an error in its console, time and again.
    app.web_app.settings.setdefault("page_config_data", {})["workbench"] = "1"
    app.web_app.add_handlers(".*$", routes(base_url, Places.of_server(app.root_dir)))
    app.log.info("workbench: runs are served under %sworkbench/api", base_url)
