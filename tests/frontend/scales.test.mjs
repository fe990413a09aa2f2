import assert from "node:assert/strict";
import { test } from "node:test";

import { axisRange, axisSize, inWindow, isTitled, outside, robustRange } from "../../workbench/jupyter/frontend/src/watch/scales.js";

/** A loss between 6 and 7 over 400 steps, some of them changed. */
function lossOf(changed = {}) {
  const y = Float64Array.from({ length: 400 }, (_, i) => 6.5 + 0.5 * Math.cos(i / 40) * Math.cos(i));
  for (const [i, value] of Object.entries(changed)) y[i] = value;
  return { x: Float64Array.from(y, (_, i) => i), y };
}

test("single spikes do not squeeze the rest, and are marked where they are", () => {
  const line = lossOf({ 100: 14.6, 250: 13, 300: -2 });
  const [low, high] = axisRange([line], "y", {});
  assert.ok(low > 5 && high < 8.2, `${low}..${high}`);
  assert.deepEqual(outside(line, [low, high]), [{ x: 100, above: true }, { x: 250, above: true }, { x: 300, above: false }]);
  assert.deepEqual(outside(line, [low, high], [200, 299]), [{ x: 250, above: true }]);
  const all = axisRange([line], "y", { all: true });
  assert.ok(all[0] < -2 && all[1] > 14.6, "every value where that is asked for");
});

test("a smoothed line counts where nothing measured stands beside it", () => {
  const line = lossOf();
  const bump = { ...line, y: Float64Array.from(line.y, (y, i) => (i === 100 ? 7.9 : y)), smooth: true };
  assert.deepEqual(axisRange([line, bump], "y", {}), axisRange([line], "y", {}));
  assert.ok(axisRange([bump], "y", {})[1] > 7.9);
});

test("the beginning of a curve that falls is in sight, and what it does now in any case", () => {
  const falls = Float64Array.from({ length: 60 }, (_, i) => 5 + 4 / (1 + i / 10));
  assert.deepEqual(robustRange(falls), [falls[59], falls[0]]);
  const diverged = lossOf(Object.fromEntries([396, 397, 398, 399].map((i) => [i, 14])));
  assert.ok(robustRange(diverged.y)[1] >= 14);
  const spikeAtTheEnd = lossOf({ 399: 14 });
  assert.ok(robustRange(spikeAtTheEnd.y)[1] < 8, "one step is not the present yet");
});

test("of few values one that is far out is left out, and of very few none", () => {
  assert.deepEqual(robustRange([7.1, 6.9, 14.6, 6.8, 6.7]), [6.7, 7.1]);
  assert.deepEqual(robustRange([10.4, 8, 7, 6.8, 6.75]), [6.75, 10.4], "a curve that falls");
  assert.deepEqual(robustRange([6.9, 6.8, 6.7, 6.7, 14, 14, 14]), [6.7, 14], "what it does now");
  assert.deepEqual(robustRange([7.1, 14.6, 6.8, 6.7]), [6.7, 14.6]);
});

test("few values are all shown, none give no range, and a logarithm takes what is above zero", () => {
  assert.deepEqual(robustRange([3, NaN, 9, 4]), [3, 9]);
  assert.equal(robustRange([NaN, Infinity]), null);
  assert.equal(robustRange([0, -1], true), null);
  const [low, high] = robustRange(lossOf({ 3: 0, 4: 1e9 }).y, true);
  assert.ok(low > 5 && high < 8);
});

test("typed limits hold, each by itself, and a window looks at what is in it", () => {
  const line = lossOf({ 100: 14.6 });
  assert.deepEqual(axisRange([line], "y", { low: 6.2, high: 6.8 }), [6.2, 6.8]);
  assert.equal(axisRange([line], "y", { low: 2 })[0], 2);
  assert.equal(axisRange([line], "y", { high: 20 })[1], 20);
  const [low, high] = axisRange([line], "y", { low: 50 });
  assert.ok(low === 50 && high > 50, "a limit typed for other data leaves an axis");
  assert.deepEqual([...inWindow({ x: [1, 2, 3, 4], y: Float64Array.of(1, 2, 3, 4) }, [2, 3])], [2, 3]);
  assert.deepEqual(axisRange([], "y", { zero: true }), [0, 1]);
});

test("each axis has the range of its own lines, and a level nearby is in sight", () => {
  const line = lossOf();
  const rate = { ...lossOf(), scale: "right", y: Float64Array.from(line.y, () => 0.4) };
  assert.ok(axisRange([line, rate], "y", {})[0] > 5);
  assert.deepEqual(axisRange([line, rate], "right", { zero: true, headroom: 1.6 }), [0, 0.4 * 1.6]);
  assert.ok(axisRange([line], "y", {}, [{ y: 5.8 }])[0] < 5.8);
  assert.ok(axisRange([line], "y", {}, [{ y: 1.2 }])[0] > 5);
});

test("a narrow plot keeps no more room beside it than its numbers take", () => {
  assert.equal(axisSize(250, 54, 21.3, 8), 34);
  assert.equal(axisSize(250, 54, 60, 8), 54);
  assert.equal(axisSize(700, 54, 21.3, 8), 54, "plots below one another begin at one place");
});

test("axes of a plot have titles where there is room", () => {
  assert.deepEqual([120, 169, 170, 600].map(isTitled), [false, false, true, true]);
});
