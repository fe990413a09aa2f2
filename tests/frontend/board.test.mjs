// The words of the board.

import assert from "node:assert/strict";
import { test } from "node:test";

import { answerText, countsText, roomText } from "../../workbench/jupyter/frontend/src/board/panel.js";

const owner = (more) => ({ owner: "ada", train: 0, wait: 0, ended: 0, lost: 0, ...more });

test("a room in a line, and an empty one in none", () => {
  assert.equal(roomText([owner({ train: 1, wait: 2 }), owner({ ended: 3, lost: 1 })]), "2 owners: 1 training, 2 waiting, 3 ended (1 failed)");
  assert.equal(roomText([owner({ train: 1 })]), "1 owner: 1 training");
  assert.equal(roomText([]), "");
  assert.equal(countsText(owner({})), "");
});

test("an answer stands beside its outcome, right or by how much wrong", () => {
  const predicted = { value: "B", outcome: "A", right: false, error: null };
  assert.deepEqual(answerText(predicted, ""), ["B → A, wrong", "bad"]);
  assert.deepEqual(answerText({ ...predicted, outcome: "B", right: true }, ""), ["B → B, right", "good"]);
  assert.deepEqual(answerText({ ...predicted, outcome: null }, ""), ["B", ""]);
  assert.deepEqual(answerText({ value: 3, outcome: 2.5, right: null, error: 0.5 }, "nats"), ["3 nats → 2.5, 0.5 too high", ""]);
  assert.deepEqual(answerText({ tries: 2, right: true }, ""), ["right at try 2", "good"]);
  assert.deepEqual(answerText({ tries: 1, right: false }, ""), ["not right yet, after 1 answer", "bad"]);
  assert.deepEqual(answerText(null, ""), ["", ""]);
});
