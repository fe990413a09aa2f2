// The Data tab in words: pieces of documents, when a text is read, why a document was left out.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { lastStep, MARKS, pieceText, readText, removedText } from "../../workbench/jupyter/frontend/src/lab/data.js";

test("a piece says which part of which document it is", () => {
  const piece = { begin: 0, end: 10, document: 1234, offset: 0, size: 10, source: "wiki" };
  assert.equal(pieceText(piece), "document 1,234 (wiki), whole of 10");
  assert.equal(pieceText({ ...piece, offset: 5, size: 40, source: "" }), "document 1,234, tokens 5 to 14 of 40; it was cut, so positions start at 0 again");
});

test("a place says when it was read and will be", () => {
  const reading = (step, past) => ({ step, past });
  const place = { split: "train", readings: [reading(3, true), reading(1500, false)], times: 1, planned: 2 };
  assert.equal(readText(place), "read at step 3; to be read at step 1,500");
  assert.equal(readText({ ...place, readings: [1, 2, 3].map((step) => reading(step, true)), times: 9, planned: 9 }, 2), "read at step 1, 2 and 7 more");
  assert.equal(readText({ ...place, readings: [], times: 0, planned: 0 }), "not read: no step of this budget comes to it");
  assert.equal(readText({ ...place, split: "heldout" }), "never: models are scored on it");
});

test("a document that was left out says by which step and why", () => {
  const removed = { kind: "exact_duplicates", reason: "repeated", detail: "document 7", number: 50, sources: ["wiki", "a.jsonl"], text: "once more" };
  assert.equal(removedText(removed), "left out by step 'exact_duplicates' of the preparation, since repeated (document 7): document 50 of the corpus (wiki/a.jsonl), 'once more'");
  assert.match(removedText({ ...removed, sources: [] }), /document 50 of the corpus, 'once more'$/);
});

test("steps end with the budget, or where the run has come to", () => {
  assert.equal(lastStep([0, 30, 100]), 99);
  assert.equal(lastStep([0, 30, 0]), 29);
  assert.equal(lastStep([100, 100, 0]), 100);
});

test("marks mean what objectives say of them", () => {
  const python = readFileSync(new URL("../../workbench/choices/objectives/preview.py", import.meta.url), "utf8");
  const named = [...python.matchAll(/^ {4}"(\w+)": Mark\(/gm)].map(([, name]) => name);
  assert.deepEqual(["read", ...Object.keys(MARKS)].sort(), named.sort());
  for (const [mark, [, words]] of Object.entries(MARKS)) assert.ok(python.includes(`"${mark}": Mark("${words}"`), mark);
});
