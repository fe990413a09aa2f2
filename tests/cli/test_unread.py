"""Output whose reader has gone."""

from __future__ import annotations

import os
import sys

import pytest

from workbench.cli.unread import outliving_readers


def test_what_nobody_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with open(write, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with outliving_readers():
            print("read", file=sys.stderr, flush=True)
            assert os.read(read, 100) == b"read\n"
            assert not sys.stderr.isatty()
            os.close(read)
            print("unread", file=sys.stderr, flush=True)
            print("held in the buffer", file=sys.stderr)
        assert sys.stderr is stream
        print("neither an error later", file=sys.stderr, flush=True)
