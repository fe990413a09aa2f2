import assert from "node:assert/strict";
import { test } from "node:test";

import { answerInWords, heldByOther, leaseInWords, newController, pageController, Steering } from "../../workbench/jupyter/frontend/src/steering.js";

const LEASE = { controller: "other", name: "ada@hub", seconds: 25 };
const run = (status = "running") => ({ id: "run-a", status: { status }, final: status !== "running" });

/** A page whose server answers as told, null by leaving it to the kernel; `sent` holds what reached either. */
function page(answer = null) {
  const sent = [];
  const later = [];
  const clock = { time: 0 };
  const steer = async (name, request, said, ...leaving) => {
    sent.push(["server", name, request, ...leaving.filter(Boolean)]);
    return answer;
  };
  const steering = new Steering({
    server: { steer },
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
  const { steering, sent } = page({ state: "done", text: "saved step-3" });
  const said = [];
  await steering.request(run(), { verb: "set", path: "optimizer.lr", value: 0.5, hold: true }, (answer) => said.push(answer.state));
  assert.deepEqual(said, ["sent", "done"]);
  assert.deepEqual(sent, [["server", "here/run-a", { verb: "set", controller: "mine", path: "optimizer.lr", value: 0.5, hold: true }]]);
});

test("without a server the kernel is asked, and its answers find whoever asked", async () => {
  const { steering, sent } = page();
  const said = [];
  const asked = steering.request(run(), { verb: "evaluate" }, (answer) => said.push([answer.state, answer.text]));
  await settled();
  const [, message] = sent.at(-1);
  assert.deepEqual({ ...message, id: "" }, { type: "steer", run: "run-a", verb: "evaluate", controller: "mine", id: "" });
  steering.heard({ id: "of another page", state: "done" });
  steering.heard({ id: message.id, state: "accepted", text: "evaluating" });
  steering.heard({ id: message.id, state: "done", text: "loss 5.4" });
  await asked;
  assert.deepEqual(said, [["sent", ""], ["accepted", "evaluating"], ["done", "loss 5.4"]]);
});

test("while a run is at it, the seconds are counted until the answer", async () => {
  let answer = null;
  const steer = (name, request, said) => {
    said({ state: "accepted", text: "saving a checkpoint, about 9 s" });
    return new Promise((done) => (answer = done));
  };
  const { steering, clock, later } = page();
  steering.server.steer = steer;
  const said = [];
  const asked = steering.request(run(), { verb: "checkpoint" }, (each) => said.push(answerInWords("checkpoint", each)));
  for (let second = 0; second < 2; second++) {
    clock.time += 1000;
    later.pop()[0]();
  }
  answer({ state: "done", text: "saved step-3" });
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
  const { steering, sent, later } = page({ state: "failed", text: "no torch here" });
  const said = [];
  const asked = steering.fork(run("stopped"), 7, ["optimizer.lr=1"], (answer) => said.push(answer));
  await settled();
  for (const [call] of later) call();
  assert.match(said.at(-1).text, /the server could not: no torch here; the kernel has not answered/);
  assert.equal(said.at(-1).error, true);
  const [, message] = sent.at(-1);
  assert.deepEqual([message.verb, message.step, message.edits], ["fork", 7, ["optimizer.lr=1"]]);
  steering.heard({ id: message.id, state: "done", text: "", made: { run: "new" } });
  await asked;
  assert.equal(said.at(-1).made.run, "new");
});

test("going on after an end starts a process, and everybody is asked for news", async () => {
  const { steering, sent } = page({ state: "done", text: "resuming" });
  await steering.request(run("stopped"), { verb: "resume" }, () => {});
  assert.deepEqual(sent, [["server", "here/run-a", { verb: "restart" }], ["stirred", "run-a"]]);
  await steering.request(run("paused"), { verb: "resume" }, () => {});
  assert.equal(sent.at(-1)[2].verb, "resume");
});

test("what is held is renewed while somebody works there, and let go with the panel", async () => {
  const { steering, sent, clock } = page({ state: "done", text: "" });
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
  assert.deepEqual(sent.at(-1), ["server", "here/run-a", { verb: "lease", controller: "mine" }]);
  clock.time += 60001;
  steering.tick([run()]);
  steering.release(run());
  assert.equal(sent.length, 3, "nobody has touched the panel for a minute: it runs out");
  await steering.request(run(), { verb: "pause", hold: true }, () => {});
  steering.release(run(), true);
  assert.deepEqual(sent.at(-1), ["server", "here/run-a", { verb: "release", controller: "mine" }, true]);
});

test("whoever is refused or pushed out renews nothing", async () => {
  const { steering, sent, clock } = page({ state: "refused", text: "steered by Ann", reason: "leased" });
  await steering.request(run(), { verb: "pause", hold: true }, () => {});
  clock.time += 20000;
  steering.tick([run()]);
  assert.equal(sent.length, 1);
  await steering.takeOver(run(), () => {});
  steering.tick([run()]);
  clock.time += 20000;
  steering.tick([run()]);
  assert.deepEqual(sent.slice(1), [["server", "here/run-a", { verb: "lease", controller: "mine", take_over: true }]]);
});
