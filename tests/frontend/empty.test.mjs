import assert from "node:assert/strict";
import { test } from "node:test";

import { emptyWords } from "../../workbench/jupyter/frontend/src/watch/views/empty.js";

const run = (name, status, more = {}) => ({ name, final: ["failed", "finished"].includes(status), status: { status, ...more } });
const words = "The loss will appear here.";

test("an empty plot of runs that wait says the place of the next one, and no more once one begins", () => {
  const waits = run("late", "queued", { queue_position: 3, expected_start_seconds: null });
  const next = run("soon", "queued", { queue_position: 2, expected_start_seconds: 65 });
  assert.equal(emptyWords([waits, next], words), `soon is queued, 2nd in line, expected to start in 1 min 5 s. ${words}`);
  assert.equal(emptyWords([next, run("now", "running")], words), words);
  assert.equal(emptyWords([next, run("now", "starting", { message: "compiling" })], words), `Now: compiling. ${words}`);
});

test("where nothing will come any more, it says why", () => {
  assert.equal(emptyWords([run("a", "failed", { error: "no text" })], words), "Nothing was recorded: no text");
  assert.equal(emptyWords([], words), "All runs are hidden: show one with the eye in its line.");
});
