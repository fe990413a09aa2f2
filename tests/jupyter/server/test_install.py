"""Installing turns the extension on, one command turns it off, and listing it costs nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import workbench
from tests.browser.servers import TURNED_OFF

pytestmark = pytest.mark.process
REPOSITORY = Path(workbench.__file__).parents[1]
CONFIG = REPOSITORY / "jupyter-config"


def jupyter_server(home: Path, *arguments: str) -> str:
    """``jupyter server`` for a user with this configuration; returns what it says."""
    environment = os.environ | {"HOME": str(home), "JUPYTER_CONFIG_DIR": str(home)}
    command = [sys.executable, "-m", "jupyter_server", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def state(said: str) -> str:
    """Return what the list says of our extension in the first configuration that names it, which counts."""
    return next(line for line in said.splitlines() if "workbench.jupyter.server" in line and "alidating" not in line)


def test_the_package_takes_its_configuration_to_where_servers_look() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    source, target = next(iter(shared.items()))
    assert target == "etc/jupyter/jupyter_server_config.d"
    assert REPOSITORY / source / "workbench.json" == CONFIG / "jupyter_server_config.d" / "workbench.json"
    assert (REPOSITORY / source / "workbench.json").is_file()


@pytest.mark.extended
def test_a_wheel_brings_both_extensions(tmp_path: Path) -> None:
    builder = pytest.importorskip("hatchling.builders.wheel", reason="needs hatchling, which builds the wheel")
    wheel = next(builder.WheelBuilder(str(REPOSITORY)).build(directory=str(tmp_path), versions=["standard"]))
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition(".data/data/")[2]: name for name in archive.namelist() if ".data/data/" in name}
        assert "etc/jupyter/jupyter_server_config.d/workbench.json" in names
        place = "share/jupyter/labextensions/workbench"
        build = json.loads(archive.read(names[f"{place}/package.json"]))["jupyterlab"]["_build"]
        script = build["load"].partition("?")[0]
        # What it loads when a run is watched lies beside it, and is what kernels send.
        for file in (script, "static/remoteEntry.css", "static/monitor.js", "static/monitor.css"):
            assert f"{place}/{file}" in names
        sent = REPOSITORY / "workbench" / "jupyter" / "static" / "monitor.js"
        assert archive.read(names[f"{place}/static/monitor.js"]) == sent.read_bytes()
        assert not [name for name in archive.namelist() if "node_modules" in name]


@pytest.mark.process
def test_it_is_on_and_can_be_turned_off(tmp_path: Path) -> None:
    # What installing copies into the environment's configuration, in the user's: this environment stays as it is.
    shutil.copytree(CONFIG, tmp_path, dirs_exist_ok=True)
    said = jupyter_server(tmp_path, "extension", "list")
    assert "enabled" in state(said)
    assert "workbench.jupyter.server  \x1b[32mOK" in said or "workbench.jupyter.server  OK" in said
    jupyter_server(tmp_path, "extension", "disable", "--user", "workbench.jupyter.server")
    # With this very configuration a server answers nothing of ours: tests/browser/test_steer.py.
    name, off = TURNED_OFF
    assert json.loads((tmp_path / name).read_text(encoding="utf-8")) == off


def test_a_server_that_lists_its_extensions_imports_none_of_our_libraries() -> None:
    code = (
        "import workbench.jupyter.server as s, sys; print(s._jupyter_server_extension_points(),"
        " sorted({'torch', 'numpy', 'tornado', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[{'module': 'workbench.jupyter.server'}] []"


def test_make_lab_opens_the_root_with_one_runs_folder_for_all() -> None:
    # As if everything were installed, and only said.
    make = ["make", "-C", str(REPOSITORY), "--no-print-directory", "-n", "-o", ".venv/.installed", "lab"]
    said = subprocess.run(make, capture_output=True, text=True, check=True).stdout
    assert f'WORKBENCH_RUNS="{REPOSITORY}/runs"' in said
    assert f'--ServerApp.root_dir="{REPOSITORY}"' in said
    quickstart = re.search(r"--LabApp\.default_url=/lab/tree/(\S+)", said)
    assert quickstart is not None
    assert (REPOSITORY / quickstart[1]).is_file()
