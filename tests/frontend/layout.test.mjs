import assert from "node:assert/strict";
import { test } from "node:test";

import { Layout, readable } from "../../workbench/jupyter/frontend/src/watch/layout.js";
import { wholeRows } from "../../workbench/jupyter/frontend/src/watch/pane.js";

/** What a browser's storage does, and can refuse. */
function storage(held = {}) {
  return { held, getItem: (key) => held[key] ?? null, setItem: (key, value) => (held[key] = value) };
}

test("a layout is there again when the page is opened anew", () => {
  const browser = storage();
  const layout = new Layout(browser);
  layout.set({ x: "tokens", main: 55 });
  layout.setHeight("loss", 340.4);
  layout.setHeight("speed", 5);
  layout.setOpen("events", false);
  layout.setPlot("loss", { axis: { log: true } });
  layout.setPlot("loss", { table: true });
  const again = new Layout(browser);
  assert.deepEqual(again.now, { x: "tokens", main: 55, closed: ["events"], heights: { loss: 340, speed: 120 }, plots: { loss: { axis: { log: true }, table: true } } });
  again.setHeight("loss", null);
  again.setOpen("events", true);
  again.reset();
  assert.deepEqual(new Layout(browser).now, readable(null));
});

test("layouts are saved under names, applied and deleted", () => {
  const browser = storage();
  const layout = new Layout(browser);
  layout.set({ x: "seconds" });
  assert.equal(layout.save("  my view "), "my view");
  assert.equal(layout.save("   "), "");
  layout.set({ x: "flops", closed: ["speed"] });
  const again = new Layout(browser);
  assert.deepEqual(again.names, ["my view"]);
  again.apply("my view");
  assert.deepEqual([again.now.x, again.now.closed], ["seconds", []]);
  again.remove("my view");
  assert.deepEqual(new Layout(browser).names, []);
});

test("what is damaged, or not ours, is as at first", () => {
  const nonsense = { x: "moon", main: 900, closed: ["loss", "layers", "speed", "scalar", "events"], heights: { loss: "tall", moon: 200 }, plots: { loss: 3 } };
  assert.deepEqual(readable(nonsense), readable(null), "a view without any plot could not be mended");
  assert.deepEqual(new Layout(storage({ "workbench.watch.layout": "{" })).now, readable(null));
  assert.deepEqual(new Layout(null).now, readable(null));
  const full = { getItem: () => null, setItem: () => { throw new Error("full"); } };
  const layout = new Layout(full);
  layout.set({ x: "tokens" });
  assert.equal(layout.now.x, "tokens", "for as long as the page is open");
});

test("a table of watched runs ends with a whole row, and shows four runs whole", () => {
  const bottoms = (count) => Array.from({ length: count }, (_, i) => 20 + 25 * (i + 1));
  assert.equal(wholeRows(bottoms(4), 108), 120);
  assert.equal(wholeRows(bottoms(6), 108), 95);
  assert.equal(wholeRows(bottoms(6), 130), 120);
  assert.equal(wholeRows(bottoms(6), 60), 95, "three in however little room");
  assert.equal(wholeRows(bottoms(2), 400), 70);
  assert.equal(wholeRows([], 100), 0);
});
