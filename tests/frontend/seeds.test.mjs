import assert from "node:assert/strict";
import { test } from "node:test";

import { looksText, seedsOf } from "../../workbench/jupyter/frontend/src/lab/seeds.js";

test("seeds are whole and in their bounds", () => {
  assert.deepEqual(seedsOf("6", 100), { seeds: 6 });
  for (const text of ["", "1", "101", "2.5", "six"]) assert.match(seedsOf(text, 100).error, /from 2 to 100/, text);
});

test("a race may end early only after fewer seeds than it has", () => {
  assert.equal(looksText(2, [4, 6, 10]), "judged once, after all of them");
  assert.equal(looksText(4, [4, 6, 10]), "judged once, after all of them");
  assert.match(looksText(6, [4, 6, 10]), /ends after 4 where/);
  assert.match(looksText(10, [4, 6, 10]), /ends after 4 or 6 where/);
});
