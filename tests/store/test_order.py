"""A run is handed over with its open files; what was loaded from files that changed since is known to be stale."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from workbench.store.order import Order, stale


def test_an_order_arrives_with_its_files(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, (tmp_path / "lock").open("w") as lock, (tmp_path / "log").open("w") as log:
        environment = {"NAME": "naïve", "LONG": "x" * 100_000}
        sent = Order(["/runs/a", "--resume"], "/work", environment, log.fileno(), {"LOCK": lock.fileno()})
        sent.send(ours)
        received = Order.receive(theirs)
        assert received is not None
        assert received[:3] == sent[:3]
        for there, here in ((received.descriptors["LOCK"], lock), (received.log, log)):
            assert os.path.samestat(os.fstat(there), os.fstat(here.fileno()))
            assert not os.get_inheritable(there), "a child that outlives the run would keep it alive"
            os.close(there)
        ours.close()
        assert Order.receive(theirs) is None, "nobody can send one any more"


def test_a_module_is_stale_once_its_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "edited.py"
    file.write_text("")
    module = ModuleType("edited")
    module.__file__ = str(file)
    monkeypatch.setattr(sys, "modules", {"edited": module, "not a file": ModuleType("x"), "os": os})
    now = time.time() + 10
    assert not stale(now)
    os.utime(file, (now + 5, now + 5))
    assert stale(now)
    assert not stale(now + 10)
    file.unlink()
    assert stale(now + 10)
