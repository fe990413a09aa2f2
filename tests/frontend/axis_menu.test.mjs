import assert from "node:assert/strict";
import { test } from "node:test";

import { axisOf, limitsOf, whyNoLog } from "../../workbench/jupyter/frontend/src/watch/views/axis_menu.js";

const AUTOMATIC = { log: false, all: false, low: null, high: null };

test("an axis with a limit at or below 0 does not become logarithmic", () => {
  assert.match(whyNoLog({ low: -1, high: null }), /above 0 only: From is -1$/);
  assert.match(whyNoLog({ low: null, high: 0 }), /above 0 only: To is 0$/);
  for (const limits of [AUTOMATIC, { low: 0.1, high: null }, { low: 1, high: 2 }]) assert.equal(whyNoLog(limits), "");
});

test("of an axis that a layout has kept, what cannot be is as at first", () => {
  assert.deepEqual(axisOf(undefined), AUTOMATIC);
  assert.deepEqual(axisOf({ log: "yes", all: 1, low: "3", high: NaN }), AUTOMATIC);
  assert.deepEqual(axisOf({ low: -1, high: 0 }), { ...AUTOMATIC, low: -1, high: 0 });
  assert.deepEqual(axisOf({ log: true, low: -1, high: 5 }), { log: true, all: false, low: null, high: 5 }, "a logarithm of it would be an empty plot");
});

test("a refused limit says why for as long as it is refused, and is taken once the other lets it", () => {
  const ten = { ...AUTOMATIC, high: 10 };
  const refused = limitsOf({ low: "20", high: "10" }, ten, "low");
  assert.deepEqual(refused, { axis: ten, wrong: { low: "From must be below To", high: "" } });
  const still = limitsOf({ low: "20", high: "12" }, refused.axis, "high");
  assert.deepEqual(still, { axis: { ...ten, high: 12 }, wrong: { low: "From must be below To", high: "" } });
  assert.deepEqual(limitsOf({ low: "20", high: "30" }, still.axis, "high"), { axis: { ...ten, low: 20, high: 30 }, wrong: { low: "", high: "" } });
  const words = limitsOf({ low: "20", high: "abc" }, still.axis, "high").wrong;
  assert.match(words.high, /"abc" is no number/);
  assert.equal(words.low, "From must be below To");
  assert.deepEqual(limitsOf({ low: "1,5", high: "" }, ten, "high").axis, { ...AUTOMATIC, low: 1.5 });
  assert.match(limitsOf({ low: "−1", high: "" }, { ...AUTOMATIC, log: true }).wrong.low, /above 0 only/);
});
