import assert from "node:assert/strict";
import { test } from "node:test";

import { axisOf, whyNoLog } from "../../workbench/ui/frontend/src/watch/views/axis_menu.js";

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
