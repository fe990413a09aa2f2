import assert from "node:assert/strict";
import { test } from "node:test";

import { columnsOfPixels, Layers, scaleOf } from "../../workbench/jupyter/frontend/src/watch/layers.js";

test("with more pixels than records, a record covers the stretch that led to it", () => {
  assert.deepEqual([...columnsOfPixels([0, 5, 10], 10, 0, 10)], [0, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
});

test("with more records than pixels, the last in a pixel wins", () => {
  const xs = Float64Array.from({ length: 100 }, (_, i) => i);
  assert.deepEqual([...columnsOfPixels(xs, 4, 0, 100)], [24, 49, 74, 99]);
});

test("beyond the last record there is nothing", () => {
  assert.deepEqual([...columnsOfPixels([0, 4], 4, 0, 8)], [0, 1, 1, -1]);
  assert.deepEqual([...columnsOfPixels([], 3, 0, 8)], [-1, -1, -1]);
  assert.deepEqual([...columnsOfPixels([1], 2, 5, 5)], [-1, -1]);
});

test("thinning keeps the later of each pair, for all quantities alike", () => {
  const layers = new Layers(2, ["state", "grad_norm"]);
  for (let i = 0; i < 4097; i++) {
    layers.append({ steps: [i], values: new Map([["state", Uint8Array.of(i % 4, 0)], ["grad_norm", Float32Array.of(i, i)]]) });
  }
  assert.equal(layers.length, 2048);
  assert.equal(layers.steps.data[0], 1);
  assert.equal(layers.values.get("grad_norm")[100][1], 201);
  assert.equal(layers.values.get("state").length, 2048);
});

test("a scale is logarithmic where the quantity is declared so", () => {
  const log = scaleOf([Float32Array.of(0.001, NaN, 0), Float32Array.of(0.1, 10)], true);
  assert.equal(log.log, true);
  assert.ok(Math.abs(log.place(0.1) - 0.5) < 1e-6);
  assert.ok(Number.isNaN(log.place(NaN)));
  assert.ok(Number.isNaN(log.place(0)), "a frozen layer's gradient is no colour");
  const linear = scaleOf([Float32Array.of(2, 4)]);
  assert.equal(linear.log, false);
  assert.equal(linear.place(3), 0.5);
  assert.equal(scaleOf([Float32Array.of(1, 1)]).place(1), 0.5);
  assert.ok(Number.isNaN(scaleOf([]).low));
});

test("steps of a quantity that is not in every record are told apart", () => {
  const layers = new Layers(2, ["keep", "attention_entropy"]);
  const entropy = Float32Array.of(3, NaN, NaN, NaN, NaN, 2);
  layers.append({ steps: [10, 20, 30], values: new Map([["keep", new Float32Array(6)], ["attention_entropy", entropy]]) });
  assert.deepEqual([...layers.measured("attention_entropy")], [10, 30]);
  assert.deepEqual([...layers.measured("keep")], [10, 20, 30]);
  layers.append({ steps: [40], values: new Map([["keep", new Float32Array(2)], ["attention_entropy", new Float32Array(2)]]) });
  assert.deepEqual([...layers.measured("attention_entropy")], [10, 30, 40]);
  assert.deepEqual([...layers.measured("trust_ratio")], []);
});
