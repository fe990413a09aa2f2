"""What is installed: names, files, digests."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from workbench.base.errors import DataError
from workbench.choices.data.documentation import installed_packages, standard_library


def test_named_packages_only():
    numpy, python = installed_packages(("NumPy", "python"))
    assert (numpy.name, numpy.version) == ("numpy", importlib.metadata.version("numpy"))
    assert python == standard_library()
    assert all(Path(path).is_file() for path in (*numpy.files, *python.files))
    assert not any("/tests/" in path for path in numpy.files)
    assert not any("site-packages" in path for path in python.files)
    assert any(path.endswith("METADATA") for path in numpy.files)
    assert any(path.endswith("pydoc_data/topics.py") for path in python.files)


def test_everything_installed_twice_the_same():
    packages = installed_packages()
    assert [p.name for p in packages] == sorted({p.name for p in packages})
    assert {"numpy", "torch", "transformers", "python"} <= {p.name for p in packages}
    assert packages == installed_packages()


def test_a_process_that_has_imported_setuptools_finds_the_same(monkeypatch: pytest.MonkeyPatch):
    before = installed_packages()
    setuptools = importlib.metadata.distribution("setuptools")
    copies = str(setuptools.locate_file("setuptools/_vendor"))
    assert list(importlib.metadata.distributions(path=[copies])), "this setuptools has no copies of other packages"
    monkeypatch.syspath_prepend(copies)
    assert installed_packages() == before


def test_our_own_documentation_is_left_out_unless_it_is_named():
    assert "workbench" not in {p.name for p in installed_packages()}, "losses would move with every commit"
    assert [p.name for p in installed_packages(("workbench",))] == ["workbench"]


def test_unknown_package():
    with pytest.raises(DataError, match=r"data\.packages: unknown value 'nunpy'; did you mean 'numpy'\?"):
        installed_packages(("nunpy",))
