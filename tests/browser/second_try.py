"""A second try begins anew: what the first one left in a page, a kernel or a server would fail it as well.

pytest-rerunfailures repeats a test with the same fixtures of modules and of the session: a value that was typed before
the failure still stands in the page that all tests of a module share.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Function) -> None:
    """Before another try of a test, end what fixtures of its folder have set up; they then set it up again."""
    if getattr(item, "execution_count", 1) == 1:
        return
    folder = item.nodeid.partition("::")[0].rpartition("/")[0]
    for name, definitions in item._fixtureinfo.name2fixturedefs.items():
        for definition in definitions:
            if definition.baseid == folder or definition.baseid.startswith(f"{folder}/"):
                try:
                    definition.finish(item._request)
                except Exception as error:  # the first try's, which has failed as it is
                    print(f"{name}, as the first try left it, ended with {type(error).__name__}: {error}")
