import assert from "node:assert/strict";
import test from "node:test";

import { keep, placeOf, take } from "../../workbench/jupyter/frontend/src/lab/kept.js";

class Storage {
  items = new Map();
  getItem = (key) => this.items.get(key) ?? null;
  setItem = (key, text) => void this.items.set(key, text);
  removeItem = (key) => void this.items.delete(key);
}

test("what a Lab leaves goes to the next one in its place, once, and only when its kernel has ended", () => {
  const storage = new Storage();
  const kept = { lab: "one", given: "", state: { fields: { seed: 1 } } };
  keep("a.ipynb", kept, false, storage);
  assert.equal(take("a.ipynb", "two", storage), null, "its kernel is alive");
  keep("a.ipynb", kept, true, storage);
  assert.equal(take("a.ipynb", "one", storage), null, "it is the same Lab, drawn again");
  assert.equal(take("b.ipynb", "two", storage), null);
  assert.deepEqual(take("a.ipynb", "two", storage), kept);
  assert.equal(take("a.ipynb", "three", storage), null, "taken");
});

test("without a storage, or with one that holds something else, nothing is kept and nothing fails", () => {
  const broken = { getItem: () => "{", setItem: () => { throw new Error("full"); } };
  keep("a.ipynb", {}, true, broken);
  assert.equal(take("a.ipynb", "two", broken), null);
  assert.equal(take("a.ipynb", "two", { getItem: () => "{}" }), null);
  assert.equal(take("a.ipynb", "two", undefined), null);
});

test("a notebook is known by its path, which its tab tells", () => {
  const tab = { title: "Name: lab.ipynb\nPath: deep/lab.ipynb\nLast Saved: never" };
  const page = { querySelector: (query) => (query.includes('"panel-1"') ? tab : null), location: { pathname: "/voila" } };
  const root = { closest: (query) => (query === ".jp-NotebookPanel" ? { id: "panel-1" } : null) };
  assert.equal(placeOf(root, page), "deep/lab.ipynb");
  assert.equal(placeOf({ closest: () => null }, page), "/voila");
});
