"""Where a fork comes from, read from a file that anybody may have damaged."""

from __future__ import annotations

import json

import pytest

from workbench.store.folder import RunFolder
from workbench.store.origin import Origin, origin_of


def test_an_origin_is_read(folder: RunFolder) -> None:
    assert origin_of(folder) is None
    diff = {"optimizer.lr": [1e-3, 1e-4]}
    folder.origin.write_text(
        json.dumps({"run": "a", "step": 7, "name": "n", "diff": diff, "fresh": [], "seconds": 2.5})
    )
    assert origin_of(folder) == Origin("a", 7, "n", diff, (), 2.5)


@pytest.mark.parametrize("text", ["", "[]", '{"run": 3, "step": 7}', '{"run": "a"}'])
def test_a_damaged_origin_is_none(folder: RunFolder, text: str) -> None:
    folder.origin.write_text(text)
    assert origin_of(folder) is None


def test_damaged_parts_read_as_empty(folder: RunFolder) -> None:
    folder.origin.write_text('{"run": "a", "step": 7, "name": 1, "diff": [], "fresh": "x"}')
    assert origin_of(folder) == Origin("a", 7)
