import assert from "node:assert/strict";
import { test } from "node:test";

import { endQuestion } from "../../workbench/jupyter/frontend/src/watch/end_question.js";

test("whoever cancels an experiment is told before that it is for good, and what stays", () => {
  const { text, yes } = endQuestion({ noun: "race", title: "Race deep or wide" });
  assert.match(text, /^Cancel Race deep or wide for good\? .* What it has found so far stays, but it cannot be resumed\.$/);
  assert.equal(yes, "Cancel this race");
});
