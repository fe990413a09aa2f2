import assert from "node:assert/strict";
import { test } from "node:test";

import { axisTitle, faded, faint, helpOf, isShare, markOf, palette, placesOf, watchedRuns, X_TITLES } from "../../workbench/jupyter/frontend/src/palette.js";

test("a run keeps its place while others come and go, and a free one is taken again", () => {
  assert.deepEqual(placesOf(["a", "b"]), { a: 0, b: 1 });
  assert.deepEqual(placesOf(["b", "c", "d"], { a: 0, b: 1 }), { b: 1, c: 0, d: 2 });
  assert.deepEqual(placesOf([], { a: 0 }), {});
});

test("a table elsewhere on the page learns which line a run is drawn as", () => {
  const page = {};
  const runs = watchedRuns(page);
  assert.equal(watchedRuns(page), runs, "one for all bundles");
  let heard = 0;
  runs.listeners.add(() => (heard += 1));
  runs.tell("view", { a: 0, b: 3 });
  assert.deepEqual(runs.markOf("b", ["a", "b"]), markOf(3));
  assert.equal(runs.markOf("c", ["c"]), null);
  runs.tell("other", { b: 1 });
  assert.deepEqual(runs.markOf("b", ["b"]), markOf(1), "of two views the one of this Lab");
  assert.deepEqual(runs.markOf("b", ["a", "b"]), markOf(3));
  assert.equal(runs.markOf("b", ["a"]), null, "drawn by another Lab alone");
  assert.equal(runs.markOf("b", []), null);
  runs.tell("other", null);
  runs.tell("view", null);
  assert.deepEqual([runs.markOf("b", ["b"]), heard], [null, 4]);
});

test("what was measured is seen behind its smoothed line, as faint in dark as in light", () => {
  const channel = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = (rgb) => rgb.map(channel).reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = { true: [33, 33, 33], false: [255, 255, 255] };
  const contrast = (place, runs, dark) => {
    const [r, g, b, opacity] = faded(markOf(place).stroke, faint(runs, dark)).match(/[\d.]+/g).map(Number);
    const mixed = [r, g, b].map((value, i) => opacity * value + (1 - opacity) * ground[dark][i]);
    const [low, high] = [luminance(mixed), luminance(ground[dark])].sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05);
  };
  for (const runs of [1, 4]) {
    const [dark, light] = [true, false].map((ground) => Array.from({ length: 8 }, (_, place) => contrast(place, runs, ground)));
    assert.ok(Math.min(...dark, ...light) > 1.19, `${runs} seen: ${dark} ${light}`);
    const [inDark, inLight] = [dark, light].map((all) => all.reduce((sum, each) => sum + each) / all.length);
    assert.ok(Math.abs(inDark - inLight) < 0.1, `${runs} alike: ${inDark} ${inLight}`);
  }
});

test("axes say their unit or what they show, and every quantity what it is", () => {
  assert.deepEqual(["loss", "tokens_per_second", "memory_gib", "lr", "processor_share", "depth.own_knob"].map(axisTitle), ["nats", "tokens/s", "GiB", "learning rate", "share of a processor that training has", "depth.own_knob"]);
  assert.deepEqual([isShare("processor_share"), isShare("lr"), isShare("depth.own_knob")], [true, false, false]);
  assert.match(helpOf("grad_norm"), /before it is clipped/);
  assert.match(helpOf("depth.own_knob"), /a knob of the recipe/);
  assert.deepEqual(X_TITLES, { step: "optimizer steps", tokens: "tokens", seconds: "time of training", flops: "useful FLOPs" });
});

test("a run watched alone is a solid line in its colour", () => {
  assert.deepEqual([palette(false).dash(1), palette(false, true).dash(1)], [[9, 4], []]);
  assert.equal(palette(false, true).run(1), palette(false).run(1));
});
