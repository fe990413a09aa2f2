import assert from "node:assert/strict";
import { test } from "node:test";

import { answerInWords, heldByOther, leaseInWords, newController, pageController, Steering } from "../../workbench/jupyter/frontend/src/steering.js";

const LEASE = { controller: "other", name: "ada@hub", seconds: 25, held: 40 };
const run = (status = "running") => ({ id: "run-a", status: { status }, final: status !== "running" });

/** A page whose server and kernel answer as told; `sent` holds what reached them. */
function page(server = {}) {
  const sent = [];
  const later = [];
  const clock = { time: 0 };
  const reply = (kind) => async (name, ...rest) => {
    sent.push([kind, name, ...rest.filter((each) => typeof each !== "function")]);
    return server[kind] ?? null;
  };
  const steering = new Steering({
    server: { control: reply("control"), lease: reply("lease"), start: reply("start") },
    send: (message) => sent.push(["kernel", message]),
    nameOf: (id) => `here/${id}`,
    stirred: (id) => sent.push(["stirred", id]),
    controller: "mine",
    now: () => clock.time,
    later: (call, ms) => later.push([call, ms]),
  });
  return { steering, sent, later, clock };
}

const settled = () => new Promise((done) => setImmediate(done));

test("who steers is told with how long, and nothing once it ran out", () => {
  assert.equal(leaseInWords(LEASE, "mine", 1000, 6000), "steered by ada@hub, free in 20 s unless they go on");
  assert.equal(leaseInWords(LEASE, "other", 1000, 1000), "you are steering this run from this page");
  assert.equal(leaseInWords(LEASE, "mine", 1000, 26001), "");
  assert.equal(leaseInWords(null, "mine", 0, 0), "");
  assert.equal(heldByOther(LEASE, "mine", 0, 1000), true);
  assert.equal(heldByOther(LEASE, "other", 0, 1000), false);
  assert.equal(heldByOther(LEASE, "mine", 0, 25000), false);
  assert.equal(heldByOther(null, "mine", 0, 0), false);
});

test("pages have names of their own", () => {
  assert.match(newController(), /^[0-9a-f]{24}$/);
  assert.notEqual(newController(), newController());
  const [mine, other] = [{}, {}];
  assert.equal(pageController(mine), pageController(mine));
  assert.notEqual(pageController(mine), pageController(other));
});

test("the server is asked first, and the kernel not at all when it answers", async () => {
  const { steering, sent } = page({ control: { state: "done", text: "saved step-3", error: false } });
  const said = [];
  await steering.request(run(), { verb: "set", path: "optimizer.lr", value: 0.5, hold: true }, (answer) => said.push(answer.state));
  assert.deepEqual(said, ["sent", "done"]);
  assert.deepEqual(sent, [["control", "here/run-a", { verb: "set", controller: "mine", path: "optimizer.lr", value: 0.5, hold: true }]]);
});

test("without a server the kernel is asked, and its answers find whoever asked", async () => {
  const { steering, sent } = page();
  const said = [];
  const asked = steering.request(run(), { verb: "evaluate" }, (answer) => said.push([answer.state, answer.text]));
  await settled();
  const [, message] = sent.at(-1);
  assert.deepEqual({ ...message, token: "" }, { type: "control", run: "run-a", verb: "evaluate", controller: "mine", token: "" });
  assert.equal(steering.heard({ token: "of another page", state: "done" }), true, "not for the status line either");
  assert.equal(steering.heard({ text: "reading failed" }), false, "of nobody's request: for all to see");
  steering.heard({ token: message.token, state: "accepted", text: "evaluating" });
  steering.heard({ token: message.token, state: "done", text: "loss 5.4" });
  await asked;
  assert.deepEqual(said, [["sent", ""], ["accepted", "evaluating"], ["done", "loss 5.4"]]);
});

test("while a run is at it, the seconds are counted until the answer", async () => {
  let answer = null;
  const control = (request, said) => {
    said({ state: "accepted", text: "saving a checkpoint, about 9 s", error: false });
    return new Promise((done) => (answer = done));
  };
  const { steering, clock, later } = page();
  steering.server.control = (name, request, said) => control(request, said);
  const said = [];
  const asked = steering.request(run(), { verb: "checkpoint" }, (each) => said.push(answerInWords("checkpoint", each)));
  for (let second = 0; second < 2; second++) {
    clock.time += 1000;
    later.pop()[0]();
  }
  answer({ state: "done", text: "saved step-3", error: false });
  await asked;
  clock.time += 1000;
  later.pop()[0]();
  const words = "checkpoint: saving a checkpoint, about 9 s";
  assert.deepEqual(said, ["checkpoint: asked", words, `${words}; 1 s so far`, `${words}; 2 s so far`, "checkpoint: saved step-3"]);
});

test("what a knob was turned to names it once", () => {
  const text = "optimizer.lr 0.001 -> 0.002";
  assert.equal(answerInWords("set optimizer.lr", { state: "done", text }), "set optimizer.lr: 0.001 -> 0.002");
  assert.equal(answerInWords("set optimizer.lr", { state: "refused", text: "too late" }), "set optimizer.lr: too late");
});

test("a kernel that does not answer is told, and its late answer counts", async () => {
  const { steering, sent, later } = page({ start: { failed: "no torch here" } });
  const said = [];
  const asked = steering.fork(run("stopped"), 7, ["optimizer.lr=1"], (answer) => said.push(answer));
  await settled();
  for (const [call] of later) call();
  assert.match(said.at(-1).text, /the server could not: no torch here; the kernel has not answered/);
  assert.equal(said.at(-1).error, true);
  const [, message] = sent.at(-1);
  assert.deepEqual([message.type, message.step, message.edits], ["fork", 7, ["optimizer.lr=1"]]);
  steering.heard({ token: message.token, state: "done", text: "", made: { run: "new" } });
  await asked;
  assert.equal(said.at(-1).made.run, "new");
});

test("going on after an end starts a process, and everybody is asked for news", async () => {
  const { steering, sent } = page({ start: { state: "done", text: "resuming", error: false } });
  await steering.request(run("stopped"), { verb: "resume" }, () => {});
  assert.deepEqual(sent, [["start", "here/run-a", "resume", {}], ["stirred", "run-a"]]);
  const paused = page({ control: { state: "done", text: "going on", error: false } });
  await paused.steering.request({ ...run(), status: { status: "paused" } }, { verb: "resume" }, () => {});
  assert.equal(paused.sent[0][0], "control");
});

test("what is held is renewed while somebody works there, and let go with the panel", async () => {
  const { steering, sent, clock } = page({ control: { state: "done", text: "", error: false }, lease: { state: "done", text: "", error: false } });
  await steering.request(run(), { verb: "check", path: "x", value: 1 }, () => {});
  clock.time += 60000;
  steering.tick([run()]);
  assert.equal(sent.length, 1, "a check holds nothing");
  await steering.request(run(), { verb: "pause", hold: true }, () => {});
  clock.time += 9999;
  steering.tick([run()]);
  assert.equal(sent.length, 2);
  clock.time += 1;
  steering.tick([run()]);
  assert.deepEqual(sent.at(-1), ["lease", "here/run-a", { controller: "mine" }, false]);
  clock.time += 60001;
  steering.tick([run()]);
  steering.release(run());
  assert.equal(sent.length, 3, "nobody has touched the panel for a minute: it runs out");
  await steering.request(run(), { verb: "pause", hold: true }, () => {});
  steering.release(run(), true);
  assert.deepEqual(sent.at(-1), ["lease", "here/run-a", { controller: "mine", release: true }, true]);
});

test("whoever is refused or pushed out renews nothing", async () => {
  const refused = { state: "refused", text: "steered by Ann", error: true, reason: "leased" };
  const { steering, sent, clock } = page({ control: refused, lease: refused });
  await steering.request(run(), { verb: "pause", hold: true }, () => {});
  clock.time += 20000;
  steering.tick([run()]);
  assert.equal(sent.length, 1);
  await steering.takeOver(run(), () => {});
  steering.tick([run()]);
  clock.time += 20000;
  steering.tick([run()]);
  assert.deepEqual(sent.slice(1), [["lease", "here/run-a", { controller: "mine", take_over: true }, false]]);
});
