import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { baseOf, Relay, Server, xsrfOf } from "../../workbench/jupyter/frontend/src/server.js";
import { Store } from "../../workbench/jupyter/frontend/src/store.js";
import { delta, snapshot } from "./block.mjs";

const page = (text, origin = "http://hub.example") => ({
  location: { origin },
  getElementById: (id) => (id === "jupyter-config-data" ? { textContent: text } : null),
});

/** A message as the extension seals it. */
function sealed([header, block]) {
  let text = JSON.stringify(header);
  text += " ".repeat((8 - ((text.length + 4) % 8)) % 8);
  const data = block ? new Uint8Array(block.buffer, block.byteOffset, block.byteLength) : new Uint8Array();
  const whole = new Uint8Array(4 + text.length + data.length);
  new DataView(whole.buffer).setUint32(0, text.length, true);
  whole.set(new TextEncoder().encode(text), 4);
  whole.set(data, 4 + text.length);
  return whole;
}

const beat = (cursor) => [{ type: "beat", cursor }, undefined];
const values = (store) => [...store.runs[0].series.get("loss").values.view()];

/** For which the server holds a question, of the clock of the tests. */
const HELD_MS = 1000;

/** A real HTTP server on this machine that answers with `reply(request, hold)`: [status, body]; `hold` lets time pass. */
async function served(reply, use) {
  const asked = [];
  const clock = { time: 1e6 };
  const hold = () => void (clock.time += HELD_MS);
  const http = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    asked.push({ method: request.method, url: new URL(request.url, "http://x"), headers: request.headers, body });
    const [status, said, headers = {}] = reply(asked.at(-1), hold);
    response.writeHead(status, headers).end(said instanceof Uint8Array ? said : JSON.stringify(said));
  });
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  try {
    const base = `http://127.0.0.1:${http.address().port}/user/ada/`;
    const rest = async (ms) => void (clock.time += ms);
    const server = new Server(base, { cookies: () => "a=1; _xsrf=2|abc|def; b=2", now: () => clock.time, rest });
    await use(server, asked, clock);
  } finally {
    http.closeAllConnections();
    http.close();
  }
}

test("the address comes from the page, prefix and all, and never leads to another site", () => {
  assert.equal(baseOf(page('{"baseUrl": "/user/ada/"}')), "http://hub.example/user/ada/");
  assert.equal(baseOf(page('{"baseUrl": "/user/ada"}')), "http://hub.example/user/ada/");
  assert.equal(baseOf(page('{"baseUrl": "/"}')), "http://hub.example/");
  assert.equal(baseOf(page('{"baseUrl": "http://hub.example/a/"}')), "http://hub.example/a/");
  assert.equal(baseOf(page('{"baseUrl": "/", "appVersion": "4.6.0", "workbench": "1"}')), "http://hub.example/");
  assert.equal(baseOf(page('{"baseUrl": "/", "appVersion": "4.6.0"}')), null, "the extension is turned off");
  for (const wrong of ['{"baseUrl": "https://evil.example/"}', '{"baseUrl": "//evil.example/"}', "{}", "not json", '{"baseUrl": 5}']) {
    assert.equal(baseOf(page(wrong)), null, wrong);
  }
  assert.equal(baseOf({ location: { origin: "null" }, getElementById: () => null }), null);
});

test("the token is the first cookie of its name", () => {
  assert.equal(xsrfOf("x_xsrf=no; _xsrf=2|a|b|1; _xsrf=other"), "2|a|b|1");
  assert.equal(xsrfOf("a=1"), "");
});

test("news are asked for from where the page stands", async () => {
  await served(
    () => [200, sealed(delta(8, 3, [6]))],
    async (server, asked) => {
      const { header, block } = await server.news(["here/run-a", "0a/run-b"], "c7", ["grad_norm"]);
      assert.equal(header.cursor, "c8");
      assert.ok(block.byteLength > 0);
      const { url } = asked[0];
      assert.equal(url.pathname, "/user/ada/workbench/api/telemetry");
      assert.deepEqual(url.searchParams.getAll("run"), ["here/run-a", "0a/run-b"]);
      assert.deepEqual(["since", "extra"].map((name) => url.searchParams.get(name)), ["c7", "grad_norm"]);
    },
  );
});

test("a server without the extension is left alone for a minute", async () => {
  await served(
    () => [404, { message: "Not Found" }],
    async (server, asked, clock) => {
      assert.equal(await server.news(["here/run-a"], "", []), null);
      assert.equal(server.usable, false);
      assert.equal(await server.steer("here/run-a", { verb: "stop" }), null, "so the kernel is asked");
      assert.equal(asked.length, 1);
      clock.time += 60000;
      assert.equal(server.usable, true);
    },
  );
});

test("a run that is gone takes no other run's Stop away, and is not asked for all the time", async () => {
  await served(
    ({ method }) => (method === "POST" ? [200, { state: "done", text: "" }] : [404, { message: "no run 'run-b'" }, { "Content-Type": "application/json; charset=UTF-8" }]),
    async (server, asked, clock) => {
      const relay = new Relay(new Store(), server);
      const tick = async (names, later) => ((clock.time += later), await relay.tick(names, []), asked.length);
      assert.equal(await tick(["here/run-a", "here/run-b"], 2000), 1);
      assert.equal((await server.steer("here/run-a", { verb: "stop" })).state, "done", "not left to a kernel that may be gone");
      assert.equal(await tick(["here/run-a", "here/run-b"], 2000), 2);
      assert.equal(await tick(["here/run-a"], 2000), 3, "others are asked for at once");
      assert.equal(await tick(["here/run-a"], 60000), 4);
    },
  );
});

test("a server that cannot be reached is asked again soon", async () => {
  const clock = { time: 0 };
  const fetch = async () => {
    throw new TypeError("Failed to fetch");
  };
  const server = new Server("http://hub.example/", { cookies: () => "", fetch, now: () => clock.time });
  assert.equal(await server.news(["here/run-a"], "", []), null);
  assert.equal(server.usable, false);
  clock.time = 3000;
  assert.equal(server.usable, true);
  assert.equal(await server.steer("here/run-a", { verb: "stop" }), null);
  assert.equal(new Server(null, { cookies: () => "" }).usable, false);
});

const ASKED = [200, { state: "asked", text: "", request: "0001-stop-ab" }];

test("a request proves where it is from and brings back the run's answer", async () => {
  const answers = [{ state: "sent", text: "", under_way: false }, { state: "accepted", text: "evaluating", under_way: true }, { state: "done", text: "loss 5.4" }];
  await served(
    ({ method }) => (method === "POST" ? ASKED : [200, answers.shift()]),
    async (server, asked) => {
      const said = [];
      const last = await server.steer("here/run-a", { verb: "evaluate", controller: "c" }, (answer) => said.push([answer.state, answer.text]));
      assert.deepEqual(last, { state: "done", text: "loss 5.4" });
      assert.deepEqual(said, [["asked", ""], ["accepted", "evaluating"]]);
      assert.equal(asked[0].headers["x-xsrftoken"], "2|abc|def");
      assert.deepEqual(JSON.parse(asked[0].body), { verb: "evaluate", controller: "c" });
      assert.equal(asked[0].url.pathname, "/user/ada/workbench/api/runs/here/run-a/steer");
      assert.equal(asked[3].url.pathname, "/user/ada/workbench/api/runs/here/run-a/steer/0001-stop-ab");
      // The server holds the question, and is told what is known already.
      assert.deepEqual(asked.slice(1).map(({ url }) => url.searchParams.get("said")), ["", "", "accepted"]);
      assert.ok(asked.slice(1).every(({ url }) => Number(url.searchParams.get("wait")) > 0));
    },
  );
});

test("what is answered at once is all that is asked; what the extension does not answer is the kernel's", async () => {
  for (const answer of [{ state: "refused", text: "steered by Ann", reason: "leased" }, { state: "failed", text: "no torch here" }, { state: "done", text: "", made: { run: "new" } }]) {
    await served(
      () => [200, answer],
      async (server, asked) => {
        assert.deepEqual(await server.steer("here/run-a", { verb: "fork", edits: [] }, () => {}, true), answer);
        assert.equal(asked.length, 1);
      },
    );
  }
  for (const answer of [[403, { message: "forbidden" }], [500, { message: "reading failed" }], [200, new TextEncoder().encode("<html>")]]) {
    await served(
      () => answer,
      async (server) => assert.equal(await server.steer("here/run-a", { verb: "restart" }), null),
    );
  }
  assert.equal(await new Server("http://hub.example/", { cookies: () => "" }).steer(undefined, { verb: "stop" }), null);
});

test("an answer that does not come is no error, and a server in trouble is waited for", async () => {
  let looks = 0;
  await served(
    ({ method }, hold) => {
      if (method === "POST") return ASKED;
      hold();
      return (looks += 1) === 1 ? [502, {}] : [200, { state: "sent", text: "", under_way: false }];
    },
    async (server, asked, clock) => {
      const began = clock.time;
      assert.equal((await server.steer("here/run-a", { verb: "pause" })).state, "late");
      assert.ok(looks > 2);
      assert.ok(clock.time - began >= 60000);
    },
  );
});

test("what a run has begun is waited for until it is done, however long that takes", async () => {
  const begun = { state: "accepted", text: "evaluating", under_way: true };
  let looks = 0;
  await served(
    ({ method }, hold) => {
      if (method === "POST") return ASKED;
      hold();
      return [200, (looks += 1) < 90 ? begun : { state: "done", text: "loss 5.4" }];
    },
    async (server, asked, clock) => {
      const began = clock.time;
      assert.equal((await server.steer("here/run-a", { verb: "evaluate" })).text, "loss 5.4");
      assert.ok(clock.time - began > 60000, "longer than it may take to begin");
    },
  );
  await served(
    ({ method }, hold) => {
      if (method === "POST") return ASKED;
      hold();
      return [200, { ...begun, under_way: false }];
    },
    async (server) => assert.equal((await server.steer("here/run-a", { verb: "evaluate" })).state, "late", "a run that stands still is not"),
  );
});

test("the relay takes over when the kernel falls silent and hands back when it speaks", async () => {
  const answers = [delta(2, 2, [7]), beat("c2"), delta(3, 3, [6])];
  await served(
    () => [200, sealed(answers.shift())],
    async (server, asked, clock) => {
      const store = new Store();
      const relay = new Relay(store, server);
      store.receive(...snapshot(1, [9, 8]), clock.time);
      clock.time += 900;
      assert.equal(await relay.tick(["here/run-a"], []), false, "not silent yet");
      assert.equal(asked.length, 0);
      clock.time += 600;
      assert.equal(await relay.tick(["here/run-a"], []), true);
      assert.deepEqual(values(store), [9, 8, 7]);
      assert.equal(asked[0].url.searchParams.get("since"), "c1");
      clock.time += 300;
      assert.equal(await relay.tick(["here/run-a"], []), false);
      clock.time += 300;
      assert.equal(await relay.tick(["here/run-a"], []), true);
      assert.deepEqual(values(store), [9, 8, 7, 6]);
      // The kernel is back: what it tells begins where it stopped, so it must tell everything once.
      assert.deepEqual(store.receive(...beat("c1"), clock.time), { changed: false, resync: false }, "nothing new");
      assert.deepEqual(store.receive(...delta(2, 2, [7]), clock.time), { changed: false, resync: true });
      assert.deepEqual(store.receive(...snapshot(4, [9, 8, 7, 6]), clock.time), { changed: true, resync: false });
      assert.equal(store.receive(...delta(5, 4, [5]), clock.time).changed, true);
      assert.deepEqual(values(store), [9, 8, 7, 6, 5]);
      assert.equal(store.needsServer(clock.time), false);
    },
  );
});

test("what the kernel says while the server answers goes first", async () => {
  const store = new Store();
  const clock = { time: 0 };
  store.receive(...snapshot(1, [9]), clock.time);
  const fetch = async () => new Response(sealed(delta(2, 1, [8])));
  const rest = async () => store.receive(...delta(2, 1, [8]), clock.time);
  const relay = new Relay(store, new Server("http://hub.example/", { cookies: () => "", fetch, rest, now: () => clock.time }));
  clock.time = 2000;
  assert.equal(await relay.tick(["here/run-a"], []), false);
  assert.deepEqual(values(store), [9, 8], "once, not twice");
  assert.equal(store.strayed, false);
});

test("a page that was reloaded under a busy kernel starts from the server", async () => {
  await served(
    () => [200, sealed(snapshot(5, [9, 8]))],
    async (server, asked, clock) => {
      const store = new Store();
      const relay = new Relay(store, server);
      store.askOnce(clock.time);
      clock.time += 1100;
      assert.equal(await relay.tick(["here/run-a"], []), true);
      assert.equal(store.live, true);
      assert.equal(asked[0].url.searchParams.has("since"), false);
      // A kernel that was where the server is goes on from there.
      assert.equal(store.receive(...delta(6, 2, [7]), clock.time).changed, true);
      assert.equal(store.strayed, false);
    },
  );
});

test("a run that goes on after its end is looked at again", async () => {
  await served(
    () => [200, sealed(delta(2, 1, [8], { status: { status: "running" } }))],
    async (server, asked, clock) => {
      const store = new Store();
      const relay = new Relay(store, server);
      store.receive(...snapshot(1, [9], { status: { status: "stopped" } }), clock.time);
      clock.time += 5000;
      assert.equal(await relay.tick(["here/run-a"], []), false, "nothing to be told");
      store.stirred(clock.time);
      assert.equal(await relay.tick(["here/run-a"], []), true);
      assert.equal(store.runs[0].final, false);
    },
  );
});

test("nobody is asked about runs that have ended, or without names", async () => {
  await served(
    () => [200, sealed(beat("c"))],
    async (server, asked, clock) => {
      const store = new Store();
      const relay = new Relay(store, server);
      clock.time += 5000;
      await relay.tick([], []);
      store.receive(...snapshot(1, [9], { status: { status: "finished" } }), clock.time);
      clock.time += 5000;
      await relay.tick(["here/run-a"], []);
      assert.equal(asked.length, 0);
    },
  );
});
