"""Find the documentation that is installed here: Python sources, shipped documents, descriptions, topics."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.base.errors import DataError, unknown

STANDARD_LIBRARY = "python"
"""Name under which the standard library stands among the packages."""
CORE = "core"
"""Name that stands for the fixed list of packages that every installation of the workbench brings."""
_OURS = "workbench"

_TEXT_ENDINGS = (".rst", ".md", ".txt")
_COPIES = frozenset({"_vendor", "vendor", "_vendored", "vendored", "extern", "externals", "third_party"})
"""Folders of copies of other packages."""
# Of tests as well, and of what only generates code.
_SKIPPED_FOLDERS = _COPIES | frozenset(
    """
    test tests testing _test _tests idlelib lib2to3 turtledemo site-packages dist-packages __pycache__ node_modules
    licenses template templates fixtures
    """.split()  # noqa: SIM905
)
_SKIPPED_TEXTS = re.compile(
    r"licen[sc]e|copying|authors|notice|requirements|top_level|entry_points|sources|changes", re.IGNORECASE
)


@dataclass(frozen=True)
class Package:
    """One installed distribution, or the standard library.

    Attributes:
        name, version: as pip lists them; names in lower case with dashes.
        digest: of the list of its files (and their hashes, which pip records).
        files: absolute paths of what to read, sorted: sources, documents, the file that ends in the description.
    """

    name: str
    version: str
    digest: str
    files: tuple[str, ...]

    def modules(self) -> list[str]:
        """Return names of its files below the deepest folder that holds all of them, with slashes:
        equal on every machine.
        """
        folder = os.path.commonpath([os.path.dirname(path) for path in self.files]) if self.files else ""
        return [os.path.relpath(path, folder).replace(os.sep, "/") for path in self.files]


def installed_packages(only: tuple[str, ...] = ()) -> list[Package]:
    """Return the standard library and every installed distribution that lists its files, sorted by name.

    Args:
        only: names to keep, :data:`CORE` for those of :func:`core_packages` that are here; empty keeps all.

    Raises:
        DataError: a name is not installed; the message has the nearest.
    """
    named = tuple(name for name in only if name != CORE)
    # Of the fixed list, what another system or Python does without is no error: `other_versions` says it.
    wanted = {_normal(name) for name in named} | ({*core_packages()["packages"]} if CORE in only else set())
    found = {STANDARD_LIBRARY: standard_library()} if not only or {STANDARD_LIBRARY, CORE} & {*only} else {}
    names = {STANDARD_LIBRARY}
    # Whoever has imported setuptools, as torch's compiler does, has its copies of other packages on the path.
    path = [folder for folder in sys.path if os.path.basename(folder) not in _COPIES]
    for distribution in importlib.metadata.distributions(path=path):
        # Of the metadata only two header lines are needed; parsing all 170 of them takes seconds.
        header = (distribution.read_text("METADATA") or "").partition("\n\n")[0]
        fields = dict(re.findall(r"^(Name|Version): *(.+)$", header, re.M))
        name = _normal(fields.get("Name", ""))
        names.add(name)
        # The first on the path is the one that an import finds.
        # Ours is left out unless it is named: text that changes with every commit would change the losses with it.
        if name in found or (name not in wanted if only else name == _OURS):
            continue
        if package := _package(name, fields.get("Version", ""), distribution):
            found[name] = package
    for name in named:
        if _normal(name) not in names:
            raise DataError(f"data.packages: {unknown('', name, {*names, CORE})}")
    return [found[name] for name in sorted(found)]


@functools.cache
def core_packages() -> dict[str, Any]:
    """Return the fixed list: ``python``, ``packages`` (versions by name), and ``text``, the hash of their text."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("core_packages.json").read_text(encoding="utf-8"))
    return found


def other_versions() -> list[str]:
    """Return what of :func:`core_packages` is installed here in another version, as ``name here, not there``."""
    known = core_packages()
    here = {"python": platform.python_version(), **{name: _version(name) for name in known["packages"]}}
    there = {"python": known["python"], **known["packages"]}
    # A build for another device has another suffix and the same documentation.
    return [f"{name} {here[name] or 'none'}, not {there[name]}" for name in there
            if here[name].partition("+")[0] != there[name]]  # fmt: skip


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def standard_library() -> Package:
    """Return the standard library of the running interpreter."""
    root = sysconfig.get_paths()["stdlib"]
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name.lower() not in _SKIPPED_FOLDERS]
        below = folder[len(root) + 1 :].replace(os.sep, "/")
        found += [path for name in names if _wanted(path := f"{below}/{name}".lstrip("/"))]
    found.sort()
    digest = hashlib.sha256("\n".join(found).encode()).hexdigest()
    return Package(STANDARD_LIBRARY, platform.python_version(), digest, tuple(f"{root}/{path}" for path in found))


def _package(name: str, version: str, distribution: importlib.metadata.Distribution) -> Package | None:
    record = distribution.read_text("RECORD")
    if record is None:  # not installed by pip: nothing lists what belongs to it
        return None
    # Compiled files and scripts come and go without any change to the package: they have no hash, or lie elsewhere.
    hashed = (line for line in record.splitlines() if ",sha256=" in line and not line.startswith(".."))
    # Plain strings, not Path objects: 90,000 lines are looked at whenever data is prepared.
    packed = sorted(line for line in hashed if _wanted(_path_of(line)))
    root = str(distribution.locate_file(""))
    digest = hashlib.sha256("\n".join(packed).encode()).hexdigest()
    return Package(name, version, digest, tuple(os.path.join(root, _path_of(line)) for line in packed))


def _path_of(line: str) -> str:
    return line.rsplit(",", 2)[0].strip('"')


def _wanted(path: str) -> bool:
    """Return whether a file, given relative to its package's folder, may hold prose that nobody else ships."""
    *folders, name = path.split("/")
    if not name.endswith((".py", *_TEXT_ENDINGS)):
        return name == "METADATA"
    if not _SKIPPED_FOLDERS.isdisjoint(folder.lower() for folder in folders) or path.startswith("."):
        return False
    if name.endswith(".py"):
        return not name.startswith(("test_", "conftest"))
    return not _SKIPPED_TEXTS.search(name)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
