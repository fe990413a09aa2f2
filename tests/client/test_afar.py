"""A run on one disk, watched and steered from another: two folders and real processes; a bucket where there is one."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run_folders import kill_processes_of
from tests.tiny_runs import tiny_recipe, wait_until, yield_to_others
from workbench.base.errors import RunError
from workbench.base.files import file_locked
from workbench.cli import main
from workbench.client.afar import end_copying, follow, publish
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.summary import summary
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import STALLED, write_state


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Runs folders of a cluster and of a laptop; whatever works in them when the test ends is killed."""
    yield tmp_path / "cluster", tmp_path / "laptop"
    kill_processes_of(tmp_path / "cluster", tmp_path / "laptop")


@pytest.mark.process
def test_a_laptop_watches_pauses_and_stops_a_run_elsewhere(places: tuple[Path, Path], corpus: Path) -> None:
    cluster, laptop = places
    far = launch(tiny_recipe(corpus, steps=100_000), runs_dir=cluster, say=None)
    (mount := cluster.with_name("mount")).symlink_to(cluster)
    url = f"file://{mount}/{far.id}"
    near = follow(url, laptop, every=0.2)
    wait_until(lambda: near.state.step > 3, what="a step seen from afar")
    yield_to_others(far)
    assert near.telemetry().series("loss")[0]
    assert summary(near.folder)["where"] == url
    assert near.pause(timeout=60)
    wait_until(lambda: near.status == "paused", what="the pause seen from afar")
    assert far.status == "paused"

    # The connection is lost: the disk of the cluster is not there for a while.
    mount.unlink()
    wait_until(lambda: "cannot be reached" in near.state.message, what="the loss of the connection")
    assert near.status in ("paused", STALLED)
    mount.symlink_to(cluster)
    wait_until(lambda: "cannot be reached" not in near.state.message, what="the connection")
    near.resume(timeout=60)
    wait_until(lambda: far.status == "running", what="the resume")

    # Without the process that copies there is no news, and whoever looks again gets them.
    os.kill(int(near.folder.following.read_text()), signal.SIGKILL)
    wait_until(lambda: not file_locked(near.folder.following), what="the end of the copying process")
    with pytest.MonkeyPatch.context() as patch:
        now = time.time()
        patch.setattr(time, "time", lambda: now + 60)
        row = summary(near.folder)
    assert row["status"] == STALLED
    assert "no news since" in row["message"]
    assert f"`workbench follow {url}`" in row["message"]
    again = Run(url, laptop)
    assert again == near
    assert again.stop(timeout=60)
    wait_until(lambda: near.status == "stopped", what="the stop seen from afar")
    wait_until(lambda: not file_locked(near.folder.following), what="the end of the copying process")
    assert near.telemetry().events[-1] == far.telemetry().events[-1]
    with pytest.raises(RunError, match=r"cannot resume here: this is a copy of file://.*it can where that folder is"):
        near.resume()
    with pytest.raises(RunError, match="cannot be forked here: this is a copy of file://"):
        near.fork()


def test_what_cannot_be_followed_is_refused_and_leaves_nothing(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, laptop = places
    for name in ("20260101-000000-a-000000-0000", "20260101-000000-b-000000-0000"):
        (cluster / name).mkdir(parents=True)
        write_state(RunFolder(cluster / name), status="finished")
    assert main(["follow", f"file://{cluster}", "--runs", str(laptop)]) == 2
    assert "it holds 20260101-000000-a-000000-0000, 20260101-000000-b-000000-0000: add one" in capsys.readouterr().err
    assert main(["follow", f"file://{cluster}/nothing", "--runs", str(laptop)]) == 2
    assert "no run at file://" in capsys.readouterr().err
    with pytest.raises(RunError, match=r"is in .*cluster already, and is no copy: nothing to follow"):
        follow(f"file://{cluster}/20260101-000000-a-000000-0000", cluster)
    with pytest.raises(RunError, match=r"every: 60 s between two looks; legal: 0.1 to 5"):
        follow(f"file://{cluster}/20260101-000000-a-000000-0000", laptop, every=60)
    assert not laptop.exists()
    # One that has ended is copied at once, and no process stays.
    assert main(["follow", f"file://{cluster}/20260101-000000-a-000000-0000", "--runs", str(laptop)]) == 0
    near = Run("20260101-000000-a-000000-0000", laptop)
    assert near.status == "finished"
    assert not end_copying(near)
    with pytest.raises(RunError, match=r"is a copy of file://.*: publish it where it trains"):
        publish(near, f"file://{laptop}")
    near.delete()
    assert (cluster / near.id).exists()


@pytest.mark.process
def test_a_bucket_carries_a_run_both_ways(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs", reason="no s3fs: pip install 'fsspec[s3]'")
    server = pytest.importorskip("moto.server", reason="no moto, which stands for S3")
    cluster, laptop = places
    s3 = server.ThreadedMotoServer(port=0, verbose=False)
    s3.start()
    try:
        host, port = "127.0.0.1", s3.get_host_and_port()[1]
        for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1",
                            "AWS_ENDPOINT_URL": f"http://{host}:{port}", "FSSPEC_S3_ENDPOINT_URL":
                            f"http://{host}:{port}"}.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        import s3fs

        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("bucket")
        path = cluster / "20260101-000000-a-000000-0000"
        (path / "control").mkdir(parents=True)
        far = Run(RunFolder(path))
        write_state(far.folder, status="running", heartbeat=1.0, heartbeat_monotonic=1.0, step=7)
        with far.folder.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as a supervisor does
            url = publish(far, "s3://bucket/runs", every=0.2)
            near = follow(url, laptop, every=0.2)
            assert near.state.step == 7
            request = near.stop()
            wait_until(lambda: bool(control.pending(far.folder)), what="the request at the cluster")
            control.answer(far.folder, request, True, "stopped at step 7")
            write_state(far.folder, status="stopped", step=8)
            wait_until(lambda: near.status == "stopped", what="the end seen from afar")
            assert near.state.step == 8
            assert control.outcome(near.folder, request)["text"] == "stopped at step 7"
    finally:
        s3.stop()


@pytest.mark.process
def test_ssh_asks_for_a_known_host_and_comes_back_after_a_loss(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("paramiko", reason="no paramiko: pip install 'fsspec[ssh]'")
    asyncssh = pytest.importorskip("asyncssh", reason="no asyncssh, which stands for a host's sshd")
    cluster, laptop = places
    keys = tmp_path / "home" / ".ssh"
    keys.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(keys.parent))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    host, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user.write_private_key(str(keys / "id_ed25519"))
    user.write_public_key(str(tmp_path / "authorized"))
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    open_connections: list[Any] = []

    class Server(asyncssh.SSHServer):
        def connection_made(self, connection: Any) -> None:
            open_connections.append(connection)

    async def listening(port: int) -> Any:
        return await asyncssh.listen(
            "127.0.0.1", port, server_host_keys=[host], sftp_factory=True, server_factory=Server,
            authorized_client_keys=str(tmp_path / "authorized"),
        )  # fmt: skip

    def serving(port: int = 0) -> Any:
        return asyncio.run_coroutine_threadsafe(listening(port), loop).result()

    server = serving()
    port = server.get_port()
    far = RunFolder(cluster / "20260101-000000-a-000000-0000")
    far.control.mkdir(parents=True)
    write_state(far, status="running", heartbeat=1.0, heartbeat_monotonic=1.0, step=7)
    url = f"ssh://ada@127.0.0.1:{port}{far.path}"
    with pytest.raises(RunError, match=rf"\[127.0.0.1\]:{port} is not in .*known_hosts: log in with `ssh` once"):
        follow(url, laptop)
    (keys / "known_hosts").write_text(f"[127.0.0.1]:{port} {host.export_public_key().decode()}")
    near = follow(url, laptop, every=0.2)
    request = near.pause()
    wait_until(lambda: bool(control.pending(far)), what="the request at the host")
    control.answer(far, request, True, "paused")
    write_state(far, status="paused")
    wait_until(lambda: near.status == "paused", what="the pause seen from afar")
    loop.call_soon_threadsafe(lambda: [server.close(), *(each.abort() for each in open_connections)])
    wait_until(lambda: "cannot be reached" in near.state.message, what="the loss of the connection")
    server = serving(port)
    write_state(far, status="stopped", step=9)
    wait_until(lambda: near.status == "stopped", what="the end seen from afar")
    assert near.state.step == 9
    (keys / "id_ed25519").unlink()
    with pytest.raises(RunError, match=r"refuses this login \("):
        follow(url, tmp_path / "another")
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
