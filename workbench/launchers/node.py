"""One node of a run: ``python -m workbench.launchers.node FOLDER --node I --nodes N --meeting HOST:PORT --key TEXT``.

A cluster's launcher has it started once on every node. Node 0 is the run's supervisor and keeps its lock; the others
start their trainers when it says so, and end with it. Nothing else is needed on any of them: all is in the run folder.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.text import escape_unprintable
from workbench.launchers import supervisor
from workbench.launchers.launched import working_folder
from workbench.launchers.nodes import JOIN_SECONDS, SHARED_SECONDS, Line, Nodes, differences, interface_of, software
from workbench.launchers.processes import child_environment
from workbench.launchers.trainers import Trainer, end_trainer, exit_code, places, start_trainer
from workbench.store.folder import RunFolder
from workbench.store.state import LEFT_TO_SUPERVISOR, write_state


def main(argv: list[str] | None = None) -> int:
    """Take part in a run as one of its nodes; returns an exit code, 75 on node 0 where the run is to be started again.

    The variables of srun say which node this is where ``--node`` does not, and where node 0 is.
    """
    parser = argparse.ArgumentParser(prog="workbench.launchers.node")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--node", type=int, default=int(os.environ.get("SLURM_NODEID", 0)), help="number of this node")
    parser.add_argument("--nodes", type=int, default=1, help="of the run")
    parser.add_argument("--processes", type=int, default=1, help="trainers on each node")
    parser.add_argument("--meeting", default="127.0.0.1:0", metavar="HOST:PORT", help="where node 0 listens")
    parser.add_argument("--key", default="", help="of this start of the run, the same on all nodes")
    parser.add_argument("--software", default="", help="versions where the run was launched, as JSON")
    parser.add_argument("--again", action="store_true", help="the run is started again where it gives way")
    options = parser.parse_args(argv)
    escape_unprintable()
    folder = RunFolder(options.folder.absolute())
    host, _, port = options.meeting.rpartition(":")
    host = host or os.environ.get("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1")
    # An engine tells all processes of a job that it is about to end; what follows from that is for node 0 to decide.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    if options.node:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        try:
            return _take_part(folder, options.node, (host, int(port)), options.key)
        except (RunError, OSError) as error:
            print(f"node {options.node} ({socket.gethostname()}): {error}", file=sys.stderr, flush=True)
            return 1
    if not folder.recipe.exists():
        where = f"node 0 ({socket.gethostname()})"
        print(f"{where}: there is no run in {folder.path}: it must lie on a disk that all nodes share", file=sys.stderr)
        return 1
    if options.software and (other := differences(json.loads(options.software), software())):
        where = f"node 0 ({socket.gethostname()})"
        write_state(folder, status="failed", error=f"{where} has {other}, which the launch had: install the same")
        return 1
    nodes = Nodes(options.nodes, options.processes, host=host, port=int(port), key=options.key, again=options.again)
    return supervisor.main([str(folder.path)], nodes=nodes)


def _take_part(folder: RunFolder, node: int, meeting: tuple[str, int], key: str) -> int:
    """Meet the first node, and train when it says so, until the end; returns the exit code."""
    line = Line(_connect(meeting))
    line.where = "node 0"
    line.say(key=key, node=node, host=socket.gethostname(), software=software())
    trainers: list[Trainer] = []
    told: set[str] = set()
    try:
        while not (lost := line.lost):
            select.select([line.fileno()], [], [], 0.1)
            for words in line.read():
                if "refused" in words:
                    raise RunError(words["refused"])
                if "see" in words:
                    line.say(sees=_sees(Path(words["see"]), line.beat))
                if "start" in words:
                    trainers = _start(folder, node, line, words["start"])
                if "end" in words:
                    return 0
            line.beat()
            codes = [exit_code(each) for each in trainers]
            failed = next(((rank, code) for rank, code in enumerate(codes) if code), None)
            if failed and "failed" not in told:
                told.add("failed")
                line.say(failed=[node * len(trainers) + failed[0], failed[1]])
            if trainers and None not in codes and "ended" not in told:
                told.add("ended")
                line.say(ended=codes)
        # After the end of its trainers it only waits to be let go.
        if "ended" in told:
            return 0
        raise RunError(f"{lost}; this node ends its trainers")
    finally:
        for each in trainers:
            end_trainer(each)
        line.say(ended=[])
        line.close()


def _connect(meeting: tuple[str, int]) -> socket.socket:
    deadline = time.monotonic() + JOIN_SECONDS
    while True:
        try:
            return socket.create_connection(meeting, timeout=5.0)
        except OSError as error:
            if time.monotonic() > deadline:
                where = f"{meeting[0]}:{meeting[1]}"
                raise RunError(f"node 0 was not reached at {where} within {JOIN_SECONDS:.0f} s: {error}") from None
        time.sleep(0.5)


def _sees(proof: Path, beat: Callable[[], None]) -> bool:
    deadline = time.monotonic() + SHARED_SECONDS
    while time.monotonic() < deadline:
        # Where it was absent once, a look into the folder brings up to date what a network file system remembers.
        with suppress(OSError):
            if proof.exists() or proof.name in os.listdir(proof.parent):
                return True
        beat()
        time.sleep(0.5)
    return False


def _start(folder: RunFolder, node: int, line: Line, told: dict[str, Any]) -> list[Trainer]:
    # Where relative paths of its recipe start.
    with suppress(OSError):
        os.chdir(working_folder(folder))
    here = range(node * told["processes"], (node + 1) * told["processes"])
    master = (told["address"], told["port"])
    trainers: list[Trainer] = []
    try:
        around = child_environment(**{LEFT_TO_SUPERVISOR: "1"})
        for place in places(around, here, told["size"], master, interface_of(line.here)):
            trainers.append(start_trainer([str(folder.path)], place, {}))
    except OSError:
        for each in trainers:
            end_trainer(each)
        raise
    return trainers


if __name__ == "__main__":
    sys.exit(main())
