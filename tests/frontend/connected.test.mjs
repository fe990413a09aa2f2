import assert from "node:assert/strict";
import { test } from "node:test";

import { connected } from "../../workbench/jupyter/frontend/src/connected.js";

/** As ipywidgets keeps a model: events name it, messages of the kernel go where its comm was told. */
class WidgetModel {
  constructor() {
    this.values = {};
    this.hears = new Map();
    this.sent = [];
    this.comm = { on_msg: (hear) => (this.comm.hear = hear), send: (data) => this.sent.push(data) };
    this.comm.on_msg((message) => this._handle_comm_msg(message));
  }

  set(name, value) {
    this.values[name] = value;
    this.hears.get(`change:${name}`)?.(this, value);
  }

  async _handle_comm_msg({ content: { data } }) {
    if (data.method === "update") Object.assign(this.values, data.state);
  }
}

/** As anywidget 0.11 does: nothing is heard until `ready`, and nothing ever where that was rejected. */
class AnyModel extends WidgetModel {
  async _handle_comm_msg(message) {
    await this.ready;
    return super._handle_comm_msg(message);
  }
}

/** The part of a model that a widget is handed. */
const handed = (model) => ({
  get: (name) => model.values[name],
  set: (name, value) => model.set(name, value),
  on: (event, hear) => model.hears.set(event, hear),
  off: (event) => model.hears.delete(event),
});
const update = (state) => ({ content: { data: { method: "update", state } } });
const settled = () => new Promise((done) => setTimeout(done));

test("a widget that anywidget has given up hears its kernel, and asks for what it has missed", async () => {
  const model = new AnyModel();
  model.ready = Promise.reject(new Error("[anywidget] Failed to initialize model."));
  await assert.rejects(model.comm.hear(update({ text: "missed" })));
  const context = { model: handed(model) };
  let begun;
  connected({ initialize: (given) => (begun = given) }).initialize(context);
  assert.equal(begun, context);
  await settled();
  assert.deepEqual(model.sent, [{ method: "request_state" }]);
  await model.comm.hear(update({ text: "told" }));
  assert.equal(model.values.text, "told");
  assert.equal(JSON.stringify(model.values), '{"text":"told"}');
});

test("a widget that came in time is left alone", async () => {
  const model = new AnyModel();
  let ready;
  model.ready = new Promise((done) => (ready = done));
  const { hear } = model.comm;
  connected(() => ({ render: "drawn" }))().initialize({ model: handed(model) });
  ready();
  await settled();
  assert.equal(model.comm.hear, hear);
  assert.deepEqual(model.sent, []);
});

test("what was made of a widget stays: a function, what it draws, what ends it", () => {
  const model = { on() {}, off() {}, set() {} };
  const made = connected(() => ({ initialize: () => "end", render: "drawn" }))();
  assert.equal(made.render, "drawn");
  assert.equal(made.initialize({ model }), "end");
});
