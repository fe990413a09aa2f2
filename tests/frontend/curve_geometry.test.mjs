import assert from "node:assert/strict";
import { test } from "node:test";

import {
  brief, heightAt, keyed, line, numeral, placeWords, reaches, snapped, ticks, valueWords,
} from "../../workbench/jupyter/frontend/src/compose/curve_geometry.js";

const x = { low: 0, high: 1, over: "budget", end: 1, budget: [200, "steps"] };
const y = { low: 0, high: 1.25, least: 0, log: false, whole: false, unit: "× lr" };
const rows = { low: 4, high: 1024, least: 4, log: true, whole: true, unit: "rows" };
const points = [[0, 0], [0.5, 1], [0.5, 3], [1, 2]];

test("an axis goes to pixels and back, linear and logarithmic", () => {
  for (const axis of [y, rows]) {
    const scale = line(axis);
    for (const part of [0, 0.5, 1]) assert.ok(Math.abs(scale.to(scale.from(part)) - part) < 1e-12);
  }
  assert.ok(Number.isFinite(line({ low: 3, high: 3 }).to(3)));
});

test("ticks are round, within the axis, and few", () => {
  assert.deepEqual(ticks(x, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks({ low: 1e-3, high: 0.1, log: true }, 5), [1e-3, 0.01, 0.1]);
  assert.deepEqual(ticks({ low: 2, high: 2 }, 4), [2]);
  for (const high of [0.013, 3, 47, 12345]) {
    const found = ticks({ low: 0, high }, 4);
    assert.ok(found.length >= 2 && found.length <= 6, `${high}: ${found}`);
  }
});

test("a hand stops at round values, between the neighbours", () => {
  assert.deepEqual(reaches(points, 1, { x, y }), [[0, 0.5], [0, 1.25]]);
  assert.deepEqual(reaches(points, 3, { x, y })[0], [0.5, 1]);
  assert.equal(snapped(0.1034, x), 0.105);
  assert.equal(snapped(2, x, [0, 0.99]), 0.99);
  assert.equal(snapped(117, rows), 120);
  assert.equal(snapped(3.7, { low: 0, high: 20, whole: true }), 4);
});

test("arrow keys move by a step, with shift by ten", () => {
  const own = [[0.1, 1], [0.99, 1]];
  assert.deepEqual(keyed(own, 0, { x, y }, "ArrowRight", false), [0.11, 1]);
  assert.deepEqual(keyed(own, 0, { x, y }, "ArrowLeft", true), [0, 1]);
  assert.deepEqual(keyed(own, 0, { x, y }, "ArrowDown", true), [0.1, 0.9]);
  assert.deepEqual(keyed([[0, 100]], 0, { x, y: rows }, "ArrowUp", false), [0, 110]);
  assert.equal(keyed(own, 0, { x, y }, "b", false), null);
});

test("the curve's height between its samples and at a jump", () => {
  assert.deepEqual([0.25, 0.5, 0.75, 5].map((place) => heightAt(points, place)), [0.5, 3, 2.5, 2]);
});

test("places and values in words", () => {
  assert.equal(placeWords(0.1, x), "10% of the budget, 20 of 200 steps");
  assert.equal(placeWords(0.125, { ...x, budget: null }), "12.5% of the budget");
  assert.equal(placeWords(500, { over: "steps", end: 2000 }), "500 steps, 25% of the budget");
  assert.equal(valueWords(0.5, y), "0.5 × lr");
  assert.deepEqual([0.15, 1e-5, 12000, 0, 0.333333].map(numeral), ["0.15", "1e-5", "12,000", "0", "0.333"]);
  assert.deepEqual([950, 12000, 1.5e6].map(brief), ["950", "12k", "1.5M"]);
});
