import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { Typing } from "../../workbench/jupyter/frontend/src/compose/typing.js";

/** A text box as far as typing goes. */
class Box {
  #text;
  constructor(text) {
    Object.assign(this, { isConnected: true, selectionStart: 2, selectionEnd: 3, heard: [] });
    this.#text = text;
  }

  get value() {
    return this.#text;
  }

  set value(text) {
    this.#text = text;
  }

  /** Of a hand: the browser writes past the property. */
  type(text) {
    this.#text = text;
  }

  focus() {
    document.activeElement = this;
  }

  setSelectionRange(...range) {
    this.range = range;
  }

  dispatchEvent({ type }) {
    this.heard.push(type);
  }
}

globalThis.InputEvent = class {
  constructor(type) {
    this.type = type;
  }
};
globalThis.document = { body: {} };
afterEach(() => (document.activeElement = document.body));

test("a late answer waits until the box is left, and is nothing where the text was sent", async () => {
  const typing = new Typing(() => undefined);
  const box = new Box("1");
  typing.begin(box, "optimizer.lr");
  box.type("12");
  box.value = "0.5";
  assert.equal(box.value, "12");
  typing.left();
  await null;
  assert.equal(box.value, "0.5");
  typing.begin(box, "optimizer.lr");
  box.type("3");
  box.value = "0.7";
  typing.sent();
  assert.equal(box.value, "3");
  box.value = "0.9";
  assert.equal(box.value, "0.9");
});

test("a box that goes with its form hands its text and the keyboard to the one in its place", async () => {
  const [gone, there] = [new Box("1"), new Box("0.5")];
  let shown = null;
  const typing = new Typing((box, path) => (box === gone && path === "optimizer.lr" ? shown : undefined));
  document.activeElement = gone;
  typing.begin(gone, "optimizer.lr");
  gone.type("0.00");
  typing.follow();
  gone.isConnected = false;
  document.activeElement = document.body;
  typing.left();
  await null;
  typing.follow();
  assert.equal(there.value, "0.5", "the new form is not drawn yet");
  shown = there;
  typing.follow();
  assert.deepEqual([there.value, there.range, there.heard, document.activeElement], ["0.00", [2, 3], ["input"], there]);
});

test("somebody who is elsewhere by then stays there", async () => {
  const [gone, there] = [new Box("1"), new Box("0.5")];
  const typing = new Typing(() => there);
  typing.begin(gone, "optimizer.lr");
  gone.type("0.00");
  gone.isConnected = false;
  document.activeElement = {};
  typing.follow();
  assert.equal(there.value, "0.5");
});

test("a box that the browser sends as it goes is followed all the same", async () => {
  const [gone, there] = [new Box("1"), new Box("0.5")];
  const typing = new Typing(() => there);
  typing.begin(gone, "optimizer.lr");
  gone.type("0.00");
  typing.sent();
  gone.isConnected = false;
  await null;
  typing.follow();
  assert.deepEqual([there.value, document.activeElement], ["0.00", there]);
  // One that was sent by hand, and went later, is over.
  document.activeElement = document.body;
  const [sent, other] = [new Box("1"), new Box("0.5")];
  const later = new Typing(() => other);
  later.begin(sent, "optimizer.lr");
  sent.type("2");
  later.sent();
  await null;
  sent.isConnected = false;
  later.follow();
  assert.equal(other.value, "0.5");
});
