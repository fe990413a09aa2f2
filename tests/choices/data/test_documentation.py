"""What is installed: names, files, digests."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from workbench.base.errors import DataError
from workbench.choices.data import documentation
from workbench.choices.data.documentation import core_packages, installed_packages, standard_library
from workbench.choices.data.embedded import Embedded


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


def test_the_fixed_list_is_what_every_installation_brings() -> None:
    """All that the core dependencies require, in the versions of constraints.txt; extras add nothing to it."""
    lines = Path(__file__).parents[3].joinpath("constraints.txt").read_text(encoding="utf-8").splitlines()
    asked = [Requirement(text) for line in lines if "==" in (text := line.split("#")[0].strip())]
    pinned = {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==")
        for each in asked
        if each.marker is None or each.marker.evaluate()
    }
    listed = core_packages()["packages"]
    assert {name: pinned.get(name) for name in listed} == listed
    for name in ("torch", "transformers", "jupyterlab", "numpy"):
        assert name in listed
    assert not {"datasets", "pytest", "ruff", "mypy", "workbench"} & set(listed)
    read = {package.name for package in installed_packages(("core",))}
    assert read == {*listed, "python"}


def test_another_version_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    core = core_packages()
    changed = {**core, "python": "3.9.1", "packages": {**core["packages"], "numpy": "1.0"}}
    monkeypatch.setattr(documentation, "core_packages", lambda: changed)
    numpy = f"numpy {importlib.metadata.version('numpy')}, not 1.0"
    assert numpy in documentation.other_versions()
    (notice,) = Embedded().notices()
    assert str(notice).startswith("data.packages: the text differs from the committed fingerprint: python ")
    assert not list(Embedded(packages=("numpy",)).notices())


def test_what_of_the_list_is_not_here_is_said_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another system or Python installs other packages."""
    core = core_packages()
    changed = {**core, "packages": {"no-such-package": "1.0", "numpy": core["packages"]["numpy"]}}
    monkeypatch.setattr(documentation, "core_packages", lambda: changed)
    assert [package.name for package in installed_packages(("core",))] == ["numpy", "python"]
    assert "no-such-package none, not 1.0" in documentation.other_versions()


@pytest.mark.extended
@pytest.mark.process
def test_the_text_of_the_fixed_list_is_the_committed_one() -> None:
    if documentation.other_versions():
        pytest.skip("other versions are installed than those of constraints.txt")
    said: list[str] = []
    Embedded(packages=("core",)).collect(said.append)
    assert said[-1].startswith("the text is the one that 'core' has")
