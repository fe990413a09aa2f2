"""``make audit``: licences of all that a wheel brings along, and faults that pip-audit and npm audit know of.

Exit code 0: nothing was found; 1: something was. A service that cannot be reached is said, and fails nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from tests.documents import ROOT

ALLOWED = re.compile(
    r"apache|mit\b|bsd|isc\b|psf|python software foundation|mpl|mozilla public|zlib|cc0|unlicense|public domain|zpl|"
    r"hpnd|cnri|bsl-1|boost|llvm|dfsg", re.IGNORECASE
)  # fmt: skip
"""Licences under which we may pass on what we import. Copyleft of files (MPL) covers files that we do not change."""
REFUSED = re.compile(r"\b[AL]?GPL|SSPL|commons clause|non-?commercial", re.IGNORECASE)


def brought_along(name: str = "workbench") -> dict[str, importlib.metadata.Distribution]:
    """Return every distribution that a package needs here, by name, itself left out; extras are not asked for."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = _needed(importlib.metadata.distribution(name))
    while waiting:
        each = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if each not in found:
            found[each] = importlib.metadata.distribution(each)
            waiting += _needed(found[each])
    return found


def _needed(distribution: importlib.metadata.Distribution) -> list[str]:
    wanted = map(Requirement, distribution.requires or ())
    return [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]


def licence_of(distribution: importlib.metadata.Distribution) -> str:
    """Return a distribution's licence as it declares it: an SPDX expression, else classifiers, else free text."""
    told = distribution.metadata
    named = [line.split("::")[-1].strip() for line in told.get_all("Classifier", []) if line.startswith("License ::")]
    text = str(told.get("License") or "").strip()
    return told.get("License-Expression") or ", ".join(named) or (text.splitlines()[0] if text else "")


def licences() -> Iterator[str]:
    """Yield the packages whose licence is not on the list."""
    for name, distribution in sorted(brought_along().items()):
        licence = licence_of(distribution)
        if not ALLOWED.search(licence) or (REFUSED.search(licence) and " OR " not in licence):
            yield f"{name}: {licence or 'declares no licence'}"


def pip_audit() -> Iterator[str]:
    """Yield known faults of these versions.

    Raises:
        OSError: nothing could be asked.
    """
    if importlib.util.find_spec("pip_audit") is None:
        raise OSError("pip-audit is not installed: pip install pip-audit")
    pins = {name: each.version.partition("+")[0] for name, each in brought_along().items()}
    with tempfile.TemporaryDirectory() as folder:
        (listed := Path(folder) / "pins.txt").write_text("".join(f"{name}=={pins[name]}\n" for name in sorted(pins)))
        options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
        command = [sys.executable, "-m", "pip_audit", "-r", str(listed), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    yield from read_pip_audit(done.stdout, done.stderr)


def read_pip_audit(said: str, complaints: str) -> Iterator[str]:
    """Yield the faults in pip-audit's JSON; see :func:`pip_audit`."""
    try:
        packages = json.loads(said)["dependencies"]
    except (ValueError, KeyError):
        raise OSError(f"pip-audit gave no answer: {_last(complaints)}") from None
    for each in packages:
        for fault in each.get("vulns", ()):
            way_out = ", ".join(fault["fix_versions"]) or "no version yet"
            yield f"{each['name']} {each['version']}: {fault['id']}, mended in {way_out}"
    if unknown := [each["name"] for each in packages if "skip_reason" in each]:
        raise OSError(f"the service does not know {len(unknown)} of {len(packages)} packages, such as {unknown[0]}")


def npm_audit() -> Iterator[str]:
    """Yield known faults of what the page is built with; raises OSError as :func:`pip_audit`."""
    folder = ROOT / "workbench" / "jupyter" / "frontend"
    done = subprocess.run(["npm", "audit", "--json"], cwd=folder, capture_output=True, text=True, timeout=300)
    yield from read_npm_audit(done.stdout, done.stderr)


def read_npm_audit(said: str, complaints: str) -> Iterator[str]:
    """Yield the faults in npm's JSON; see :func:`npm_audit`."""
    try:
        answer = json.loads(said)
        faults = answer["vulnerabilities"]
    except (ValueError, KeyError):
        raise OSError(f"npm audit gave no answer: {_last(complaints)}") from None
    yield from (f"{name}: {each['severity']}" for name, each in faults.items())


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and "A complete log" not in line]
    return lines[-1][:200] if lines else "it said nothing"


def main() -> int:
    """Print what was found, check by check."""
    found: list[str] = []
    for check in (licences, pip_audit, npm_audit):
        before = len(found)
        try:
            for line in check():
                print(f"{check.__name__}: {line}")
                found.append(line)
            print(f"{check.__name__}: {len(found) - before} found")
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"{check.__name__}: skipped in whole or part: {error}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
