"""Licences of what a wheel brings along; how the answers of pip-audit and npm audit are read."""

from __future__ import annotations

import json

import pytest

from tests.packages.audit import brought_along, licences, read_npm_audit, read_pip_audit


def test_every_package_that_a_wheel_brings_has_a_licence_on_the_list() -> None:
    assert {"torch", "jupyterlab", "pydantic-core"} <= brought_along().keys()
    assert list(licences()) == []


def test_faults_are_named_and_silence_is_no_answer() -> None:
    fault = {"id": "PYSEC-1", "fix_versions": ["2.1"], "aliases": [], "description": ""}
    said = json.dumps({"dependencies": [{"name": "thing", "version": "2.0", "vulns": [fault]}]})
    assert list(read_pip_audit(said, "")) == ["thing 2.0: PYSEC-1, mended in 2.1"]
    with pytest.raises(OSError, match="does not know 1 of 1 packages, such as thing"):
        list(read_pip_audit(json.dumps({"dependencies": [{"name": "thing", "skip_reason": "not found"}]}), ""))
    with pytest.raises(OSError, match="gave no answer: Max retries"):
        list(read_pip_audit("", "Traceback\nMax retries exceeded\n"))
    said = json.dumps({"vulnerabilities": {"esbuild": {"severity": "high"}}})
    assert list(read_npm_audit(said, "")) == ["esbuild: high"]
    with pytest.raises(OSError, match="405"):
        list(read_npm_audit(json.dumps({"message": "405 Method Not Allowed"}), "npm error 405 Method Not Allowed"))
