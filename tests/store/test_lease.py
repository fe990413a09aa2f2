"""One controller at a time: held, renewed, let go, run out, taken over; and what was asked before that is void."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from workbench.base.errors import RunError
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.lease import (
    LEASE_SECONDS,
    Lease,
    admit,
    claim,
    lease_holder,
    read_lease,
    release,
    superseded,
    whoami,
)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time() + seconds
    monkeypatch.setattr("workbench.store.lease.time.time", lambda: now)


def test_nobody_needs_a_lease(folder: RunFolder) -> None:
    request = control.send(folder, "pause")
    (pending,) = control.pending(folder)
    assert (pending.id, pending.by, pending.epoch) == (request, whoami(), 0)
    assert control.refusal(folder, pending) == ""
    assert not (folder.control / "lease.json").exists()


def test_while_one_steers_the_others_are_told_who(folder: RunFolder) -> None:
    assert claim(folder, "a", "Ann's notebook").held()
    assert claim(folder, "a", "Ann's notebook").epoch == 0
    control.send(folder, "pause", controller="a")
    for other in ("", "b"):
        with pytest.raises(
            RunError,
            match=r"steered by Ann's notebook \(free in 30 s unless they go on.*ask them, or take over: `--take-over`",
        ):
            control.send(folder, "resume", controller=other)
    with pytest.raises(RunError, match="steered by Ann's notebook"):
        claim(folder, "b")
    assert [request.verb for request in control.pending(folder)] == ["pause"]


@pytest.mark.parametrize("controller", ["b", ""])
def test_what_was_asked_before_a_take_over_does_not_happen_after_it(folder: RunFolder, controller: str) -> None:
    claim(folder, "a", "Ann")
    control.send(folder, "stop", controller="a")
    control.send(folder, "pause", controller=controller, take_over=True)
    old, new = control.pending(folder)
    assert "has taken over the run since this was asked" in control.refusal(folder, old)
    assert control.refusal(folder, new) == ""
    assert read_lease(folder).controller == controller
    # A one-shot request leaves the run to whoever wants it next, also to Ann.
    if controller:
        with pytest.raises(RunError, match=f"steered by {whoami()} .* that may be you, .*; take over"):
            claim(folder, "a")
    else:
        assert claim(folder, "a").epoch == 1


def test_a_lease_ends_by_itself_or_when_it_is_let_go(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(folder, "a")
    control.send(folder, "pause", controller="a")
    release(folder, "b")
    assert read_lease(folder).held()
    release(folder, "a")
    assert claim(folder, "b").epoch == 0, "nobody was pushed out"
    assert superseded(folder, 0) == ""
    later(monkeypatch, LEASE_SECONDS + 1)
    assert not read_lease(folder).held()
    assert admit(folder, "") == 0
    assert claim(folder, "c").epoch == 0


def test_a_clock_that_was_ahead_locks_nobody_out(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch, 1e6)
    claim(folder, "a")
    monkeypatch.undo()
    assert not read_lease(folder).held()
    claim(folder, "b")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"controller": 3, "name": [], "epoch": "x", "expires": NaN}', '{"controller": "a"}']
)
def test_a_damaged_lease_is_held_by_nobody(folder: RunFolder, text: str) -> None:
    folder.control.mkdir()
    (folder.control / "lease.json").write_text(text)
    assert not read_lease(folder).held()
    assert read_lease(folder).epoch == 0
    assert claim(folder, "b").held()


def test_a_controller_has_an_id(folder: RunFolder) -> None:
    with pytest.raises(RunError, match="id of its controller"):
        claim(folder, "")
    with pytest.raises(RunError, match="could not be written"):
        claim(RunFolder(folder.path / "gone"), "a")
    assert read_lease(folder) == Lease()


@pytest.mark.process
def test_of_several_who_claim_at_once_one_has_it(folder: RunFolder) -> None:
    code = (
        "import sys; from pathlib import Path; from workbench.base.errors import RunError; "
        "from workbench.store.folder import RunFolder; from workbench.store.lease import claim\n"
        f"try: claim(RunFolder(Path({str(folder.path)!r})), sys.argv[1])\n"
        "except RunError: sys.exit(3)"
    )
    claimants = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "abcd"]
    assert sorted(claimant.wait(30) for claimant in claimants) == [0, 3, 3, 3]
    assert json.loads((folder.control / "lease.json").read_text())["controller"] in "abcd"


def test_who_holds_it_is_told_and_for_how_much_longer(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lease_holder(read_lease(folder)) is None
    claim(folder, "a", "Ann")
    later(monkeypatch, 5)
    assert lease_holder(read_lease(folder)) == {"controller": "a", "name": "Ann", "seconds": pytest.approx(25, abs=1)}
    release(folder, "a")
    assert lease_holder(read_lease(folder)) is None
