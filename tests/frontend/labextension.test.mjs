import assert from "node:assert/strict";
import { test } from "node:test";

import { container, newer, shared } from "../../workbench/jupyter/frontend/src/labextension/container.js";
import { LabKernel } from "../../workbench/jupyter/frontend/src/labextension/lab_kernel.js";
import { windowName } from "../../workbench/jupyter/frontend/src/labextension/window_name.js";
import { openInLab } from "../../workbench/jupyter/frontend/src/labextension/open_labs.js";
import { Opened, RunList, summaryOf, together } from "../../workbench/jupyter/frontend/src/labextension/run_list.js";
import { ServedModel } from "../../workbench/jupyter/frontend/src/labextension/run_tab.js";
import { hearStartAgain } from "../../workbench/jupyter/frontend/src/labextension/start_again.js";
import { factsOf } from "../../workbench/jupyter/frontend/src/labextension/runs_panel.js";

const offer = (name, more = {}) => ({ get: async () => () => name, ...more });

test("of a shared module the copy in use is taken, else the newest", async () => {
  assert.ok(newer("4.10.0", "4.9.2"));
  assert.ok(newer("4.6.1", "4.6"));
  assert.ok(!newer("4.6.0", "4.6.0"));
  assert.ok(!newer("3.9.9", "4.0.0"));
  assert.ok(newer("5.0.0", "4.6.0-beta.1"));
  assert.equal(await shared({ a: { "4.9.2": offer("old"), "4.10.0": offer("new") } }, "a"), "new");
  assert.equal(await shared({ a: { "4.9.2": offer("used", { loaded: 1 }), "4.10.0": offer("new") } }, "a"), "used");
});

test("a front end without a launcher is given no plugin, and nothing is loaded there", async () => {
  const ours = container("http://hub.example/lab/extensions/workbench/static/remoteEntry.js?v=1");
  const broken = { get: () => assert.fail("loaded") };
  ours.init({ "@jupyterlab/apputils": { "4.2.0": broken } });
  assert.deepEqual((await ours.get("./extension"))().default, []);
});

test("the status bar counts what trains, and names others only where there are some", () => {
  assert.equal(summaryOf({}), "0 training");
  assert.equal(summaryOf({ running: 1, stalled: 1, starting: 1, finished: 9, queued: 0 }), "3 training");
  assert.equal(summaryOf({ running: 1, paused: 1, queued: 2 }), "1 training, 1 paused, 2 queued");
});

test("a line says state, loss and progress, and everything under the pointer", () => {
  const run = { run: "here/a", place: "notebooks/runs", id: "a", name: "<b>x", status: "failed", message: "out of memory", step: 7, loss: 2.5, heldout_loss: null, progress: 0.5 };
  assert.equal(factsOf(run).short, "failed · loss 2.500 · 50%");
  assert.equal(factsOf({ ...run, status: "queued", queue_position: 2, expected_start_seconds: 300 }).short, "queued · 2nd, in 5 min");
  assert.equal(factsOf({ ...run, status: "starting", message: "compiling" }).short, "starting · compiling");
  assert.match(factsOf({ ...run, heldout_loss: 5.4 }).long, /, held-out ~5\.400 \(before the end: on a part of a large held-out set/);
  assert.match(factsOf({ ...run, heldout_loss: 5.4, status: "finished" }).long, /, held-out 5\.400\n/);
  assert.equal(factsOf(run).long, "<b>x (a)\nfailed: out of memory\nstep 7, loss 2.500\nin notebooks/runs");
});

test("runs of a race stand together where the first of them does, open while one trains", () => {
  const run = (name, group = "") => ({ run: `here/${name}`, group });
  const lines = together([run("a", "here/race:x 1"), run("b"), run("c", "here/race:x 1"), run("d", "else/race:x 1")]);
  assert.deepEqual(lines.map(({ key, runs }) => [key, runs?.length]), [["here/race:x 1", 2], ["here/b", undefined], ["else/race:x 1", 1]]);
  const opened = new Opened();
  assert.equal(opened.has("x", { finished: 3, queued: 1 }), false);
  assert.equal(opened.has("x", { finished: 3, starting: 1 }), true);
  assert.equal(opened.has("x", { finished: 4 }), true, "what somebody reads is not closed under them");
  opened.choose("x", false);
  assert.equal(opened.has("x", { running: 1 }), false);
  opened.choose("y", true);
  assert.equal(opened.has("y", { finished: 1 }), true);
});

test("the list is asked for while it is read, the counts seldom, and nothing while the page is hidden", async () => {
  const page = { reading: false, hidden: false, time: 0 };
  const asked = [];
  const server = {
    answer: { runs: [], groups: { "here/race:x 1": { running: 1 } }, counts: { running: 1 } },
    async runs(most) {
      asked.push([page.time, most]);
      return server.answer && { ...server.answer, runs: most === 0 ? [] : [{ run: "here/a" }] };
    },
  };
  const list = new RunList(server, { reading: () => page.reading, hidden: () => page.hidden, now: () => page.time });
  let drawn = 0;
  list.listeners.add(() => (drawn += 1));
  const pass = async (seconds) => {
    for (let i = 0; i < seconds; i += 1) {
      await list.tick();
      page.time += 1000;
    }
  };
  await pass(6);
  assert.deepEqual(asked.splice(0), [[0, 0], [5000, 0]]);
  assert.deepEqual([list.counts, list.runs, list.heard, drawn], [{ running: 1 }, [], true, 2]);
  page.reading = true;
  await pass(4);
  assert.deepEqual(asked.splice(0), [[6000, null], [8000, null]], "at once when it is opened");
  assert.deepEqual([list.runs.length, list.groups], [1, server.answer.groups]);
  page.hidden = true;
  await pass(9);
  assert.deepEqual(asked, []);
  page.hidden = false;
  server.answer = null;
  await pass(1);
  assert.deepEqual([list.heard, list.runs.length, list.counts], [false, 1, { running: 1 }], "what was heard stays");
  assert.equal(list.answered, true, "it is down rather than without the extension");
});

test("the model without a kernel keeps values and tells of changes", () => {
  const model = new ServedModel("here/a");
  assert.deepEqual(model.get("served"), ["here/a"]);
  assert.equal(model.get("snapshot"), null);
  const heard = [];
  const hear = () => heard.push(model.get("advice"));
  model.on("change:advice", hear);
  model.set("advice", "one");
  model.off("change:advice", hear);
  model.set("advice", "two");
  assert.deepEqual(heard, ["one"]);
  assert.equal(model.send({ type: "resync" }), undefined);
});

test("a Lab of a cell is started again: another kernel where there is none, and its own cell alone", async () => {
  const done = [];
  const inside = new EventTarget();
  const kernel = { status: "dead", requestExecute: ({ code }) => ({ done: Promise.resolve(done.push(code)) }) };
  const sessionContext = {
    session: { kernel },
    restartKernel: async () => done.push("restart") && (kernel.status = "idle"),
    startKernel: async () => done.push("start") && (sessionContext.session = { kernel }),
  };
  const content = { widgets: [{ node: { contains: () => false } }, { node: { contains: (node) => node === inside } }], deselectAll: () => done.push("deselect") };
  const NotebookActions = { run: async (notebook, session) => done.push([notebook.activeCellIndex, session === sessionContext]) };
  const lab = { notebook: { NotebookActions }, apputils: { showErrorMessage: (title) => done.push(title) } };
  hearStartAgain(lab, (node) => (node === inside ? { content, sessionContext } : undefined), inside);
  const ask = async () => {
    const event = new Event("workbench:start-again", { cancelable: true });
    inside.dispatchEvent(event);
    await new Promise((rest) => setTimeout(rest));
    return [event.defaultPrevented, done.splice(0)];
  };
  const run = ["import workbench as wb", "deselect", [1, true]];
  assert.deepEqual(await ask(), [true, ["restart", ...run]]);
  assert.deepEqual(await ask(), [true, run], "the server has replaced it already");
  sessionContext.session = null;
  assert.deepEqual(await ask(), [true, ["start", ...run]]);
  NotebookActions.run = async () => assert.fail("no");
  assert.deepEqual((await ask())[1].at(-1), "The Lab could not be started again");
  content.widgets.pop();
  assert.deepEqual(await ask(), [false, []], "a Lab in no cell is told to do it by hand");
});

test("a run opens in a Lab that can show it: one in sight first, none whose kernel is in the middle of a cell", () => {
  const widgetOf = (isVisible, status, known, executionState = "idle") => {
    const table = new EventTarget();
    table.addEventListener("workbench:watch", (event) => event.detail.run === known && event.preventDefault());
    const content = { widgets: [{ model: { executionState } }] };
    return { isVisible, content, sessionContext: { session: { kernel: { status } } }, node: { querySelectorAll: () => [table] } };
  };
  const own = widgetOf(false, "idle", "k/a");
  const seen = widgetOf(true, "busy", "k/a");
  assert.equal(openInLab([own, seen], "k/a", own), seen, "busy with messages of its page");
  assert.equal(openInLab([own, widgetOf(true, "idle", "other/a")], "k/a", own), own, "of another runs folder");
  const computes = widgetOf(true, "busy", "k/a", "running");
  assert.equal(openInLab([own, computes], "k/a", own), own, "in the middle of a cell");
  const beside = { ...widgetOf(true, "busy", "k/a"), content: {}, notebook: computes };
  assert.equal(openInLab([own, beside], "k/a", own), own, "of a notebook that computes");
  const without = { isVisible: true, node: { querySelectorAll: () => [] } };
  assert.equal(openInLab([without, widgetOf(true, "dead", "k/a")], "k/a", null), null);
});

/** A page's JupyterLab, as far as the Lab's kernel uses it: a session gets its path a moment after it was started. */
function pageOf(server) {
  const context = {
    session: null,
    sessionManager: { refreshRunning: async () => {}, running: () => server.sessions.values() },
    initialize: async () => {
      if (context._initializing) return false;
      context._initializing = true;
      const found = server.sessions.find(({ path }) => path === "Workbench");
      if (found) context.session = { ...found, dispose: () => (context.session = null) };
      return found ? false : context.startKernel();
    },
    startKernel: async () => {
      const made = { id: `session ${++server.made}`, path: "a name of its own", kernel: {} };
      await server.starting;
      server.sessions.push(made);
      await Promise.resolve();
      made.path = "Workbench";
      context.session = { ...made, dispose: () => (context.session = null) };
      return false;
    },
    shutdown: async () => {
      server.sessions = server.sessions.filter(({ id }) => id !== context.session.id);
      context.session = null;
    },
  };
  const lab = {
    apputils: { SessionContext: function () { return context; } },
    "jupyterlab-manager": { registerWidgetManager: (_, __, [waiting]) => (waiting.manager = {}) },
  };
  return new LabKernel(lab, {}, { clone: () => ({}) });
}

test("pages share the one kernel of the Lab's tab, also where both start it again", async () => {
  const server = { sessions: [], made: 0, starting: null };
  const pages = [pageOf(server), pageOf(server)];
  const used = () => pages.map(({ context }) => context.session.id);
  assert.equal(await pages[0].connect(), true);
  assert.equal(await pages[1].connect(), true);
  assert.deepEqual(used(), ["session 1", "session 1"]);
  const end = () => {
    server.sessions = [];
    for (const { context } of pages) context.session = null;
  };
  end();
  for (const page of pages) await page.connect();
  assert.deepEqual(used(), ["session 2", "session 2"], "the second joins what the first has started");
  end();
  // At the same time: neither sees the other's until it has one of its own.
  server.starting = new Promise((rest) => setTimeout(rest, 5));
  assert.deepEqual(await Promise.all(pages.map((page) => page.connect())), [true, true]);
  assert.equal(server.sessions.length, 1);
  assert.deepEqual(used(), [server.sessions[0].id, server.sessions[0].id]);
  end();
  server.sessions = [{ id: "dead", path: "Workbench", kernel: { execution_state: "dead" } }];
  await pages[0].connect();
  assert.equal(pages[0].context.session.id, `session ${server.made}`, "one that died and is listed all the same is nobody's");
});

/** A browser window: the storage of its session, and the locks that all windows share. */
function windowOf(held, stored = new Map()) {
  const sessionStorage = { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => stored.set(key, value) };
  const request = (name, _, granted) => granted(held.has(name) ? null : held.add(name));
  return { sessionStorage, navigator: { locks: { request } }, stored };
}

test("a window keeps its name when its page is loaded again, and a copy of it gets another", async () => {
  const held = new Set();
  const first = windowOf(held);
  const name = await windowName(first);
  assert.match(name, /^[0-9a-f]{24}$/);
  assert.notEqual(await windowName(windowOf(held)), name);
  assert.notEqual(await windowName(windowOf(held, new Map(first.stored))), name, "duplicated while the first is there");
  held.clear();
  assert.equal(await windowName(first), name, "loaded again: the page before has let go");
  const bare = { get sessionStorage() { throw new Error("denied"); }, navigator: {} };
  assert.match(await windowName(bare), /^[0-9a-f]{24}$/);
  first.stored.set("workbench.window", '"); import os');
  assert.match(await windowName(first), /^[0-9a-f]{24}$/);
});
