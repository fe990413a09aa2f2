import assert from "node:assert/strict";
import { test } from "node:test";

import { Clock } from "../../workbench/jupyter/frontend/src/watch/series.js";
import { followed, limited, panned, translated, zoomed } from "../../workbench/jupyter/frontend/src/watch/window.js";

const ALL = [0, 1000];

test("zooming keeps the place under the pointer", () => {
  assert.deepEqual(zoomed(null, ALL, 0.5, 200), [100, 600]);
  const [from, to] = zoomed([100, 600], ALL, 0.5, 300);
  assert.deepEqual([from, to], [200, 450]);
  assert.equal((300 - from) / (to - from), (300 - 100) / 500);
});

test("zooming out ends with everything", () => {
  assert.equal(zoomed([100, 900], ALL, 2, 500), null);
  assert.deepEqual(zoomed([0, 100], ALL, 2, 0), [0, 200]);
  assert.equal(zoomed([0, 1], null, 2, 0), null);
});

test("panning stops at both ends and keeps the width", () => {
  assert.deepEqual(panned([100, 200], ALL, 0.5), [150, 250]);
  assert.deepEqual(panned([100, 200], ALL, -5), [0, 100]);
  assert.deepEqual(panned([100, 200], ALL, 50), [900, 1000]);
  assert.equal(panned(null, ALL, 1), null, "everything is in sight already");
});

test("a drag either way is a window, a drag of nothing is none that is empty", () => {
  assert.deepEqual(limited([700, 300], ALL), [300, 700]);
  assert.deepEqual(limited([-50, 300], ALL), [0, 300]);
  const [from, to] = limited([500, 500], ALL);
  assert.ok(to > from && to - from < 0.01);
});

test("a window at the end of the run goes on with it, another one stays", () => {
  assert.deepEqual(followed([900, 1000], ALL, [0, 1010]), [910, 1010]);
  assert.deepEqual(followed([100, 200], ALL, [0, 1010]), [100, 200]);
  assert.equal(followed(null, ALL, [0, 1010]), null);
  assert.deepEqual(followed([900, 1000], ALL, [0, 800]), [900, 1000], "a rewound run");
});

test("another axis shows the same stretch of the run", () => {
  const clock = new Clock();
  clock.append({ step: [0, 10, 20], seconds: [0, 1, 101], tokens: [0, 100, 300], flops: [NaN, NaN, NaN] });
  assert.deepEqual([...translated([10, 20], clock, "step", "seconds")], [1, 101]);
  assert.deepEqual([...translated([100, 200], clock, "tokens", "step")], [10, 15]);
  assert.equal(translated([10, 20], clock, "step", "flops"), null);
  assert.equal(translated(null, clock, "step", "tokens"), null);
});
