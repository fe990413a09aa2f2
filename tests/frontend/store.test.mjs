import assert from "node:assert/strict";
import { test } from "node:test";

import { Store } from "../../workbench/jupyter/frontend/src/store.js";
import { block, delta, snapshot } from "./block.mjs";

const values = (store, name = "loss") => [...store.runs[0].series.get(name).values.view()];
const steps = (store, name = "loss") => [...store.runs[0].series.get(name).steps.view()];

test("a snapshot and deltas in order give the whole curve", () => {
  const store = new Store();
  assert.deepEqual(store.receive(...snapshot(4, [9, 8, 7]), 0), { changed: true, resync: false });
  assert.deepEqual(store.receive(...delta(5, 3, [6, 5]), 1), { changed: true, resync: false });
  assert.deepEqual(store.receive(...delta(6, 5, [4]), 2), { changed: true, resync: false });
  assert.deepEqual(values(store), [9, 8, 7, 6, 5, 4]);
  assert.deepEqual(steps(store), [1, 2, 3, 4, 5, 6]);
  assert.equal(store.runs[0].clock.tokens.last, 6 * 4096);
});

test("a repeated message changes nothing", () => {
  const store = new Store();
  store.receive(...snapshot(4, [9, 8]), 0);
  store.receive(...delta(5, 2, [7]), 0);
  assert.deepEqual(store.receive(...delta(5, 2, [7]), 0), { changed: false, resync: false });
  assert.deepEqual(values(store), [9, 8, 7]);
});

test("a delta before any snapshot is not drawn", () => {
  const store = new Store();
  assert.equal(store.receive(...delta(1, 0, [5]), 0).changed, false);
  assert.equal(store.runs.length, 0);
});

test("a gap asks for one resync at a time, and again when no answer came", () => {
  const store = new Store();
  store.receive(...snapshot(1, [9]), 0);
  assert.equal(store.receive(...delta(3, 2, [7]), 100).resync, true);
  assert.equal(store.receive(...delta(4, 3, [6]), 200).resync, false);
  assert.equal(store.receive(...delta(5, 4, [5]), 3900).resync, false);
  assert.equal(store.receive(...delta(6, 5, [4]), 4200).resync, true);
  assert.deepEqual(values(store), [9]);
  store.receive(...snapshot(7, [9, 8, 7, 6, 5, 4]), 4300);
  assert.equal(store.waiting, false);
  assert.equal(store.receive(...delta(8, 6, [3]), 4400).changed, true);
  assert.deepEqual(values(store), [9, 8, 7, 6, 5, 4, 3]);
});

test("a beat that is ahead of us betrays a lost message", () => {
  const store = new Store();
  store.receive(...snapshot(1, [9]), 0);
  assert.deepEqual(store.receive({ type: "beat", cursor: "c1" }, undefined, 5), { changed: false, resync: false });
  assert.deepEqual(store.receive({ type: "beat", cursor: "c2" }, undefined, 5), { changed: false, resync: true });
});

test("a snapshot replaces what a rewound run had said", () => {
  const store = new Store();
  store.receive(...snapshot(1, [9, 8, 7, 6]), 0);
  store.receive(...snapshot(2, [9, 8]), 0);
  assert.deepEqual(values(store), [9, 8]);
});

test("sparse scalars keep their own steps", () => {
  const store = new Store();
  store.receive(...snapshot(1, [9, 8]), 0);
  const [header] = delta(2, 2, [7, 6], { dense: [0], sparse: [[1, 1, 1]] });
  const columns = [
    Int32Array.of(3, 4),
    Float32Array.of(1.5, 2),
    Float64Array.of(3, 4),
    Float32Array.of(3e9, 4e9),
    Float32Array.of(7, 6),
    Int32Array.of(4),
    Float32Array.of(6.5),
  ];
  store.receive(header, block(...columns), 0);
  assert.deepEqual(steps(store, "heldout_loss"), [4]);
  assert.deepEqual(values(store, "heldout_loss"), [6.5]);
});

test("heat-map columns arrive with one vector per record", () => {
  const store = new Store();
  store.receive(...snapshot(1, [9]), 0);
  const header = { type: "delta", since: "c1", cursor: "c2", runs: [{ i: 0, columns: 2 }] };
  const state = Uint8Array.of(0, 1, 3, 0, 0, 255);
  const norms = Float32Array.of(1, NaN, NaN, 2, 3, 4);
  store.receive(header, block(Int32Array.of(10, 20), state, norms), 0);
  const { layers } = store.runs[0];
  assert.deepEqual([...layers.steps.view()], [10, 20]);
  assert.deepEqual(layers.values.get("state").map((v) => [...v]), [[0, 1, 3], [0, 0, 255]]);
  assert.deepEqual([...layers.values.get("grad_norm")[1]], [2, 3, 4]);
});

test("a status change keeps what it does not name", () => {
  const store = new Store();
  store.receive(...snapshot(1, [9]), 0);
  store.receive({ type: "delta", since: "c1", cursor: "c2", runs: [{ i: 0, status: { status: "paused" } }] }, block(), 0);
  assert.equal(store.runs[0].status.status, "paused");
  assert.equal(store.runs[0].status.step, 1);
});

test("silence is noticed only while a run is under way", () => {
  const store = new Store();
  store.receive(...snapshot(1, [9]), 1000);
  assert.equal(store.silentSince(5000), null);
  assert.equal(store.silentSince(20000), 1000);
  store.receive({ type: "beat", cursor: "c1" }, undefined, 19000);
  assert.equal(store.silentSince(20000), null);
  store.receive({ type: "delta", since: "c1", cursor: "c2", runs: [{ i: 0, status: { status: "finished" } }] }, block(), 19000);
  assert.equal(store.silentSince(90000), null);
});

test("a saved snapshot is shown until the kernel answers, and never over live data", () => {
  const [header, data] = snapshot(7, [3, 2]);
  const text = new TextEncoder().encode(JSON.stringify(header).padEnd(4 + 8 * 200));
  const sealed = new Uint8Array(4 + text.length + data.byteLength);
  new DataView(sealed.buffer).setUint32(0, text.length, true);
  sealed.set(text, 4);
  sealed.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), 4 + text.length);
  const store = new Store();
  assert.equal(store.restore(new DataView(sealed.buffer), 0), true);
  assert.deepEqual(values(store), [3, 2]);
  assert.equal(store.live, false);
  store.receive(...snapshot(1, [9]), 0);
  assert.deepEqual(values(store), [9], "the kernel knows better");
  assert.equal(store.restore(new DataView(sealed.buffer), 0), false);
  assert.equal(store.restore(undefined, 0), false);
});

test("a page open for days does not grow", () => {
  const store = new Store();
  store.receive(...snapshot(0, [9]), 0);
  for (let i = 0; i < 100; i++) {
    const losses = Array.from({ length: 1000 }, (_, k) => Math.sin(i * 1000 + k) + (i === 30 && k === 7 ? 50 : 0));
    store.receive(...delta(i + 1, 1 + i * 1000, losses), 0);
  }
  const series = store.runs[0].series.get("loss");
  assert.ok(series.length <= 25000, `${series.length}`);
  assert.ok(Math.max(...series.values.view()) > 49, "a spike survives");
  assert.equal(series.steps.last, 100001);
});

test("a run that has ended is asked for again where a plot wants what is not there, and no kernel answers", () => {
  const store = new Store();
  const [header, data] = snapshot(1, [9]);
  header.runs[0].others = ["memory_gib", "step_ms"];
  store.receive(header, data, 0, "");
  store.runs[0].status.status = "finished";
  assert.equal(store.needsServer(100000, []), false, "all of it is told");
  assert.equal(store.needsServer(100000, ["memory_gib"]), true);
  assert.equal(store.needsServer(100000, ["accuracy"]), false, "it was never recorded");
});
