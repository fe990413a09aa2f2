"""Where caches lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.base.cache_folder import cache_folder


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"WORKBENCH_CACHE": "/somewhere", "XDG_CACHE_HOME": "/xdg"}, "/somewhere"),
        ({"WORKBENCH_CACHE": "", "XDG_CACHE_HOME": "/xdg"}, "/xdg/workbench"),
        ({"XDG_CACHE_HOME": None, "HOME": "/users/somebody"}, "/users/somebody/.cache/workbench"),
    ],
)
def test_the_first_variable_that_is_set_says_where_the_cache_is(
    variables: dict[str, str | None], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKBENCH_CACHE", raising=False)
    for name, value in variables.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)
