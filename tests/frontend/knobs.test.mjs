import assert from "node:assert/strict";
import { test } from "node:test";

import { boundsInWords, brief, editsOf, forkStep, legalInWords, NEWEST, read, textOf } from "../../workbench/jupyter/frontend/src/watch/knobs.js";

const LR = { path: "optimizer.lr", value: 0.003, types: ["number"], exclusiveMinimum: 0, maximum: 100 };
const RATE = { path: "objective.mask_rate", value: { kind: "linear", start: 0.3 }, types: ["number", "schedule"], exclusiveMinimum: 0, exclusiveMaximum: 1 };
const ROWS = { path: "data.batch_size", value: 16, types: ["integer", "schedule"], minimum: 1 };
const CLIP = { path: "optimizer.clip_norm", value: 1, types: ["number", "null"], exclusiveMinimum: 0 };
const OVER = { path: "optimizer.schedule.over", value: "budget", types: ["string"], options: ["budget", "steps"] };
const FLAG = { path: "depth.rescale", value: true, types: ["boolean"] };
const AT = { path: "depth.at", value: [0.5], types: ["array"] };

test("what is shown reads back as the same value", () => {
  for (const knob of [LR, RATE, ROWS, CLIP, OVER, FLAG, AT, { ...CLIP, value: null }, { ...LR, value: 1e-7 }]) {
    assert.deepEqual(read(knob, textOf(knob.value)), { value: knob.value });
  }
});

test("numbers as people type them, within their bounds", () => {
  assert.deepEqual(read(LR, " 6.75e-3 "), { value: 0.00675 });
  assert.deepEqual([read(LR, "9e−4"), read(CLIP, "−1").problem], [{ value: 0.0009 }, "must be a number > 0, or empty"], "a minus as typesetters have it");
  assert.deepEqual(editsOf("optimizer.lr=9e−4", [LR]).problems, []);
  assert.deepEqual(read(ROWS, "1_024"), { value: 1024 });
  assert.deepEqual(read(ROWS, "1,024"), { value: 1024 });
  assert.deepEqual(read(ROWS, "12,345,678"), { value: 12345678 });
  for (const decimal of ["0,001", "0,5", "1,5", "1,0245"]) assert.ok(read(ROWS, decimal).problem && read(LR, decimal).problem, decimal);
  for (const wrong of ["0", "-1", "101", "1e", "abc", "", "0x10", "1 2", "Infinity", "NaN"]) {
    assert.equal(read(LR, wrong).problem, "must be a number > 0 and ≤ 100", wrong);
  }
  assert.match(read(ROWS, "3.5").problem, /a whole number ≥ 1, or a schedule as JSON/);
  assert.match(read(RATE, "1").problem, /> 0 and < 1/);
});

test("schedules, empty values, flags, lists and options", () => {
  assert.deepEqual(read(RATE, '{"kind": "linear"}'), { value: { kind: "linear" } });
  assert.deepEqual(read(RATE, "cosine"), { value: "cosine" }, "by its kind");
  assert.ok(read(RATE, '{"kind": ').problem);
  assert.ok(read(RATE, "[1]").problem);
  assert.deepEqual(read(CLIP, ""), { value: null });
  assert.deepEqual(read(FLAG, "false"), { value: false });
  assert.ok(read(FLAG, "no").problem);
  assert.deepEqual(read(AT, "[0.25, 0.5]"), { value: [0.25, 0.5] });
  assert.equal(read(OVER, "tokens").problem, "must be one of budget, steps");
});

test("words for people", () => {
  assert.equal(boundsInWords(LR), "> 0 and ≤ 100");
  assert.equal(legalInWords(CLIP), "a number > 0, or empty");
  assert.deepEqual([brief(null), brief(0.1), brief({ kind: "cosine" }), brief([1])], ["none", "0.1", "cosine schedule", "[1]"]);
});

test("edits of a fork by line", () => {
  const knobs = [LR, CLIP];
  assert.deepEqual(editsOf("", knobs), { edits: [], problems: [] });
  assert.deepEqual(editsOf("optimizer.lr=1e-4\n\n# why\n budget = 400 steps \noptimizer.clip_norm=", knobs), {
    edits: ["optimizer.lr=1e-4", "budget = 400 steps", "optimizer.clip_norm=null"],
    problems: [],
  });
  const { edits, problems } = editsOf("optimizer.lr=-1\nnonsense\n=3\nseed=1", knobs);
  assert.deepEqual(edits, ["seed=1"]);
  assert.equal(problems.length, 3);
  assert.match(problems[0], /^line 1: optimizer.lr must be a number > 0/);
  assert.match(problems[1], /^line 2: write PATH=VALUE/);
});

test("a fork begins at the step that the page shows, not at one saved since", () => {
  assert.equal(forkStep(NEWEST, [395, 97]), 395);
  assert.equal(forkStep("97", [395, 97]), 97);
  assert.equal(forkStep(NEWEST, []), null);
});
