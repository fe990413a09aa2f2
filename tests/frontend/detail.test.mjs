import assert from "node:assert/strict";
import { test } from "node:test";

import { Details, lacking } from "../../workbench/jupyter/frontend/src/watch/detail.js";
import { Store } from "../../workbench/jupyter/frontend/src/store.js";
import { block, clock, delta, snapshot } from "./block.mjs";

/** A page that holds every hundredth of a hundred thousand records. */
function downsampled() {
  const store = new Store();
  const steps = Int32Array.from({ length: 1000 }, (_, i) => 100 * (i + 1));
  const [header] = snapshot(1, [], { clock: 1000, sparse: [[0, 1000, 100000]] });
  const columns = [...clock(steps), steps, Float32Array.from(steps, (s) => 1 / s)];
  store.receive(header, block(...columns), 0);
  return store;
}

/** The answer of the kernel to a question: every record. */
function answer(ask, from, to) {
  const steps = Int32Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const run = { i: 0, from, to, clock: steps.length, series: [["loss", steps.length, steps.length]] };
  return [{ type: "detail", ask, runs: [run] }, block(...clock(steps), steps, Float32Array.from(steps, (s) => (s === 50_050 ? 9 : 1)))];
}

test("everything in sight, or a short run, lacks nothing", () => {
  const store = downsampled();
  assert.equal(lacking(store.runs, ["loss"], null, "step"), null);
  const short = new Store();
  short.receive(...snapshot(1, [9, 8, 7]), 0);
  assert.equal(lacking(short.runs, ["loss"], [1, 2], "step"), null);
});

test("zoomed into a long run, a page asks for that stretch and some beyond, on any axis", () => {
  const { runs } = downsampled();
  const { spans, names, points } = lacking(runs, ["loss", "lr"], [50_000, 50_200], "step");
  assert.deepEqual([spans, names], [[[49_900, 50_300]], ["loss", "lr"]]);
  assert.ok(points >= 2000);
  assert.deepEqual(lacking(runs, ["loss"], [25_000, 25_100], "seconds").spans, spans);
  assert.equal(lacking(runs, ["loss"], [5, 6], "lr"), null, "an axis that the run does not have");
});

test("the answer is drawn in its stretch, and nothing lacks there any more", () => {
  const store = downsampled();
  const question = store.details.next(lacking(store.runs, ["loss"], [50_000, 50_200], "step"), 1000);
  const before = store.runs[0].line("loss", "step").x.length;
  assert.equal(store.receive(...answer(question.ask, 49_900, 50_300), 1100).changed, true);
  const { x, y } = store.runs[0].line("loss", "step");
  assert.equal(x.length, before - 5 + 401);
  assert.ok(x.every((value, i) => i === 0 || value > x[i - 1]), "ascending across both seams");
  assert.equal(Math.max(...y), 9, "a spike between two held records is seen");
  assert.equal(lacking(store.runs, ["loss"], [50_000, 50_200], "step"), null);
  assert.ok(lacking(store.runs, ["loss"], [70_000, 70_200], "step"), "elsewhere it does");
  assert.deepEqual([...store.runs[0].clock.at(Float64Array.of(50_051), "seconds")], [25_025.5]);
});

test("what is appended since is exact and needs no question", () => {
  const store = downsampled();
  store.receive(...delta(2, 100_000, Array.from({ length: 50 }, () => 1)), 0);
  assert.equal(lacking(store.runs, ["loss"], [100_001, 100_050], "step"), null);
  assert.ok(lacking(store.runs, ["loss"], [99_990, 100_050], "step"));
});

test("one question at a time, none twice, and only the last answer counts", () => {
  const details = new Details();
  const [first, second] = [{ spans: [[1, 2]] }, { spans: [[3, 4]] }];
  assert.equal(details.next(null, 0), null);
  const { ask } = details.next(first, 0);
  assert.equal(details.next(second, 1000), null, "the first is under way");
  assert.equal(details.answered(ask), true);
  assert.equal(details.next(first, 1200), null, "it was answered as well as it could be");
  assert.equal(details.next(second, 1200).ask, ask + 1);
  assert.equal(details.answered(ask), false);
  assert.equal(details.next(second, 2000), null);
  assert.ok(details.next(second, 9000), "nobody answered");
});
