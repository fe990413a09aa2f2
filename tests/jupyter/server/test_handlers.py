"""The extension over real HTTP: who may ask, what is refused, what is told, and a run that is stopped by it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder, until
from tests.jupyter.server.conftest import BASE_URL, Client, Server
from tests.tiny_runs import tiny_recipe
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.jupyter.server.base import BODY_BYTES
from workbench.jupyter.watch.feed import Feed
from workbench.store import control
from workbench.store.folder import RunFolder, write_json
from workbench.telemetry.streams import TelemetryWriter

pytestmark = pytest.mark.xdist_group("server")
API = f"{BASE_URL}workbench/api"


@pytest.fixture
def run(server: Server, request: pytest.FixtureRequest) -> RunFolder:
    """A run that counts as alive and has said a little."""
    name = f"20260101-000000-{abs(hash(request.node.nodeid)) % 16**8:08x}"
    folder = run_folder(server.runs / name, name="a <b>run</b>", budget={"amount": 100, "unit": "steps"})
    say(folder, 1, 20)
    return folder


def say(folder: RunFolder, first: int, last: int) -> None:
    """Records as a trainer writes them."""
    writer = TelemetryWriter(folder.telemetry)
    for step in range(first, last + 1):
        writer.scalars(step, step / 2, step * 100, loss=10.0 - step / 10, lr=1e-3, grad_norm=1.0)
        writer.layers(step, state=[0, 1, 3], grad_norm=[0.5, None, None])
    writer.event(last, "stage", f"stage at {last}")
    writer.close()


def unsealed(message: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and block of a message."""
    length = int.from_bytes(message[:4], "little")
    return json.loads(message[4 : 4 + length]), message[4 + length :]


def told(client: Client, folder: RunFolder, place: str = "here", **query: Any) -> tuple[dict[str, Any], bytes]:
    """The answer to a question about one run."""
    answer = client.get("/telemetry", run=f"{place}/{folder.id}", **query)
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/octet-stream"
    return unsealed(answer.body)


@pytest.mark.parametrize("path", ["/telemetry?run=here/{run}", "/runs/here/{run}/steer/x"])
def test_strangers_are_told_nothing(server: Server, run: RunFolder, path: str) -> None:
    answer = server.stranger.get(path.format(run=run.id))
    assert answer.status == 403
    assert run.id.encode() not in answer.body
    wrong = Client(server.port, {"Authorization": "token wrong"})
    assert wrong.get(path.format(run=run.id)).status == 403


def test_strangers_cannot_ask_a_run(server: Server, run: RunFolder) -> None:
    assert server.stranger.post(f"/runs/here/{run.id}/steer", {"verb": "stop"}).status == 403
    assert control.pending(run) == []


def test_a_page_must_prove_that_it_is_ours(server: Server, run: RunFolder) -> None:
    page, path = server.page(), f"/runs/here/{run.id}/steer"
    assert page.get("/telemetry", run=f"here/{run.id}").status == 200
    forged = Client(server.port, {"Cookie": page.headers["Cookie"]})
    refused = forged.post(path, {"verb": "stop"})
    assert refused.status == 403
    assert "XSRF" in refused.json["message"] or "_xsrf" in refused.json["message"]
    assert forged.post(path, {"verb": "stop"}, X_XSRFToken="0" * 32).status == 403
    assert page.post(path, {"verb": "stop"}, Origin="https://elsewhere.example").status in (403, 404)
    assert control.pending(run) == []
    assert page.post(path, {"verb": "stop"}).json["state"] == "asked"
    assert [request.verb for request in control.pending(run)] == ["stop"]


def test_only_the_prefix_leads_here(client: Client, run: RunFolder) -> None:
    question = f"telemetry?run=here/{run.id}"
    assert client.ask("GET", f"/workbench/api/{question}").status == 404
    assert client.ask("GET", f"{API}/{question}").status == 200


def test_ranges_are_what_the_kernel_sends(client: Client, run: RunFolder) -> None:
    sent: list[tuple[dict[str, Any], bytes]] = []
    feed = Feed([run], lambda header, blocks: sent.append((header, blocks[0])), period_seconds=0.02)
    try:
        feed.resync()
        until(lambda: len(sent) == 1)
        header, block = told(client, run)
        assert (header, block) == sent[0]
        cursor = sent[0][0]["cursor"]
        # At once into the files, so that the kernel's thread sees all of it in one look.
        line = '{"seq":%d,"step":%d,"seconds":%d,"tokens":%d,"loss":1.5,"lr":0.5}\n'
        block_of_lines = "".join(line % (step, step, step, step) for step in range(21, 40)).encode()
        stream = os.open(run.telemetry / "scalars.jsonl", os.O_WRONLY | os.O_APPEND)
        assert os.write(stream, block_of_lines) == len(block_of_lines)
        os.close(stream)
        until(lambda: any("clock" in entry for message, _ in sent[1:] for entry in message["runs"]))
        time.sleep(0.06)
        header, block = told(client, run, since=cursor)
        newer = header["cursor"]
        assert header["type"] == "delta"
        assert header["runs"][0]["clock"] == 19
        rows = next(m for m in sent[1:] if any("clock" in entry for entry in m[0]["runs"]))
        assert header["runs"][0]["dense"] == rows[0]["runs"][0]["dense"]
        assert (header["cursor"], block) == (rows[0]["cursor"], rows[1]), "a page may go from one to the other"
    finally:
        feed.close()
    quiet, nothing = told(client, run, since=newer)
    assert (quiet, nothing) == ({"type": "beat", "cursor": newer}, b"")


def test_several_runs_come_in_one_message(server: Server, client: Client, run: RunFolder) -> None:
    other = run_folder(server.elsewhere / "20260101-000000-other")
    say(other, 1, 3)
    names = [f"here/{run.id}", f"{server.key}/{other.id}"]
    header = unsealed(client.get("/telemetry", run=names).body)[0]
    assert [entry["clock"] for entry in header["runs"]] == [20, 3]
    say(other, 4, 4)
    time.sleep(0.06)
    header = unsealed(client.get("/telemetry", run=names, since=header["cursor"]).body)[0]
    assert [(entry["i"], entry["clock"]) for entry in header["runs"]] == [(1, 1)]
    for wrong in ([], [names[0]] * 2, [f"here/r{i}" for i in range(17)], [run.id]):
        assert client.get("/telemetry", run=wrong).status == 400, wrong
    assert client.get("/telemetry", run=names[0], extra=[f"x{i}" for i in range(65)]).status == 400


@pytest.mark.parametrize(
    "name",
    [
        "..", "../..", "../../etc", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2Fetc%2Fpasswd", "run%00", "A", "run%0a",
        ".hidden", "a.b", "x" * 65, "%ff",
    ],
)  # fmt: skip
def test_no_name_leads_out_of_the_runs_folder(server: Server, client: Client, name: str) -> None:
    secret = server.runs.parent / "etc"
    secret.mkdir(exist_ok=True)
    (secret / "state.json").write_text('{"status": "finished", "message": "SECRET"}')
    for address in (f"runs/here/{name}/steer/x", f"runs/{name}/etc/steer/x", f"telemetry?run=here/{name}"):
        answer = client.ask("GET", f"{API}/{address}")
        assert answer.status in (400, 404), (address, answer.body)
        assert b"SECRET" not in answer.body
    assert client.ask("POST", f"{API}/runs/here/{name}/steer", b'{"verb":"stop"}').status in (400, 404, 405)
    assert not (secret / "control").exists()


def test_links_that_lead_out_are_refused(server: Server, client: Client, tmp_path: Path) -> None:
    outside = run_folder(tmp_path / "20260101-000000-out", name="SECRET")
    say(outside, 1, 3)
    outside.control.mkdir()
    server.runs.mkdir(exist_ok=True)
    (server.runs / "20260101-000000-link").symlink_to(outside.path)
    assert client.get("/telemetry", run="here/20260101-000000-link").status == 404
    for part in ("recipe", "telemetry", "control", "environment"):
        folder = run_folder(server.runs / f"20260101-000000-{part}", status="running")
        getattr(folder, part).unlink(missing_ok=True)
        getattr(folder, part).symlink_to(getattr(outside, part))
        answer = client.get("/telemetry", run=f"here/{folder.id}")
        assert answer.status == 403
        assert "link" in answer.json["message"]
        assert client.post(f"/runs/here/{folder.id}/steer", {"verb": "stop"}).status == 403
    assert list(outside.control.iterdir()) == []


def test_links_within_the_runs_folder_are_followed(server: Server, client: Client, run: RunFolder) -> None:
    folder = run_folder(server.runs / "20260101-000000-inner")
    folder.telemetry.symlink_to(run.telemetry)
    assert told(client, folder)[0]["runs"][0]["clock"] == 20


def test_what_no_trainer_writes_is_an_error_that_passes(client: Client, run: RunFolder) -> None:
    stream = run.telemetry / "scalars.jsonl"
    good = stream.read_bytes()
    stream.unlink()
    stream.mkdir()
    answer = client.get("/telemetry", run=f"here/{run.id}")
    assert answer.status == 500
    assert run.id in answer.json["message"]
    stream.rmdir()
    stream.write_bytes(good)
    assert told(client, run)[0]["runs"][0]["clock"] == 20


@pytest.mark.parametrize(
    ("place", "name", "said"),
    [("here", "20990101-none", "no run"), ("0" * 32, "x", "no place"), ("there", "x", "no place")],
)
def test_what_is_unknown_is_told_with_a_way_out(
    client: Client, run: RunFolder, place: str, name: str, said: str
) -> None:
    answer = client.get("/telemetry", run=f"{place}/{name}")
    assert answer.status == 404
    assert said in answer.json["message"]


def test_a_huge_request_is_refused(client: Client, run: RunFolder) -> None:
    path = f"{API}/runs/here/{run.id}/steer"
    # The headers are enough: an answer that came while more was being sent could be lost with the connection.
    answer = client.ask("POST", path, Content_Length=str(BODY_BYTES + 1))
    assert answer.status == 413
    assert str(BODY_BYTES) in answer.json["message"]
    chunked = client.ask("POST", path, Transfer_Encoding="chunked")
    assert chunked.status == 411
    assert control.pending(run) == []


def test_only_ids_of_requests_have_answers(client: Client, run: RunFolder) -> None:
    path = f"/runs/here/{run.id}/steer"
    request = client.post(path, {"verb": "pause"}).json["request"]
    assert client.get(f"{path}/{request}").json == {"state": "sent", "text": "", "under_way": False}
    assert client.get(f"{path}/{request}", wait=11).status == 400
    for wrong in ("x", "..%2f..%2frecipe", request + "0"):
        assert client.get(f"{path}/{wrong}").status == 400
    assert "JSON object" in client.ask("POST", f"{API}{path}", b"\xff").json["text"]


@pytest.mark.process
def test_a_real_run_is_watched_and_stopped(server: Server, corpus: Path, root: Path) -> None:
    page = server.page()
    live = launch(tiny_recipe(corpus, steps=200_000), runs_dir=server.elsewhere)
    try:
        until(lambda: live.status == "running" and live.state.step > 0, 60)
        header, _ = told(page, live.folder, place=server.key)
        until(lambda: told(page, live.folder, place=server.key, since=header["cursor"])[0]["type"] != "beat")
        path = f"/runs/{server.key}/{live.id}/steer"
        request = page.post(path, {"verb": "stop"}).json["request"]
        until(lambda: page.get(f"{path}/{request}").json["state"] == "done", 30)
        until(lambda: live.status == "stopped", 30)
        # Not at once: several pages share one reading of the run's state, which is a moment old.
        until(lambda: told(page, live.folder, place=server.key)[0]["runs"][0]["status"]["status"] == "stopped", 5)
    finally:
        if live.status == "running":
            live.stop()
    assert Run(live.folder).status == "stopped"


def test_the_server_never_loads_torch(server: Server, client: Client, run: RunFolder) -> None:
    told(client, run)
    client.post(f"/runs/here/{run.id}/steer", {"verb": "pause"})
    loaded = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "numpy" in loaded, "the map of the process can be read"
    assert "torch" not in loaded


def test_the_log_holds_no_trace_of_errors(server: Server, client: Client) -> None:
    client.get("/telemetry", run="here/../")
    assert "Traceback" not in server.log.read_text()


def test_a_clone_of_the_recipe_may_be_damaged(server: Server, client: Client) -> None:
    folder = run_folder(server.runs / "20260101-000000-damaged")
    folder.recipe.write_text("{")
    write_json(folder.environment, [1])
    assert told(client, folder)[0]["runs"][0]["name"] == folder.id
