import assert from "node:assert/strict";
import { test } from "node:test";

import { markOf, placesOf, watchedRuns } from "../../workbench/ui/frontend/src/palette.js";

test("a run keeps its place while others come and go, and a free one is taken again", () => {
  assert.deepEqual(placesOf(["a", "b"]), { a: 0, b: 1 });
  assert.deepEqual(placesOf(["b", "c", "d"], { a: 0, b: 1 }), { b: 1, c: 0, d: 2 });
  assert.deepEqual(placesOf([], { a: 0 }), {});
});

test("a table elsewhere on the page learns which line a run is drawn as", () => {
  const page = {};
  const runs = watchedRuns(page);
  assert.equal(watchedRuns(page), runs, "one for all bundles");
  let heard = 0;
  runs.listeners.add(() => (heard += 1));
  runs.tell("view", { a: 0, b: 3 });
  assert.deepEqual(runs.markOf("b", ["a", "b"]), markOf(3));
  assert.equal(runs.markOf("c", ["c"]), null);
  runs.tell("other", { b: 1 });
  assert.deepEqual(runs.markOf("b", ["b"]), markOf(1), "of two views the one of this Lab");
  assert.deepEqual(runs.markOf("b", ["a", "b"]), markOf(3));
  assert.equal(runs.markOf("b", ["a"]), null, "drawn by another Lab alone");
  assert.equal(runs.markOf("b", []), null);
  runs.tell("other", null);
  runs.tell("view", null);
  assert.deepEqual([runs.markOf("b", ["b"]), heard], [null, 4]);
});
