import assert from "node:assert/strict";
import { test } from "node:test";

import { duration, loss, percent, queueSentence, queueText, secondsLeft, shareDone, short, progressText, took, xValue } from "../../workbench/jupyter/frontend/src/format.js";
import { niceTicks, padded, timeTicks } from "../../workbench/jupyter/frontend/src/watch/scales.js";

test("numbers read as people write them", () => {
  assert.deepEqual([0, 7, 0.25, 12.34, 123.4, 12345, 999999, 4.2e9, 5e-4, -2.5, null, NaN].map(short), [
    "0", "7", "0.25", "12.3", "123", "12.3k", "1M", "4.2B", "5e-4", "-2.5", "–", "–",
  ]);
  assert.deepEqual([3.14159, null, Infinity].map(loss), ["3.142", "–", "Infinity"]);
  assert.deepEqual([0, 0.00996, 0.0123, 0.168, 0.29, 0.9999, 1, null].map(shareDone), ["0%", "0.99%", "1%", "16%", "29%", "99%", "100%", "–"]);
  assert.deepEqual([0, 0.0123, 0.456, 1, null].map(percent), ["0%", "1.23%", "45.6%", "100%", "–"]);
  assert.equal(short(Infinity), "∞");
});

test("durations keep two units at most", () => {
  assert.deepEqual([4.4, 60, 200, 3540, 7500, 190000, null].map(duration), [
    "4 s", "1 min", "3 min 20 s", "59 min", "2 h 05 min", "2 d 4 h", "–",
  ]);
});

test("time left is no guess", () => {
  assert.equal(secondsLeft({ seconds: 10, progress: 0.25 }), 30);
  assert.equal(secondsLeft({ seconds: 10, progress: 0.001 }), null);
  assert.equal(secondsLeft({ seconds: 10, progress: 1 }), null);
});

test("a fork says which of its seconds it trained itself, and which others count", () => {
  assert.deepEqual(took({ seconds: 129, seconds_before: 103 }), {
    text: "took 26 s",
    title: "in its own training; its steps, tokens and seconds of training count from the beginning of the run that it goes on from: 129.0 s",
  });
  assert.deepEqual(took({ seconds: 26 }), { text: "took 26 s", title: "" });
});

test("where a run stands depends on what its budget counts", () => {
  const status = { step: 1200, progress: 0.456 };
  assert.equal(progressText({ status, budget: { amount: 3000, unit: "steps" } }), "1,200 / 3,000 steps");
  assert.equal(progressText({ status, budget: { amount: 90, unit: "seconds" } }), "step 1,200 · 45% of 1 min 30 s");
  assert.equal(progressText({ status, budget: { amount: 2e6, unit: "tokens" } }), "step 1,200 · 45% of 2M tokens");
  assert.equal(progressText({ status, budget: null }), "step 1,200");
  assert.equal(xValue(5000, "tokens"), "5k tokens");
});

test("a place in the queue is said with its start, short and whole", () => {
  const waits = { queue_position: 12, expected_start_seconds: 300 };
  assert.deepEqual([queueText(waits), queueSentence(waits)], ["12th, in 5 min", "queued, 12th in line, expected to start in 5 min"]);
  const unknown = { queue_position: 2, expected_start_seconds: null };
  const next = { queue_position: 1, expected_start_seconds: 0 };
  assert.deepEqual([queueText(next), queueSentence(next)], ["1st, soon", "queued, 1st in line, expected to start within a minute"]);
  assert.deepEqual([queueText(unknown), queueSentence(unknown)], ["2nd in line", "queued, 2nd in line, when it starts is not known"]);
  assert.deepEqual([queueText({}), queueSentence({})], ["", "queued"]);
});

test("ticks are round numbers within the range", () => {
  assert.deepEqual(niceTicks(0, 1000, 5), [0, 200, 400, 600, 800, 1000]);
  assert.deepEqual(niceTicks(5.1, 10.4, 5), [6, 8, 10]);
  assert.deepEqual(niceTicks(3, 3, 5), [3]);
  assert.deepEqual(niceTicks(0, 0.3, 3), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(timeTicks(0, 200, 4), [0, 60, 120, 180]);
});

test("ranges have air on both sides", () => {
  const [low, high] = padded(2, 10, false);
  assert.ok(low < 2 && high > 10);
  const [bottom, top] = padded(2, 10, true);
  assert.ok(bottom > 0 && bottom < 2 && top > 10);
  assert.deepEqual(padded(NaN, NaN, false), [0, 1]);
});
