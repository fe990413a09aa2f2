"""Views of synthetic runs, written once per session by the real telemetry writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.store.folder import RunFolder
from workbench.store.view import RunView

from .synthetic import ENTROPY, folder_of, trained

EVIL = "<b>$x_1$</script><script>alert(1)</script>\x00\ud800"


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def view(root: Path) -> RunView:
    """A run that grew, dropped and froze layers and got below the neighbours' floor."""
    return trained(root)


@pytest.fixture(scope="session")
def plateau(root: Path) -> RunView:
    """A run that ended 0.03 nats below word frequencies, four times as slow."""
    return trained(root, "plateau", "slow one", final_loss=ENTROPY - 0.06, tokens_per_second=2000)


@pytest.fixture(scope="session")
def empty(root: Path) -> RunView:
    """A run that failed before it said anything."""
    return RunView.read(folder_of(root, "empty", "too early", "failed", error="RuntimeError: <img src=x onerror=y>"))


@pytest.fixture(scope="session")
def evil(root: Path) -> RunView:
    """A run whose name is an attack on every renderer, and on UTF-8."""
    return trained(root, "evil", EVIL, steps=40)


@pytest.fixture(scope="session")
def folder(view: RunView, root: Path) -> RunFolder:
    """The folder of :func:`view`."""
    return RunFolder(root / view.id)
