import assert from "node:assert/strict";
import { test } from "node:test";

import { seedsOf } from "../../workbench/ui/frontend/src/lab/seeds.js";

test("seeds are whole and in their bounds", () => {
  assert.deepEqual(seedsOf("6", 100), { seeds: 6 });
  for (const text of ["", "1", "101", "2.5", "six"]) assert.match(seedsOf(text, 100).error, /from 2 to 100/, text);
});
