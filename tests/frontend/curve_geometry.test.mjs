import assert from "node:assert/strict";
import { test } from "node:test";

import {
  brief, heightAt, held, keyed, keyStep, line, nudged, numeral, placeWords, roundStep, snapped, spread, ticks, valueWords,
} from "../../workbench/jupyter/frontend/src/compose/curve_geometry.js";

const share = { low: 0, high: 1, over: "budget", end: 1, budget: [200, "steps"] };
const factor = { low: 0, high: 1.25, log: false, grid: "any", unit: "× lr" };
const rows = { low: 4, high: 1024, log: true, grid: "sizes", unit: "rows" };

test("an axis goes to pixels and back, linear and logarithmic", () => {
  for (const axis of [factor, rows]) {
    const scale = line(axis);
    assert.ok(Math.abs(scale.to(axis.low)) < 1e-12);
    assert.ok(Math.abs(scale.to(axis.high) - 1) < 1e-12);
    for (const part of [0.1, 0.5, 0.9]) assert.ok(Math.abs(scale.to(scale.from(part)) - part) < 1e-12);
  }
  assert.ok(Math.abs(line(rows).from(0.5) - 64) < 1e-9);
  assert.ok(Number.isFinite(line({ low: 3, high: 3 }).to(3)));
});

test("steps are round and never larger than asked", () => {
  assert.deepEqual([0.0125, 0.01, 0.3, 7, 1000].map(roundStep), [0.01, 0.01, 0.2, 5, 1000]);
  assert.equal(keyStep(share), 0.01);
  assert.equal(keyStep({ low: 0, high: 160, grid: "whole" }), 1);
  assert.equal(keyStep({ low: 0, high: 20, grid: "whole" }), 1);
});

test("ticks are round, within the axis, and few", () => {
  assert.deepEqual(ticks(share, 4), [0, 0.5, 1]);
  assert.deepEqual(ticks(share, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(factor, 3), [0, 0.5, 1]);
  assert.deepEqual(ticks(rows, 4), [4, 32, 256]);
  assert.deepEqual(ticks({ low: 1e-5, high: 0.1, log: true, grid: "any" }, 5), [1e-5, 1e-4, 1e-3, 0.01, 0.1]);
  assert.deepEqual(ticks({ low: 2, high: 2 }, 4), [2]);
  for (const high of [0.013, 0.7, 3, 9.9, 47, 200, 12345]) {
    const found = ticks({ low: 0, high }, 4);
    assert.ok(found.length >= 2 && found.length <= 6, `${high}: ${found}`);
  }
});

test("a hand stops at round values, within reach", () => {
  assert.equal(snapped(0.1034, share, [0, 1]), 0.105);
  assert.equal(snapped(0.1034, share, [0.104, 1]), 0.105);
  assert.equal(snapped(2, share, [0, 0.99]), 0.99);
  assert.equal(snapped(117, rows, [1, 4096]), 128);
  assert.equal(snapped(100, rows, [1, 4096]), 96);
  assert.equal(snapped(0.2, rows, [1, 4096]), 1);
  assert.equal(snapped(3.7, { low: 0, high: 20, grid: "whole" }, [0, 20]), 4);
  assert.equal(snapped(0.0123, { low: 1e-4, high: 1, log: true, grid: "any" }, [0, 1]), 0.012);
});

test("keys move by a step, with shift by ten", () => {
  const handle = { x: 0.1, y: 1, x_reach: [0, 0.99], y_reach: [0, 1.25] };
  assert.deepEqual(keyed(handle, share, factor, "ArrowRight", false), { x: 0.11, y: 1 });
  assert.deepEqual(keyed(handle, share, factor, "ArrowLeft", true), { x: 0, y: 1 });
  assert.deepEqual(keyed(handle, share, factor, "ArrowDown", false), { x: 0.1, y: 0.99 });
  assert.deepEqual(keyed(handle, share, factor, "PageDown", false), { x: 0.1, y: 0.9 });
  assert.deepEqual(keyed(handle, share, factor, "PageDown", true), { x: 0.1, y: 0.9 });
  assert.deepEqual(keyed(handle, share, factor, "End", false), { x: 0.99, y: 1 });
  assert.deepEqual(keyed({ ...handle, x_reach: null }, share, factor, "Home", false), { x: 0.1, y: 0 });
  assert.equal(keyed({ ...handle, x_reach: null }, share, factor, "ArrowLeft", false), null);
  assert.equal(keyed(handle, share, factor, "b", false), null);
  assert.equal(keyed({ ...handle, y: 32, y_reach: [1, 4096] }, share, rows, "ArrowUp", false).y, 48);
  assert.equal(keyed({ ...handle, y: 32, y_reach: [1, 4096] }, share, rows, "ArrowUp", true).y, 64);
  assert.equal(keyed({ ...handle, y: 1, y_reach: [1, 4096] }, share, rows, "ArrowDown", false).y, 1);
  assert.equal(nudged(0.02, 1, { low: 1e-4, high: 1, log: true, grid: "any" }, [0, 1]), 0.021);
});

test("what cannot move stays under the hand", () => {
  const axes = { x: share, y: factor };
  assert.deepEqual(held({ x: 0, y: 1, x_reach: null, y_reach: [0, 1.25] }, axes, 0.4, 0.5), { x: 0, y: 0.5 });
  assert.deepEqual(held({ x: 0.1, y: 1, x_reach: [0, 1], y_reach: null }, axes, 0.4, 0.5), { x: 0.4, y: 1 });
});

test("handles on one place stand side by side within the plot", () => {
  const at = (x, y = 10) => ({ x, y });
  assert.deepEqual(spread([at(30), at(30), at(200)], 16, 300).map((p) => p.x), [30, 46, 200]);
  assert.deepEqual(spread([at(30), at(30), at(30)], 16, 300).map((p) => p.x), [30, 46, 62]);
  assert.deepEqual(spread([at(300, 10), at(300, 90)], 16, 300).map((p) => p.x), [300, 300], "one above the other");
  assert.deepEqual(spread([at(10), at(300), at(300)], 16, 300).map((p) => p.x), [10, 284, 300]);
});

test("the curve's height between its samples and at a jump", () => {
  const samples = [[0, 0], [0.5, 1], [0.5, 3], [1, 2]];
  assert.equal(heightAt(samples, 0.25), 0.5);
  assert.equal(heightAt(samples, 0.5), 3);
  assert.equal(heightAt(samples, 0.75), 2.5);
  assert.equal(heightAt(samples, 5), 2);
});

test("places and values in words", () => {
  assert.equal(placeWords(0.1, share), "10% of the budget, 20 of 200 steps");
  assert.equal(placeWords(0.125, { ...share, budget: null }), "12.5% of the budget");
  assert.equal(placeWords(500, { over: "steps", end: 2000 }), "500 steps, 25% of the budget");
  assert.equal(placeWords(1.5e6, { over: "tokens", end: null }), "1.5M tokens");
  assert.equal(valueWords(0.5, factor), "0.5 × lr");
  assert.deepEqual([0.15, 1e-5, 12000, -0.5, 0, 0.333333, 2.5e9].map(numeral), ["0.15", "1e-5", "12,000", "-0.5", "0", "0.333", "2.5e9"]);
  assert.deepEqual([950, 12000, 1.5e6].map(brief), ["950", "12k", "1.5M"]);
});
