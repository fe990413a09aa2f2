import assert from "node:assert/strict";
import { test } from "node:test";

import { readings } from "../../workbench/jupyter/frontend/src/watch/readout.js";
import { nameParts } from "../../workbench/jupyter/frontend/src/run_name.js";

const line = (of, steps, y, more = {}) => ({ of, run: of, name: of, x: Float64Array.from(steps), steps: Float64Array.from(steps), y: Float64Array.from(y), format: String, ...more });
const scores = (of, steps, y) => line(of, steps, y, { points: true, what: "held-out" });
const told = (lines, x, kind = "step") => Object.fromEntries(readings(lines, x, kind).map(({ line: { run }, values }) => [run, values.join(" ")]));

const LINES = [
  line("long", [1, 100, 224, 300, 385, 2000], [9, 8, 7, 6, 5, 4]),
  scores("long", [224, 385], [5.7, 5.5]),
  line("short", [1, 10, 20], [9, 8, 7]),
  scores("short", [20], [6.4]),
  line("fork", [1475, 1600], [3, 2]),
  scores("fork", [1600], [4.8]),
];

test("a reading has nothing of a run where that has no samples", () => {
  assert.deepEqual(told(LINES, 1), { long: "9", short: "9" }, "a fork begins later, and nothing is scored yet");
  assert.deepEqual(told(LINES, 20), { long: "9", short: "7 held-out 6.4" });
  assert.deepEqual(told(LINES, 21), { long: "9" }, "the short one has ended");
  assert.deepEqual(told(LINES, 1475), { long: "5 held-out 5.5 (step 385)", fork: "3" });
  assert.deepEqual(readings(LINES, 2001, "step"), []);
});

test("a score that was measured before says at which step, on every axis", () => {
  assert.equal(told(LINES, 223).long, "8");
  assert.equal(told(LINES, 224).long, "7 held-out 5.7");
  assert.equal(told(LINES, 300).long, "6 held-out 5.7 (step 224)");
  assert.equal(told(LINES, 385).long, "5 held-out 5.5");
  assert.equal(told(LINES, 1342).long, "5 held-out 5.5 (step 385)", "for as long as its run goes on");
  const tokens = LINES.map((one) => ({ ...one, x: one.x.map((x) => 4096 * x) }));
  assert.equal(told(tokens, 4096 * 300, "tokens").long, "6 held-out 5.7 (step 224)");
  assert.equal(told(tokens, 4096 * 224, "tokens").long, "7 held-out 5.7");
});

test("numbers that are none are passed over, and parts that stand on each other tell their own", () => {
  const gaps = line("a", [1, 2, 3, 4], [9, NaN, 7, NaN]);
  assert.deepEqual([1, 2, 3, 4].map((x) => told([gaps], x).a), ["9", "9", "7", undefined]);
  assert.deepEqual(readings([line("a", [], [])], 1, "step"), []);
  const stacked = [line(undefined, [1, 2], [5, 6], { name: "whole", own: [2, 4] }), line(undefined, [1, 2], [3, 2], { name: "part" })];
  assert.deepEqual(readings(stacked, 2, "step").map((one) => [one.line.name, ...one.values]), [["whole", "4"], ["part", "2"]]);
});

test("a score that stands alone says what it is", () => {
  const diverged = [line("a", [1, 2, 3], [9, NaN, NaN]), scores("a", [3], [11])];
  assert.equal(told(diverged, 3).a, "held-out 11");
  const alone = diverged.map((one) => ({ ...one, of: undefined }));
  assert.deepEqual(readings(alone, 3, "step").map(({ values }) => values), [["11"]], "of a run alone the row's name says it");
});

test("a line that is not told by itself is not told", () => {
  assert.deepEqual(told([line("a", [1], [9], { quiet: true }), line("a", [1], [8])], 1), { a: "8" });
});

test("what tells runs of one name apart is a part of its own, which is not cut first", () => {
  assert.deepEqual(nameParts("quickstart · adamw · 60 s"), ["quickstart", " · adamw · 60 s"]);
  assert.deepEqual(nameParts("steerme"), ["steerme", ""]);
});

test("the score at the end is told once", () => {
  const whole = (of) => line(of, [30], [4.1], { points: true, whole: true, quiet: true, what: "held-out" });
  const parts = (of) => ({ ...scores(of, [10, 20], [6.4, 6.2]), format: (y) => `~${y}` });
  const lines = ["a", "b"].flatMap((of) => [line(of, [1, 10, 20, 30], [9, 8, 7, 6]), parts(of)]);
  lines.push(whole("a"));
  assert.equal(told(lines, 20).a, "7 held-out ~6.2");
  assert.deepEqual(told(lines, 30), { a: "6 held-out ~6.2 (step 20)", b: "6 held-out ~6.2 (step 20)" });
});
