"""The command line, called in this process as a rule: another one loads torch for seconds."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.run_folders import root  # noqa: F401  (the same fixture as for runs)


@pytest.fixture
def handlers() -> Iterator[None]:
    """Signal handlers that ``train`` sets in this process are as before, afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
