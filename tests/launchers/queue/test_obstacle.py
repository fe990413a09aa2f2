"""What a run that waits waits for."""

from __future__ import annotations

import os

import pytest

from tests.launchers.queue.test_line import ticket
from workbench.launchers.queue.obstacle import obstacle
from workbench.launchers.queue.outlook import Outlook
from workbench.launchers.queue.settings import QueueSettings
from workbench.launchers.queue.ticket import Ticket


def said(waits: Ticket, *training: Ticket, **settings: int) -> str:
    return obstacle(waits, Outlook([*training], [waits], {}, [], QueueSettings(**settings)))


def test_cores_a_gpu_or_a_limit() -> None:
    one, trains = ticket("a"), ticket("t", owner="ann", running=True)
    assert said(one, trains, cores=1) == "it needs 1 core, and 1 of 1 are taken"
    assert said(ticket("a", threads=4), trains, cores=2) == "it needs 2 cores, and 1 of 2 are taken"
    assert said(one, trains, cores=2) == ""
    limited = said(ticket("a", owner="ann"), trains, cores=2, running_per_owner=1)
    assert limited == "1 run of ann train, as many as running_per_owner allows"
    on_gpu = ticket("g", gpus=("0",))
    assert said(on_gpu, ticket("t", gpus=("0",), gpu="0", running=True)) == "all of its 1 GPU are taken"
    assert said(on_gpu, trains, cores=1) == ""


def test_a_process_bound_to_fewer_cores_says_so() -> None:
    told = said(ticket("a", cores=1), ticket("t", cores=99, running=True))
    assert told.startswith("it needs 1 core, and 1 of 1 are taken: its process may use no more than 1 core (as taskset")
    assert told.endswith("others here 99; `workbench queue set cores=99` counts the same for all")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_the_cores_of_a_queue_are_the_same_for_whoever_looks() -> None:
    allowed = os.sched_getaffinity(0)
    found = Outlook([ticket("t", cores=99, running=True)], [], {}, [], QueueSettings())
    before = found.cores
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert found.cores == before == 99
    finally:
        os.sched_setaffinity(0, allowed)
