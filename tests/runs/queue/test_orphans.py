"""Runs that wait without a process."""

from __future__ import annotations

from collections.abc import Callable

from workbench.runs import requests
from workbench.runs.folder import RunFolder
from workbench.runs.queue.queue_folder import Queue
from workbench.runs.queue.waiting import STOPPED
from workbench.runs.run import Run


def test_a_stop_is_a_request_with_an_answer_also_where_nobody_is_there_to_give_one(
    queue: Queue, new_run: Callable[..., RunFolder]
) -> None:
    # Pages look for the answer by the request's id.
    run = Run(new_run("a"))
    answer = requests.look(run.folder, run.stop())
    assert (answer.state, answer.text, answer.status) == ("done", STOPPED, "stopped")
    assert Run(new_run("b")).stop(timeout=0) == STOPPED
