import assert from "node:assert/strict";
import { test } from "node:test";

import { ACTIONS, EDITED, TRASH_ACTIONS, deleteQuestion, namesOf, possible, selectionText, tagChanges, tagsAs, titleOf } from "../../workbench/jupyter/frontend/src/runs/actions.js";
import { BY_KEY, COLUMNS, fitting, lineWidth, nextSort, shortPaths, since, sorted } from "../../workbench/jupyter/frontend/src/runs/columns.js";
import { endRunsQuestion } from "../../workbench/jupyter/frontend/src/steering.js";
import { gaveWay, outcomeOf } from "../../workbench/jupyter/frontend/src/runs/outcome.js";
import { Rows, between, newcomers, scrollFor, visible } from "../../workbench/jupyter/frontend/src/runs/rows.js";
import { seenOf } from "../../workbench/jupyter/frontend/src/runs/seen.js";
import { statText, statsOf, widened } from "../../workbench/jupyter/frontend/src/runs/groups.js";
import { Session } from "../../workbench/jupyter/frontend/src/runs/session.js";
import { markdown, shown } from "../../workbench/jupyter/frontend/src/runs/sheet.js";

const row = (id, more = {}) => ({ id, name: id, status: "finished", tags: [], notes: "", message: "", loss: null, progress: 1, ...more });
const ids = (rows) => rows.map(({ id }) => id).join("");
const action = (verb) => ACTIONS.find((each) => each.verb === verb);

test("that a run waits is said until it begins, and no other words are touched", () => {
  const session = new Session(() => {}, { server: {}, place: () => "" });
  const tell = (seq, rows) => session.hear({ type: "rows", seq, whole: !seq, order: seq ? null : rows.map(({ id }) => id), rows, total: 1, trashed: 0 });
  session.hear({ type: "said", text: "launched a: queued, position 1", error: false, of: [["a", "queued"]] });
  tell(0, [row("a", { status: "queued" })]);
  tell(1, [row("a", { status: "queued", queue_position: 1 })]);
  assert.equal(session.said.text, "launched a: queued, position 1");
  tell(2, [row("a", { status: "starting" })]);
  assert.equal(session.said.text, "");
  session.note("tagged a");
  tell(4, [row("a", { status: "finished" })]);
  assert.equal(session.said.text, "tagged a");
});

test("a score of a part of the held-out text is marked, alone and in a mean, and says why", () => {
  const { text, about } = BY_KEY.get("heldout");
  const of = (status, loss) => row("a", { status, heldout_loss: loss });
  assert.deepEqual(["running", "stopped", "finished"].map((status) => text(of(status, 5.4321))), ["~5.432", "~5.432", "5.432"]);
  assert.deepEqual([null, "nan"].map((loss) => text(of("running", loss))), ["", "nan"]);
  assert.deepEqual([about(of("running", 5.4)), about(of("finished", 5.4)), about(of("running", null))], ["before the end: on a part of a large held-out set, on all of a small one", "", ""]);
  const mean = (...rows) => statText(BY_KEY.get("heldout"), statsOf(rows).get("heldout"));
  assert.equal(mean(of("finished", 5), of("running", 5)), "~5.000 ± 0.000");
  assert.equal(mean(of("finished", 5), of("running", null)), "5.000");
});

test("how far a scoring is hides no answer to anything else, its end does", () => {
  const session = new Session(() => undefined, { place: () => "", later: () => undefined });
  session.ask("score", ["a"], { on: "fast" });
  const hear = (text, going) => session.hear({ type: "said", request: 1, text, error: false, going });
  hear("scoring a: 10%", true);
  assert.equal(session.said.text, "scoring a: 10%");
  hear("scoring a: 20%", true);
  assert.equal(session.said.text, "scoring a: 20%");
  session.note("name: nothing is selected", true);
  hear("scoring a: 30%", true);
  assert.equal(session.said.text, "name: nothing is selected");
  hear("scored a: blimp.fast 0.5", false);
  assert.equal(session.said.text, "scored a: blimp.fast 0.5");
});

test("what was said of a run goes with the next change of its state", async () => {
  const server = { steer: async () => ({ state: "done", text: "stopping after this step, with a checkpoint" }) };
  const session = new Session(() => {}, { server, place: () => "here", controller: "me", later: () => {} });
  const tell = (seq, status) => session.hear({ type: "rows", seq, whole: !seq, order: seq ? null : ["a"], rows: [row("a", { status })], total: 1, trashed: 0 });
  tell(0, "running");
  session.ask("stop", ["a"]);
  await new Promise((done) => setImmediate(done));
  assert.match(session.said.text, /stopping after this step/);
  tell(1, "running");
  tell(2, "stopping");
  assert.match(session.said.text, /stopping after this step/);
  tell(3, "stopped");
  assert.equal(session.said.text, "");
});

test("columns that nobody has chosen fit, as many as there is room for", () => {
  const rows = [{ owner: "ann" }, { owner: "bob" }];
  for (const sized of [(column) => column, widened]) {
    const wide = (keys) => lineWidth(keys.map((key) => sized(BY_KEY.get(key))));
    for (let width = 700; width < 1700; width += 1) assert.ok(wide(fitting(width, rows, sized)) <= width, String(width));
  }
  assert.deepEqual(fitting(1286, rows), COLUMNS.map(({ key }) => key));
  const gone = (width, of = rows) => COLUMNS.map(({ key }) => key).filter((key) => !fitting(width, of).includes(key)).join(" ");
  assert.deepEqual([1285, 1175, 1079, 860].map((width) => gone(width)), ["device", "speed device", "speed device note", "speed device started tags note"]);
  assert.deepEqual([2000, 1091].map((width) => gone(width, rows.slice(1))), ["owner", "speed owner device"], "there is but one");
  assert.deepEqual(fitting(300, rows), ["name", "state", "progress", "loss"]);
});

test("what has come since is told from what was there at first", () => {
  assert.deepEqual([newcomers(["a"], null), newcomers(["a"], []), newcomers(["b", "a"], ["a", "c"])], [[], ["a"], ["b"]]);
});

test("sorting is stable, and what says nothing comes last either way", () => {
  const rows = [row("a", { loss: 2 }), row("b"), row("c", { loss: 1 }), row("d", { loss: 2 }), row("e", { loss: "nan" })];
  assert.equal(ids(sorted(rows, { key: "loss", direction: 1 })), "cadbe");
  assert.equal(ids(sorted(rows, { key: "loss", direction: -1 })), "adcbe");
  assert.equal(ids(sorted(rows, null)), "abcde");
  assert.equal(ids(sorted([row("run 10"), row("run 9")], { key: "name", direction: 1 })), "run 9run 10");
  const states = ["finished", "failed", "running"].map((status) => row(status[1], { status }));
  assert.equal(ids(sorted(states, { key: "state", direction: 1 })), "uai");
});

test("a header sorts one way, then the other, then not at all", () => {
  const [step, loss] = [BY_KEY.get("step"), BY_KEY.get("loss")];
  const first = nextSort(null, step);
  assert.deepEqual(first, { key: "step", direction: -1 });
  assert.deepEqual(nextSort(first, step), { key: "step", direction: 1 });
  assert.equal(nextSort(nextSort(first, step), step), null);
  assert.deepEqual(nextSort(first, loss), { key: "loss", direction: 1 });
});

test("cells say what people ask for", () => {
  assert.equal(BY_KEY.get("state").text(row("a", { status: "queued" })), "queued");
  assert.equal(BY_KEY.get("note").text(row("a", { status: "failed", message: "disk full" })), "disk full");
  assert.equal(BY_KEY.get("note").text(row("a", { status: "failed", message: "disk full", notes: "mine" })), "mine");
  assert.equal(BY_KEY.get("note").text(row("a", { message: "done" })), "");
  const now = new Date(2026, 5, 10, 12).getTime();
  assert.equal(since(new Date(2026, 5, 10, 9, 5).getTime() / 1000, now), "09:05");
  assert.equal(since(new Date(2026, 4, 3, 9, 5).getTime() / 1000, now), "3 May 09:05");
  assert.equal(since(new Date(2024, 4, 3).getTime() / 1000, now), "3 May 2024");
  assert.equal(since(null), "");
});

test("rows: all, then what changed, then gone; a gap is told", () => {
  const rows = new Rows();
  assert.equal(rows.take({ seq: 1, whole: false, rows: [], total: 0, trashed: 0 }), false);
  assert.equal(rows.take({ seq: 4, whole: true, order: ["b", "a"], rows: [row("a"), row("b")], total: 5, trashed: 1 }), true);
  assert.equal(ids(rows.all), "ba");
  assert.equal(rows.hidden, 3);
  assert.equal(rows.take({ seq: 5, whole: false, order: null, rows: [row("a", { name: "new" })], total: 5, trashed: 1 }), true);
  assert.equal(rows.byId.get("a").name, "new");
  assert.equal(rows.take({ seq: 6, whole: false, order: ["c", "b"], rows: [row("c")], total: 2, trashed: 2 }), true);
  assert.equal(ids(rows.all), "cb");
  assert.equal(rows.byId.has("a"), false);
  assert.equal(rows.take({ seq: 8, whole: false, order: null, rows: [], total: 2, trashed: 2 }), false);
});

test("the window holds what is seen and a few more, never beyond the ends", () => {
  assert.deepEqual(visible(0, 280, 28, 1000), { first: 0, last: 19 });
  assert.deepEqual(visible(28 * 500, 280, 28, 1000), { first: 492, last: 519 });
  assert.deepEqual(visible(28 * 2000, 280, 28, 1000), { first: 981, last: 1000 });
  assert.deepEqual(visible(0, 280, 28, 3), { first: 0, last: 3 });
  assert.equal(scrollFor(5 * 28, 28, 0, 280), 0);
  assert.equal(scrollFor(20 * 28, 28, 0, 280), 308);
  assert.equal(scrollFor(2 * 28, 28, 308, 280), 56);
  assert.equal(scrollFor(72, 96, 0, 72), 72, "a reason higher than the window is read from its beginning");
});

test("a range runs either way, and from nowhere is its end", () => {
  assert.deepEqual(between(["a", "b", "c"], "c", "b"), ["b", "c"]);
  assert.deepEqual(between(["a", "b"], "gone", "b"), ["b"]);
  assert.deepEqual(between(["a", "b"], "a", "gone"), []);
});

test("what a resume would only repeat is not resumed", () => {
  const failed = [row("a", { status: "failed", repeats: true }), row("b", { status: "failed", repeats: false })];
  assert.deepEqual(possible(action("resume"), failed).ids, ["b"]);
  assert.match(possible(action("resume"), failed.slice(0, 1)).why, /it would fail again as it is/);
});

test("a run whose text is gone is not resumed", () => {
  const ended = [row("a", { status: "stopped", missing_text: "notes/a.txt" }), row("b", { status: "lost", missing_text: "" }), row("c", { missing_text: "" })];
  assert.deepEqual(possible(action("resume"), ended).ids, ["b"]);
  assert.equal(possible(action("resume"), ended.slice(0, 1)).why, "the text that it trains on is not there any more: notes/a.txt");
  assert.match(possible(action("resume"), ended.slice(2)).why, /or has finished/);
});

test("actions reach the runs that fit, and say why they reach none", () => {
  const mixed = [row("a", { status: "running" }), row("b")];
  assert.deepEqual(possible(action("stop"), mixed), { ids: ["a"], why: "" });
  assert.deepEqual(possible(action("delete"), mixed), { ids: ["b"], why: "" });
  assert.equal(possible(action("stop"), []).why, "select a run");
  const empty = TRASH_ACTIONS.find(({ verb }) => verb === "empty");
  assert.equal(possible(empty, [], [], 0).why, "there is nothing in it");
  assert.equal(possible(empty, [], [], 2).why, "");
  assert.equal(possible(action("stop"), [row("b")]).why, "it has ended");
  assert.equal(possible(action("delete"), [mixed[0]]).why, "it is training or waiting: stop it first");
  assert.equal(possible(action("fork"), mixed).why, "select one run alone");
  assert.equal(possible(action("compare"), [mixed[0]]).why, "select at least 2 runs");
});

test("a closed group is seen when all of it is selected, and never in part", () => {
  const rows = ["a", "b", "c", "d", "e"].map((id) => row(id));
  const [a, b, c, d] = rows;
  const items = [{ id: "g", group: { id: "g", label: "race deep", rows: [a, b] } }, { id: "h", group: { id: "h", label: "pairs", rows: [c] } }, { id: "c", row: c }, { id: "d", row: d }];
  const seen = (selected, closed = ["g"]) => seenOf(new Set(selected), rows, items, new Set(closed));
  assert.deepEqual(seen(["a", "b"]), { chosen: [a, b], filtered: 0, folded: 0, partly: [] });
  assert.deepEqual(seen(["a", "c"]), { chosen: [c], filtered: 0, folded: 1, partly: ["race deep"] });
  assert.deepEqual(seen(["a", "b", "e"]), { chosen: [a, b], filtered: 1, folded: 0, partly: [] }, "what the filter hides stays out");
  assert.deepEqual(seen([]), { chosen: [], filtered: 0, folded: 0, partly: [] });
  const why = "unfold the group race deep, of which some runs are selected, or select all of it";
  assert.deepEqual(possible(action("delete"), [], ["race deep"]), { ids: [], why });
  assert.deepEqual(possible(action("delete"), [c], ["race deep"]), { ids: ["c"], why: "" }, "what is seen can be acted on beside it");
});

test("a selection says what of it is not shown", () => {
  assert.equal(selectionText(0), "none selected");
  assert.equal(selectionText(1), "1 selected");
  assert.equal(selectionText(3, 2), "3 selected, 2 hidden by the filter");
  assert.equal(selectionText(4, 1, 2), "4 selected, 1 hidden by the filter, 2 in closed groups");
  assert.equal(namesOf([row("a"), row("b")]), "a, b");
  assert.equal(namesOf(["a", "b", "c", "d"].map((id) => row(id))), "4 runs");
});

test("what became of a verb is one line, with the seconds that it has taken", () => {
  const asked = (id, state, text = "", more = {}) => ({ id, name: id, answer: { state, text, error: false, ...more } });
  const at = outcomeOf("evaluate", [asked("a", "accepted", "evaluating on held-out tokens, about 12 s", { seconds: 5.2 })]);
  assert.deepEqual(at, { text: "evaluate: a: evaluating on held-out tokens, about 12 s; 5 s so far", error: false, settled: false, take_over: null });
  const several = outcomeOf("stop", [asked("a", "done", "stopping"), asked("b", "done", "stopping"), asked("c", "refused", "it is steered by Ann", { error: true, reason: "leased" })]);
  assert.equal(several.text, "stop: a, b: stopping; c: it is steered by Ann");
  assert.deepEqual([several.error, several.settled, several.take_over], [true, true, { verb: "stop", runs: ["c"] }]);
  const many = outcomeOf("pause", ["a", "b", "c", "d"].map((id) => asked(id, "sent")));
  assert.equal(many.text, "pause: 4 runs: asked");
});

test("every action has a state it is for, or none at all, and words", () => {
  for (const each of [...ACTIONS, ...TRASH_ACTIONS]) {
    assert.ok(each.says.length > 10 && each.title);
    if (each.states) assert.ok(possible(each, [row("a", { status: "nothing" })]).why.length > 3, each.verb);
  }
});

test("tags are typed as on the command line", () => {
  assert.deepEqual(tagChanges("a, +b -c"), { add: ["a", "b"], remove: ["c"] });
  assert.deepEqual(tagsAs("b c", ["a", "b"]), { add: ["c"], remove: ["a"] });
});

test("what is edited in a cell begins as it is and becomes a request", () => {
  const edited = row("a", { tags: ["a", "b"], notes: "seen" });
  const of = (what, text) => [EDITED[what].text(edited), EDITED[what].change(text, edited)];
  assert.deepEqual(of("name", "best"), ["a", { name: "best" }]);
  assert.deepEqual(of("tags", "b c"), ["a b", { add: ["c"], remove: ["a"] }]);
  assert.deepEqual(of("note", ""), ["seen", { notes: "" }]);
  for (const { verb } of [EDITED.name, EDITED.tags]) assert.ok(action(verb).key, verb);
  assert.deepEqual(possible(action("rename"), [row("a"), row("b")]), { ids: [], why: "select one run alone" });
  assert.deepEqual(possible(action("rename"), [row("a", { status: "running" })]), { ids: ["a"], why: "" });
});

/** A session whose server answers runs as told; `sent` holds what reached the kernel. */
function opened(answers = {}) {
  const sent = [];
  const later = [];
  const server = { steer: async (name, request, said) => answers[name]?.(request, said) ?? null };
  const session = new Session((message) => sent.push(message), { server, place: () => "here", controller: "this page", later: (work) => later.push(work) });
  return { session, sent, later };
}

const settled = () => new Promise((done) => setImmediate(done));

test("a session asks again when it missed something, and tells when the kernel is busy", () => {
  const { session, sent, later } = opened();
  session.hello();
  session.hear({ type: "rows", seq: 3, whole: true, order: [], rows: [], total: 0, trashed: 0 });
  session.hear({ type: "rows", seq: 5, whole: false, order: null, rows: [], total: 0, trashed: 0 });
  assert.deepEqual(sent.map(({ type }) => type), ["hello", "hello"]);
  session.ask("delete", ["a"]);
  assert.deepEqual(sent.at(-1), { type: "do", request: 1, verb: "delete", runs: ["a"] });
  later[0]();
  assert.match(session.said.text, /kernel is busy/);
  session.hear({ type: "said", request: 1, text: "moved a to the trash", error: false });
  later[0]();
  assert.equal(session.said.text, "moved a to the trash");
  session.wantKnobs();
  session.wantKnobs();
  assert.equal(sent.filter(({ type }) => type === "knobs").length, 1);
  session.hear({ type: "rows", seq: 6, whole: true, order: ["a"], rows: [{ id: "a", knobs_written: 1 }], total: 1, trashed: 0 });
  session.wantKnobs();
  session.hear({ type: "rows", seq: 7, whole: false, order: null, rows: [{ id: "a", knobs_written: 2 }], total: 1, trashed: 0 });
  session.wantKnobs();
  assert.equal(sent.filter(({ type }) => type === "knobs").length, 3, "a run was added, then steered");
  session.hear({ type: "trash", rows: [{ id: "b" }], knobs: { runs: ["b"], same: { "optimizer.lr": 1 }, differ: {}, steered: {} } });
  assert.equal(session.trashKnobs.value("optimizer.lr", "b"), 1);
});

test("runs are asked through the server, and are waited for until they have done it", async () => {
  let finish = null;
  const { session, sent, later } = opened({
    "here/a": (request, said) => {
      said({ state: "accepted", text: "evaluating on held-out tokens", error: false });
      return new Promise((done) => (finish = () => done({ state: "done", text: "held-out loss 5.43", error: false })));
    },
  });
  session.hear({ type: "rows", seq: 0, whole: true, order: ["a"], rows: [row("a", { status: "running" })], total: 1, trashed: 0 });
  session.ask("evaluate", ["a"]);
  assert.equal(session.said.text, "evaluate: a: evaluating on held-out tokens");
  session.ask("evaluate", ["a"]);
  later.at(-1)();
  assert.equal(session.said.error, false, "what is being done is not refused");
  finish();
  await settled();
  assert.equal(session.said.text, "evaluate: a: held-out loss 5.43");
  assert.deepEqual(sent.map(({ type }) => type), ["look"], "the kernel is asked for nothing but the new row");
});

test("where somebody else steers, taking over is offered and asks once more", async () => {
  const requests = [];
  const { session } = opened({
    "here/a": async (request) => {
      requests.push(request);
      return request.take_over ? { state: "done", text: "stopping", error: false } : { state: "refused", text: "it is steered by Ann", error: true, reason: "leased" };
    },
  });
  session.hear({ type: "rows", seq: 0, whole: true, order: ["a"], rows: [row("a", { status: "running" })], total: 1, trashed: 0 });
  session.ask("stop", ["a"]);
  await settled();
  assert.deepEqual([session.said.text, session.said.take_over], ["stop: a: it is steered by Ann", { verb: "stop", runs: ["a"] }]);
  session.ask("stop", ["a"], { takeOver: true });
  await settled();
  assert.deepEqual(requests.map((request) => [request.controller, Boolean(request.take_over)]), [["this page", false], ["this page", true]]);
  assert.equal(session.said.text, "stop: a: stopping");
});

test("a comparison as Markdown keeps its columns", () => {
  const text = markdown({ runs: [{ name: "a|b" }, { name: "c" }], numbers: [{ label: "loss", values: [2.34567, null] }], knobs: [{ path: "lr", values: [1e-3, "x\ny"] }] });
  assert.equal(text, "|  | a\\|b | c |\n| --- | --- | --- |\n| loss | 2.346 | – |\n| lr | 0.001 | x y |");
  assert.deepEqual([1e-5, 12345.6, 0.25, 3, null, true].map(shown), ["0.00001", "12,346", "0.25", "3", "–", "true"]);
});

test("a run that waits says where it stands in the queue, and is cancelled rather than stopped", () => {
  const waiting = (position, seconds = null) => row("a", { status: "queued", progress: 0, queue_position: position, expected_start_seconds: seconds });
  const text = (each) => BY_KEY.get("progress").text(each);
  assert.deepEqual([1, 2, 3, 4, 11, 12, 21].map((position) => text(waiting(position))), ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st"].map((place) => `${place} in line`));
  assert.equal(text(waiting(2, 300)), "2nd, in 5 min");
  assert.equal(text(row("a", { progress: 0.5 })), "50%");
  assert.equal(titleOf(action("stop"), [waiting(1)]), "Cancel…");
  assert.equal(titleOf(action("stop"), [waiting(1), row("b", { status: "running" })]), "Stop…");
  assert.match(endRunsQuestion([waiting(1)]).text, /out of the queue/);
  assert.deepEqual(possible(action("next"), [waiting(2)]), { ids: ["a"], why: "" });
  assert.equal(possible(action("next"), [row("b", { status: "running" })]).why, "it does not wait for this machine");
  const mixed = endRunsQuestion([waiting(1), row("b", { status: "running" })]);
  assert.equal(mixed.yes, "Stop 2 runs");
  assert.match(mixed.text, /Those that train save a checkpoint first; 1 that waits has nothing to save\.$/);
});

test("who does not stop a paused run keeps it paused", () => {
  const no = (...states) => endRunsQuestion(states.map((status) => row("a", { status }))).no;
  assert.deepEqual([no("running"), no("paused"), no("queued")], ["Keep training", "Keep it paused", "Keep waiting"]);
  assert.deepEqual([no("paused", "paused"), no("paused", "running")], ["Keep them paused", "Keep them as they are"]);
});

test("the question before a deletion says which of the selected runs stay, and why", () => {
  const [a, b, c] = [row("a"), row("b", { status: "running" }), row("c", { status: "queued" })];
  assert.equal(deleteQuestion([a], [a], 0).text, "Move a to the trash?");
  assert.equal(deleteQuestion([a], [a, b], 0).text, "Move a to the trash? 1 that trains or waits stays: stop it first.");
  assert.equal(deleteQuestion([a], [a, b, c], 1).text, "Move a to the trash? 2 that train or wait stay: stop them first. Selected runs that are not shown stay.");
});

test("a note begins with words, not with the folders of a path", () => {
  assert.equal(shortPaths("'/srv/users/me/texts/book.txt': no such file"), "'…/book.txt': no such file");
  assert.equal(shortPaths("cannot read /data/a/b.txt, /c.txt or 1/2 of it"), "cannot read …/b.txt, /c.txt or 1/2 of it");
});

test("of runs that gave way to others it is said which, and how to have them back", () => {
  assert.equal(gaveWay([], 8), "");
  assert.equal(gaveWay(["mine"], 8), "mine gave way, 8 runs at most are drawn: to draw it again, take another away, then press Enter on its row");
  assert.match(gaveWay(["a", "b"], 8), /^a, b gave way, .* draw them again, .* on their row$/);
});
