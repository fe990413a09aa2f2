// The words of the board.

import assert from "node:assert/strict";
import { test } from "node:test";

import { answerText, countsText, enterable, invitation, roomText } from "../../workbench/jupyter/frontend/src/board/panel.js";

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

test("what may be entered has ended well and has no entry", () => {
  const run = (id, status, heldout_loss = null) => ({ id, name: "mine", status, heldout_loss });
  const runs = [run("20260131-081500-a", "running"), run("20260131-081600-b", "finished", 3), run("20260131-081700-c", "stopped"), run("20260131-081800-d", "failed")];
  const found = (entries) => enterable([{ owner: "ada", runs }], { entries });
  assert.deepEqual(found([]).map(([, words]) => words), ["ada: mine, 3.000 (01-31 08:16)", "ada: mine, not scored (01-31 08:17)"]);
  assert.deepEqual(found([{ run: "20260131-081600-b" }]).map(([id]) => id), ["20260131-081700-c"]);
});

test("above the runs to enter stands where older ones are", () => {
  const owner = { owner: "ada", train: 0, wait: 0, ended: 1, runs: [{}] };
  assert.equal(invitation([owner], [["a", "a"]]), "a run that has ended…");
  assert.equal(invitation([{ ...owner, ended: 32 }], [["a", "a"]]), "a run that has ended; older ones: workbench enter…");
  assert.equal(invitation([], []), "no run has ended yet");
});
