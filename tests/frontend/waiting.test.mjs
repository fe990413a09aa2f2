// Which processes a run tells of, and who of them is named.

import assert from "node:assert/strict";
import { test } from "node:test";

import { sendingOf, waitingNames, waitsOf } from "../../workbench/jupyter/frontend/src/watch/views/waiting.js";

const colours = { run: (place) => `c${place}`, dash: () => [] };

function runOf(waits) {
  const names = Object.keys(waits);
  return { series: new Map(names.slice(1).map((name) => [name, {}])), others: ["loss", ...names], line: (name) => ({ x: [1, 2], y: waits[name], steps: [1, 2] }) };
}

test("processes are in the order of their numbers, whether their columns are here or not yet", () => {
  const run = runOf({ "waiting_ms/10": [1, 1], "waiting_ms/2": [1, 1], "waiting_ms/0": [1, 1] });
  assert.deepEqual(waitingNames(run), ["waiting_ms/0", "waiting_ms/2", "waiting_ms/10"]);
  assert.deepEqual(waitingNames({ series: new Map(), others: ["loss"] }), []);
});

test("the one that all others wait for is the slowest", () => {
  const told = (waits) => waitsOf(runOf(waits), "step", colours).map((line) => line.told);
  assert.deepEqual(told({ "waiting_ms/0": [20, 20], "waiting_ms/1": [0, 0], "waiting_ms/2": [10, 10] }), [
    "process 0 waits 20 ms (median), the fastest",
    "process 1 waits 0 ms (median), the slowest",
    "process 2 waits 10 ms (median)",
  ]);
  assert.deepEqual(told({ "waiting_ms/0": [0, 0] }), ["process 0 waits 0 ms (median)"]);
});

test("what is sent stands beside the step that it takes a share of", () => {
  const run = (values) => ({ line: (name) => (values[name] === undefined ? null : { y: [values[name]] }) });
  assert.equal(sendingOf(run({ sent_mib: 3, waited_ms: 12, step_ms: 100 })), "medians: each sends 3 MiB in a step; the first waits 12 ms for it, 12.0% of the step");
  assert.equal(sendingOf(run({ sent_mib: 3 })), "");
});
