import assert from "node:assert/strict";
import { test } from "node:test";

import { watchedRuns } from "../../workbench/jupyter/frontend/src/palette.js";
import { Session } from "../../workbench/jupyter/frontend/src/session.js";
import { block, clock, snapshot } from "./block.mjs";

globalThis.document = { hidden: false, cookie: "", getElementById: () => null };

/** A widget's model; what the kernel says is given to `heard["msg:custom"]`. */
class Model {
  constructor(values = {}) {
    Object.assign(this, { values, heard: {}, sent: [] });
  }

  get(name) {
    return this.values[name];
  }

  on(event, hear) {
    this.heard[event] = hear;
  }

  off(event) {
    delete this.heard[event];
  }

  send(message) {
    this.sent.push(message);
  }

  says([header, data]) {
    this.heard["msg:custom"](header, [data]);
  }
}

/** Every loss of the first run, as the kernel answers a question. */
function whole(ask, losses) {
  const steps = Int32Array.from(losses, (_, i) => i + 1);
  const run = { i: 0, from: 0, to: losses.length, clock: losses.length, series: [["loss", losses.length, losses.length]] };
  return [{ type: "detail", ask, runs: [run] }, block(...clock(steps), steps, Float32Array.from(losses))];
}

test("all records are a run's by its id, also where the run is told anew before the file is written", async (test) => {
  const [model, other] = [new Model(), new Model()];
  const [session, page] = [new Session(model), new Session(other)];
  test.after(() => [session, page].forEach((each) => each.close()));
  model.says(snapshot(1, [9, 8]));
  const asked = session.everything(["loss"]);
  page.everything(["lr"]);
  const [{ ask }, { ask: another }] = [model.sent.at(-1), other.sent.at(-1)];
  assert.ok(ask < 0 && another < 0 && ask !== another, "the answer to one page is none to another");
  model.says(whole(another, [1]));
  model.says(snapshot(2, [9, 8, 7]));
  model.says(whole(ask, [9, 8, 7]));
  const [update] = await asked;
  assert.deepEqual([update.id, ...update.series.get("loss").values], ["run-a", 9, 8, 7]);
  other.says(whole(another, [1]));
});

test("a page that has gone draws nothing any more, whatever the server still answers", async () => {
  const session = new Session(new Model({ served: ["here/run-a"], places: {} }));
  let answer;
  session.relay.tick = () => new Promise((done) => (answer = done));
  while (!answer) await new Promise((done) => setTimeout(done, 50));
  session.close();
  answer(true);
  await new Promise((done) => setTimeout(done));
  assert.equal(watchedRuns().views.has(session), false);
});
