import assert from "node:assert/strict";
import { test } from "node:test";

import { Column, extremes, interpolate, join, lowerBound, rowOf, smooth } from "../../workbench/jupyter/frontend/src/watch/series.js";

test("a column grows and keeps its values", () => {
  const column = new Column([1, 2]);
  column.append(Float64Array.from({ length: 1000 }, (_, i) => i));
  assert.equal(column.length, 1002);
  assert.equal(column.last, 999);
  assert.deepEqual([...column.view().slice(0, 4)], [1, 2, 0, 1]);
});

test("decimation keeps ends, order and every bucket's extremes", () => {
  const xs = Float64Array.from({ length: 50000 }, (_, i) => i);
  const ys = xs.map((x) => Math.sin(x / 3000) + (x === 31234 ? 9 : 0) - (x === 777 ? 9 : 0));
  const keep = extremes(xs, ys, 400);
  assert.ok(keep.length <= 400);
  assert.equal(keep[0], 0);
  assert.equal(keep.at(-1), 49999);
  assert.ok(keep.includes(31234) && keep.includes(777));
  for (let i = 1; i < keep.length; i++) assert.ok(keep[i] > keep[i - 1]);
});

test("decimation leaves short lines alone and drops NaN", () => {
  assert.deepEqual(extremes([1, 2, 3, 4], [5, NaN, 6, 7], 10), [0, 2, 3]);
  assert.deepEqual(extremes([], [], 10), []);
});

test("decimation of equal x does not divide by zero", () => {
  const keep = extremes(new Float64Array(100), Float64Array.from({ length: 100 }, (_, i) => i), 10);
  assert.ok(keep.length <= 10 && keep.at(-1) === 99);
});

test("interpolation follows the clock and holds it outside", () => {
  const out = interpolate([0, 5, 10, 15, 99], [5, 10, 20], [1, 2, 6]);
  assert.deepEqual([...out], [1, 1, 2, 4, 6]);
  assert.ok(Number.isNaN(interpolate([1], [], [])[0]));
});

test("lowerBound finds the first element that is not below", () => {
  assert.deepEqual([0, 1, 1.5, 4, 9].map((x) => lowerBound([1, 2, 4], x)), [0, 0, 1, 2, 3]);
});

test("smoothing equals the written-out weighted mean", () => {
  const xs = [0, 1, 4, 5, 9];
  const ys = [3, 1, 2, 8, 4];
  const width = 2;
  const expected = xs.map((x, i) => {
    const part = (ks) => ks.reduce(([s, w], k) => [s + Math.exp(-Math.abs(x - xs[k]) / width) * ys[k], w + Math.exp(-Math.abs(x - xs[k]) / width)], [0, 0]);
    const indices = [...xs.keys()];
    const [before, after] = [part(indices.filter((k) => k < i)), part(indices.filter((k) => k > i))];
    const share = after[1] > before[1] ? before[1] / after[1] : 1;
    return (ys[i] + before[0] + share * after[0]) / (1 + before[1] + share * after[1]);
  });
  smooth(xs, ys, width).forEach((y, i) => assert.ok(Math.abs(y - expected[i]) < 1e-12, `${i}`));
  assert.equal(smooth(xs, ys, width)[0], 3, "the first has nothing before it to be weighed against");
});

test("smoothing does not lag behind a line that falls", () => {
  const xs = Float64Array.from({ length: 400 }, (_, i) => i);
  const out = smooth(xs, xs.map((x) => 10 - x / 50), 8);
  for (let i = 60; i < 340; i++) assert.ok(Math.abs(out[i] - (10 - i / 50)) < 1e-3, `${i}: ${out[i]}`);
});

test("smoothing a constant gives it back, and NaN does not spread", () => {
  assert.deepEqual([...smooth([0, 1, 2], [4, 4, 4], 10)], [4, 4, 4]);
  assert.deepEqual([...smooth([0, 1, 2], [4, NaN, 4], 10)], [4, 4, 4]);
  assert.deepEqual([...smooth([0, 1, 2], [1, 2, 3], 0)], [1, 2, 3]);
  assert.ok(Number.isNaN(smooth([0], [NaN], 1)[0]));
});

test("joining keeps gaps apart from missing samples", () => {
  const [x, a, b] = join([
    { x: [1, 3], y: [10, NaN] },
    { x: [2, 3], y: [20, 30] },
  ]);
  assert.deepEqual([...x], [1, 2, 3]);
  assert.deepEqual(a, [10, undefined, null]);
  assert.deepEqual(b, [undefined, 20, 30]);
});

test("a line is told of from its first sample to its last one", () => {
  const column = [undefined, 5, undefined, null, undefined, 6, undefined];
  assert.deepEqual(column.map((_, row) => rowOf(column, row)), [null, 1, 1, 3, 3, 5, null]);
  assert.equal(rowOf(column, null), null);
});
