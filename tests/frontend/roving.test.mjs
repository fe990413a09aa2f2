import assert from "node:assert/strict";
import { test } from "node:test";

import { roving } from "../../workbench/jupyter/frontend/src/roving.js";

globalThis.document ??= {};

/** A group of controls as far as the keyboard goes. */
function group(names) {
  const heard = {};
  const controls = names.map((name) => ({ name, tabIndex: 0, focus: () => heard.focusin({ target: controls.find((one) => one.name === name) }) }));
  const node = { addEventListener: (type, hear) => (heard[type] = hear) };
  const press = (from, key) => {
    let taken = false;
    heard.keydown({ key, target: controls[from], preventDefault: () => (taken = true), stopPropagation: () => {} });
    return taken;
  };
  return { node, controls, press, stop: () => controls.filter(({ tabIndex }) => tabIndex === 0).map(({ name }) => name).join() };
}

test("a group is one stop, which goes with the arrows and stays where it was", () => {
  const { node, controls, press, stop } = group(["a", "b", "c"]);
  let shown = [...controls];
  const settle = roving(node, () => shown);
  assert.equal(stop(), "a");
  assert.ok(press(0, "ArrowLeft"));
  assert.equal(stop(), "c");
  press(2, "Home");
  assert.equal(stop(), "a");
  press(0, "ArrowRight");
  assert.equal(stop(), "b");
  assert.equal(press(1, "ArrowDown"), false, "a row has nothing above or below: a drop-down in it chooses");
  shown = [controls[0], controls[2]];
  settle();
  assert.equal(controls[0].tabIndex, 0, "the last one is gone: the first can be reached");
});

test("in a table the arrows go up and down as well", () => {
  const { node, controls, press, stop } = group(["a", "b", "c", "d"]);
  const across = (one, by) => controls[controls.indexOf(one) + 2 * by];
  roving(node, () => controls, across);
  assert.ok(press(1, "ArrowDown"));
  assert.equal(stop(), "d");
  assert.equal(press(3, "ArrowDown"), false);
  assert.ok(press(3, "ArrowUp"));
  assert.equal(stop(), "b");
});
