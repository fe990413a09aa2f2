"""A run in a Ray cluster: ``python -m workbench.launchers.ray_job check|submit|cancel``, and what Ray runs for it.

A keeper (an actor beside the cluster's head, that outlives whoever launched the run and that Ray starts again) asks
for the nodes, has one agent start :mod:`workbench.launchers.node` on each, and does so again when a node or an agent
is lost. It holds no state: after its own death another one reads the run's folder and goes on. Agents end with their
keeper, and trainers with their agent.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.launchers.giving_way import AGAIN, wait_again
from workbench.launchers.processes import child_environment, module_command
from workbench.store.folder import RunFolder
from workbench.store.state import die_with_parent, read_state, take_lock, write_state

NODE, BEAT = "workbench.launchers.node", "ray.alive"
NAMESPACE = "workbench"
OLDEST = (2, 52)
"""The first Ray that lets nobody in without a token, where a cluster has one."""
HEAD = "node:__internal_head__"
"""A resource of the head alone, without which there is no cluster: no lost node takes a keeper there along."""
NICENESS = "RAY_worker_niceness"
"""Ray's variable of how far its workers give way; without it, they do so at 15."""
BEAT_SECONDS, LOOK_SECONDS = 2.0, 0.5


class Agent:
    """Starts the processes of one node; they die with it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def meeting(self) -> str:
        """Return an address of this node, with a port that is free."""
        import ray

        with socket.socket() as free:
            free.bind(("", 0))
            return f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"

    def start(self, arguments: list[str], folder: str, settings: dict[str, str]) -> None:
        """Start a node of a run; returns at once."""
        try:
            log = open(Path(folder) / "ray.log", "ab")  # noqa: SIM115
        except OSError as error:
            where = f"the node {socket.gethostname()}"
            raise RunError(
                f"{where} does not see {folder} ({error.strerror}): it must lie on a disk that all nodes share"
            ) from None
        with log:
            self._process = subprocess.Popen(
                module_command(NODE, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=child_environment(**settings),
                preexec_fn=_begin,
            )

    def code(self) -> int | None:
        """Return the exit code; None before the end."""
        return None if self._process is None else self._process.poll()

    def stop(self) -> None:
        """Ask the node to end."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)


def _begin() -> None:
    """Prepare a process that an agent starts: as urgent as any, unless the cluster's owner says how urgent."""
    die_with_parent()
    if NICENESS in os.environ:
        return
    # Only the system's administrator may be more urgent than before.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)


class Keeper:
    """Keeps a run going until it has ended; see the module.

    Args:
        name: of this actor.
        options: of :func:`main`.
    """

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self._name, self._options = name, argparse.Namespace(**options)
        self._folder = RunFolder(Path(self._options.folder))
        self._agents: list[Any] = []
        self._cancelled = False
        self._looking = threading.Lock()
        threading.Thread(target=self._beat, daemon=True).start()
        threading.Thread(target=self._keep, daemon=True).start()

    def cancel(self) -> None:
        """Ask the run to end, or leave the queue."""
        self._cancelled = True

    def _beat(self) -> None:
        while True:
            # A folder that is gone stays gone.
            with suppress(OSError):
                os.utime(self._folder.path / BEAT)
            time.sleep(BEAT_SECONDS)

    def _keep(self) -> None:
        import ray

        try:
            # One attempt more than restarts; another keeper may have begun the first ones.
            going = True
            while going and not self._ended():
                wait_again(self._folder, "its processes were killed, or their node was lost")
                going = self._attempt(read_state(self._folder).attempt <= self._options.restarts)
        except Exception as error:
            self._fail(f"in Ray ({self._options.found}) the run could not go on: {str(error).strip()}")
        with suppress(OSError):
            (self._folder.path / BEAT).unlink()
        ray.kill(ray.get_actor(self._name, NAMESPACE), no_restart=True)

    def _ended(self) -> bool:
        state = read_state(self._folder)
        return self._cancelled or not self._folder.recipe.exists() or (state.final and state.status != "lost")

    def _attempt(self, again: bool) -> bool:
        """Train on nodes until they end; returns True if others are to go on."""
        import ray
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        options, folder = self._options, self._folder
        size = {"CPU": options.cores} | ({"GPU": options.gpus} if options.gpus else {})
        group = placement_group([size] * options.nodes, strategy="STRICT_SPREAD")
        try:
            while not group.wait(1):
                if self._ended():
                    return False
                message = f"waiting in Ray ({options.found}) for {options.nodes} nodes with {options.cores} cores each"
                if read_state(folder).status == "queued" and read_state(folder).message != message:
                    write_state(folder, message=message)
            agent = ray.remote(Agent)
            self._agents = [
                agent.options(
                    num_cpus=options.cores,
                    num_gpus=options.gpus,
                    scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=each),
                ).remote()
                for each in range(options.nodes)
            ]
            code = self._train(again)
        finally:
            for each in self._agents:
                ray.kill(each)
            self._agents = []
            remove_placement_group(group)
        return again and code in (AGAIN, None)

    def _train(self, again: bool) -> int | None:
        """Have the agents start their nodes; returns the exit code of the first, None where an agent is lost."""
        import ray

        options = self._options
        try:
            meeting = ray.get(self._agents[0].meeting.remote())
            arguments = [
                options.folder,
                f"--nodes={options.nodes}",
                f"--processes={options.processes}",
                f"--meeting={meeting}",
                f"--key={secrets.token_hex(8)}",
                f"--software={options.software}",
                *(["--again"] if again else []),
            ]
            settings = json.loads(options.settings)
            begun = [
                each.start.remote([*arguments, f"--node={number}"], options.folder, settings)
                for number, each in enumerate(self._agents)
            ]
            ray.get(begun)
            told = False
            while (code := ray.get(self._agents[0].code.remote())) is None:
                if self._cancelled and not told:
                    told = True
                    self._agents[0].stop.remote()
                time.sleep(LOOK_SECONDS)
            return int(code)
        except ray.exceptions.RayActorError as error:
            # One that never began would not begin elsewhere either.
            if getattr(error, "actor_init_failed", False):
                raise
            return None

    def _fail(self, why: str) -> None:
        with suppress(RunError, OSError):
            lock = take_lock(self._folder)
            if not read_state(self._folder).final:
                write_state(self._folder, status="failed", error=why)
            os.close(lock)


def main(argv: list[str] | None = None) -> int:
    """Ask a cluster for something; prints a JSON object, with ``error`` where that failed."""
    parser = argparse.ArgumentParser(prog="workbench.launchers.ray_job")
    parser.add_argument("verb", choices=("check", "submit", "cancel"))
    for name in ("address", "folder", "settings", "software", "job"):
        parser.add_argument(f"--{name}", default="")
    for name in ("nodes", "processes", "cores"):
        parser.add_argument(f"--{name}", type=int, default=1)
    for name in ("gpus", "restarts"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--grows", action="store_true")
    options = parser.parse_args(argv)
    try:
        answer = _answer(options)
    except RunError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
    return 1 if "error" in answer else 0


def _answer(options: argparse.Namespace) -> dict[str, Any]:
    ray = _connected(options.address)
    found = str(ray.get_runtime_context().gcs_address)
    if options.verb == "check":
        fit = [
            each
            for each in ray.nodes()
            if each["Alive"]
            and each["Resources"].get("CPU", 0) >= options.cores
            and each["Resources"].get("GPU", 0) >= options.gpus
        ]
        if len(fit) < options.nodes and not options.grows:
            raise RunError(
                f"Ray at {found} has {len(fit)} nodes with {options.cores} cores and {options.gpus} GPUs each, and "
                f"nodes={options.nodes} are asked for; set grows=true where the cluster adds nodes by itself"
            )
    elif options.verb == "submit":
        name = f"{Path(options.folder).name}-{secrets.token_hex(3)}"
        keeper = ray.remote(Keeper).options(
            name=name, namespace=NAMESPACE, lifetime="detached", num_cpus=0, max_restarts=-1, max_concurrency=2,
            resources={HEAD: 0.001},
        )  # fmt: skip
        actor = keeper.remote(name, {**vars(options), "found": found})
        try:
            ray.get(actor.__ray_ready__.remote(), timeout=40)
        except Exception as error:
            ray.kill(actor, no_restart=True)
            raise RunError(f"Ray at {found} could not start the run's keeper: {_last_line(error)}") from None
        return {"job": name, "address": found}
    else:
        # Gone already, as a rule.
        with suppress(ValueError):
            ray.get(ray.get_actor(options.job, NAMESPACE).cancel.remote(), timeout=20)
    return {}


def _connected(address: str) -> Any:
    """Return the module ``ray``, connected.

    Raises:
        RunError: it is not installed, too old, or the cluster is not reached, or does not let us in.
    """
    try:
        import ray
    except ImportError as error:
        raise RunError(f"on: ray needs the package ray ({error}); `pip install workbench[ray]` installs it") from None
    if tuple(map(int, ray.__version__.split(".")[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise RunError(f"on: ray needs Ray {oldest} or later, which knows tokens, and this is {ray.__version__}")
    host, colon, port = address.rpartition(":")
    try:
        # Ray itself tries for minutes.
        if colon:
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    # It raises whatever its parts raise, errors of its C++ side among them.
    except Exception as error:
        raise RunError(
            f"the Ray cluster at {address} was not reached or let us not in: {_last_line(error)}; name one with "
            "ray:address=HOST:PORT, and on='local' needs none"
        ) from None
    return ray


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


if __name__ == "__main__":
    # Actors are found by the name of their module, which must not be __main__.
    from workbench.launchers.ray_job import main as run

    sys.exit(run())
