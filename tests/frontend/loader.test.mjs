// A widget's code comes as text, and is loaded once per page.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.Blob = class {
  constructor([text]) {
    this.text = text;
  }
};
URL.createObjectURL = ({ text }) => `data:text/javascript,${encodeURIComponent(text)}`;
URL.revokeObjectURL = () => {};
const { default: make } = await import("../../workbench/jupyter/frontend/src/loader.js");

/** A model with the code of its widget. */
function model(code) {
  const state = { _code: code };
  return { get: (name) => state[name], set: (name, value) => (state[name] = value) };
}

test("two widgets of a kind share their code, and each has a state of its own", async () => {
  globalThis.loads = 0;
  const code = `globalThis.loads += 1;
    export default () => { let drawn = 0; return { initialize() { drawn += 10; }, render: () => (drawn += 1) }; };`;
  const [one, other] = [make(), make()];
  await one.initialize({ model: model(code) });
  assert.equal(await one.render({ model: model(code) }), 11);
  assert.equal(await one.render({ model: model(code) }), 12);
  assert.equal(await other.render({ model: model(code) }), 1);
  assert.equal(globalThis.loads, 1);
});

test("a widget that leaves is told so, and its model keeps no code", async () => {
  const gone = model("export default { initialize: () => () => (globalThis.left = true) };");
  const leave = await make().initialize({ model: gone });
  assert.notEqual(gone.get("_code"), "");
  leave();
  assert.equal(globalThis.left, true);
  assert.equal(gone.get("_code"), "");
});

test("a widget without a beginning of its own is drawn", async () => {
  const widget = make();
  const plain = model("export default { render: ({ el }) => `in ${el}` };");
  (await widget.initialize({ model: plain }))();
  assert.equal(await widget.render({ model: plain, el: "a cell" }), "in a cell");
});

test("code that could not be loaded is loaded anew by the next widget", async () => {
  globalThis.broken = true;
  const code = `if (globalThis.broken) throw new Error("half of it"); export default { render: () => "whole" };`;
  await assert.rejects(make().render({ model: model(code) }), /half of it/);
  URL.createObjectURL = ({ text }) => `data:text/javascript,${encodeURIComponent(text)}//again`;
  globalThis.broken = false;
  assert.equal(await make().render({ model: model(code) }), "whole");
});
