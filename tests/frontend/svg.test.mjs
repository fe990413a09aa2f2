import assert from "node:assert/strict";
import { test } from "node:test";

import { Run } from "../../workbench/jupyter/frontend/src/store.js";
import { logTicks, spread, yRange } from "../../workbench/jupyter/frontend/src/watch/scales.js";
import { escaped } from "../../workbench/jupyter/frontend/src/watch/samples.js";
import { curvesSvg, sheetSvg } from "../../workbench/jupyter/frontend/src/watch/svg.js";
import { fileName, whose } from "../../workbench/jupyter/frontend/src/download.js";
import { tableOfEvents } from "../../workbench/jupyter/frontend/src/watch/views/events.js";
import { eventsOf, levelEntries, levelsOf, marksOf, ofRun, partOfTokens, recentSpeeds, scoresOf, smoothed, tableOf } from "../../workbench/jupyter/frontend/src/watch/views/pictures.js";
import { csvOf, csvOfEvents, csvOfLayers } from "../../workbench/jupyter/frontend/src/watch/csv.js";
import { Layers } from "../../workbench/jupyter/frontend/src/watch/layers.js";
import { sheetOf } from "../../workbench/jupyter/frontend/src/watch/panel.js";

const theme = { ink: "#111", muted: "#555", grid: "#eee", ground: "#fff", dark: false };

function picture(more = {}) {
  const x = Float64Array.of(0, 1, 2, 3, 4);
  return {
    lines: [{ name: "a <b>", x, y: Float64Array.of(5, 4, NaN, 2, 1), stroke: "#123456", dash: [4, 2], format: String }],
    x: "step",
    left: { format: String },
    levels: [{ y: 6.5, dash: [2, 4], text: "level" }],
    marks: [{ x: 1, label: "pause", number: "‖", text: "pause", stroke: "#777", passing: true }],
    window: null,
    extent: [0, 4],
    theme,
    ...more,
  };
}

function drawn(made) {
  const legend = [{ text: 'a "run" & <b>', line: { stroke: "#123456", dash: [4, 2] } }, { text: "ramp", ramp: ["#000", "#fff"] }];
  return sheetSvg({ title: "Loss <x>", legend, width: 700, height: 300, theme, body: (top) => curvesSvg(made, 700, 300, top) });
}

/** Every tag is closed by its own, and no text is markup. */
function wellFormed(svg) {
  const open = [];
  for (const [whole, end, name, own] of svg.matchAll(/<(\/?)([a-zA-Z]+)(?:[^<>]*?)(\/?)>/g)) {
    if (own) continue;
    if (end) assert.equal(open.pop(), name, whole);
    else open.push(name);
  }
  assert.deepEqual(open, []);
}

test("a picture has title, legend, axes, marks and lines, and is XML", () => {
  const svg = drawn(picture());
  wellFormed(svg);
  for (const text of ["Loss &#60;x&#62;", "a &#34;run&#34; &#38; &#60;b&#62;", "optimizer steps", "pause"]) assert.ok(svg.includes(text), text);
  const [, path] = /<path d="([^"]*)"/.exec(svg);
  assert.equal(path.match(/M/g).length, 1);
  assert.ok(!/NaN|undefined|Infinity/.test(svg));
});

test("where a run was turned and its fork begins, the line is of whose event is named there", () => {
  const [knob, fork] = [{ label: "lr → 0.3", number: "◆", stroke: "#a00" }, { label: "fork", number: "↳", stroke: "#00b" }];
  const lines = (...marks) => [...drawn(picture({ marks: marks.map((mark) => ({ x: 1, passing: true, ...mark })) })).matchAll(/<line [^>]*stroke="(#a00|#00b)"/g)].map(([, stroke]) => stroke);
  assert.ok(drawn(picture({ marks: [knob, fork].map((mark) => ({ ...mark, x: 1 })) })).includes("lr → 0.3"));
  assert.deepEqual(lines(knob, fork), ["#a00"]);
  assert.deepEqual(lines(fork, knob), ["#00b"]);
  assert.deepEqual(lines({ ...knob, stage: true }, fork), ["#a00", "#00b"], "a stage keeps its own");
});

test("what is written at a mark at the right edge ends in the picture", () => {
  const labels = (...xs) => {
    const marks = xs.map((x) => ({ ...picture().marks[0], x }));
    return [...drawn(picture({ marks })).matchAll(/<text x="([\d.]+)"[^>]*>(pause|‖)</g)].map(([, x, text]) => [text, Number(x)]);
  };
  const [[text, x]] = labels(4);
  assert.ok(text === "pause" && x + 5 * 6.6 <= 700, `${text} at ${x}`);
  const close = labels(3.9, 4);
  assert.deepEqual(close.map(([word]) => word), ["‖", "‖"], "no room for words");
  assert.ok(close.at(-1)[1] + 6.6 <= 700);
  assert.deepEqual(labels(1, 3).map(([word]) => word), ["pause", "pause"]);
});

test("a window draws what is in it, an area is filled, a second axis has its numbers", () => {
  const x = Float64Array.of(0, 1, 2, 3, 4);
  const lines = [{ name: "data", x, y: x, stroke: "#00f", fill: "#00f", format: String }, { name: "mfu", x, y: x, stroke: "#0f0", scale: "right", points: true, format: String }];
  const svg = drawn(picture({ lines, window: [1, 2], right: { format: (v) => `${v}%`, ticks: 4 }, left: { format: String, log: true } }));
  wellFormed(svg);
  assert.ok(svg.includes("%</text>") && svg.includes("Z\"") && svg.includes("<circle"));
  assert.ok(!/NaN/.test(svg));
});

test("a sample beyond the axis is marked at its edge, in the colour of its line", () => {
  const x = Float64Array.from({ length: 100 }, (_, i) => i);
  const y = x.map((i) => (i === 50 ? 99 : 5 + Math.sin(i)));
  const line = { name: "loss", x, y, stroke: "rgba(1, 2, 3, 0.3)", edge: "#123456", format: String };
  const marks = (svg) => svg.match(/<path d="M[^"]*Z" fill="#123456">/g) ?? [];
  assert.equal(marks(drawn(picture({ lines: [line], levels: [] }))).length, 1);
  assert.equal(marks(drawn(picture({ lines: [line], levels: [], left: { format: String, all: true } }))).length, 0);
});

test("baselines near the curves are in sight, far ones do not squeeze them, a target always is", () => {
  const floor = (y, more = {}) => ({ y, ...more });
  assert.deepEqual(yRange(5, 9, {}, [floor(6.4), floor(3.9)]), yRange(3.9, 9, {}));
  assert.deepEqual(yRange(5, 9, {}, [floor(1.2)]), yRange(5, 9, {}));
  assert.deepEqual(yRange(5, 9, {}, [floor(1.2, { always: true })]), yRange(1.2, 9, {}));
  assert.deepEqual(yRange(5, 9, { log: true }, [floor(4.2), floor(1.2)]), yRange(4.2, 9, { log: true }));
});

test("runs on one text share their baselines; an old run has none", () => {
  const runs = [{ "word frequencies": 6.3901, neighbours: 3.86 }, { "word frequencies": 6.3904, neighbours: 3.86 }, undefined].map((levels) => ({ status: { levels } }));
  const levels = levelsOf({ runs, target: 5 });
  assert.deepEqual(levels.map(({ text, always }) => [text, always]), [["word frequencies 6.390", false], ["neighbours 3.860", false], ["target 5.000", true]]);
  assert.equal(new Set(levels.map(({ dash }) => String(dash))).size, 3);
  const texts = [["fast", 6.51], ["slow", 6.51], ["causal", 6.21]].map(([name, y]) => ({ name, status: { levels: { "word frequencies": y, neighbours: 4 } } }));
  assert.deepEqual(levelsOf({ runs: texts }).map(({ text }) => text), ["word frequencies 6.510 · fast and 1 more", "neighbours 4.000", "word frequencies 6.210 · causal"], "of several texts it is said whose");
  const [words, neighbours, ...others] = levelEntries(levelsOf({ runs: texts }));
  assert.deepEqual([words.text, neighbours.text, others.length], ["word frequencies 6.210 to 6.510", "neighbours 4.000", 0], "a legend has one entry for each kind, however many texts");
  const colours = { run: (place) => `#00000${place}` };
  const owned = levelsOf({ runs: [["a", 6], ["b", 5]].map(([name, y], place) => ({ name, place, status: { levels: { "word frequencies": y, neighbours: y - 2 } } })), colours });
  assert.deepEqual(owned.map(({ stroke }) => stroke), ["#000000", "#000000", "#000001", "#000001"], "of two texts each line is in its run's colour");
  assert.match(words.help, /\nword frequencies 6\.210 · causal\nword frequencies 6\.510 · fast and 1 more$/);
});

test("text of a run never becomes markup", () => {
  assert.equal(escaped(`<script>"'&`), "&#60;script&#62;&#34;&#39;&#38;");
});

test("logarithmic axes have round numbers at any span", () => {
  assert.deepEqual(logTicks(1e-4, 1, 5), [1e-4, 1e-3, 1e-2, 0.1, 1]);
  assert.deepEqual(logTicks(5, 10, 5), [5, 6, 7, 8, 9, 10]);
  assert.deepEqual(logTicks(1, 40, 5), [1, 2, 5, 10, 20]);
  assert.ok(logTicks(1e-30, 1e30, 5).length <= 7);
  assert.deepEqual(spread([{ y: [0, -1, 3, NaN, 5] }], "y", true), [3, 5]);
  assert.deepEqual(yRange(NaN, NaN, { log: true }), [0, 1], "nothing to show is no logarithm of zero");
});

/** A run with a loss at steps 1 to 3 and these events. */
function run(events = [], name = "a run") {
  const steps = Int32Array.of(1, 2, 3);
  const series = new Map([["loss", { steps, values: Float32Array.of(3, NaN, 1.5) }]]);
  const shape = { names: ["loss", "heldout_loss"], layers: 0, layerNames: [] };
  return new Run({ i: 0, id: "r", name, shape, clock: { step: steps, seconds: [1, 2, 3], tokens: [10, 20, 30], flops: [1e9, 2e9, 3e9] }, series, events });
}

test("events are marked by x, with a word and a sign for where there is no room", () => {
  const events = [
    { kind: "evaluation", step: 1, text: "held-out loss 5" },
    { kind: "knob", step: 2, text: "optimizer.lr 0.001 -> 0.0005, x 1 -> 2", data: { path: "optimizer.lr", value: 0.0005 } },
    { kind: "stage", step: 1, text: "stage 2 of 3: more", data: { stage: 2, stages: 3 } },
    { kind: "request", step: 3, text: "evaluate by somebody: held-out loss 5", data: { verb: "evaluate", done: true } },
    { kind: "memory", step: 3, text: "kept: 8 rows per micro-batch" },
    { kind: "request", step: 3, text: "checkpoint by somebody: refused", data: { verb: "checkpoint", done: false } },
  ];
  const scene = { x: "tokens", colours: { run: () => "#f00" }, theme };
  const marks = marksOf([run(events)], scene);
  assert.deepEqual(marks.map(({ x, label, number }) => [x, label, number]), [[10, "stage 2 of 3", "2"], [20, "lr → 0.0005", "◆"], [30, "evaluate", "◇"], [30, "memory", "M"]]);
  assert.equal(marks[1].text, "knob: optimizer.lr 0.001 -> 0.0005, x 1 -> 2");
  const [stage] = marksOf([run(events), run([], "b")], scene, [{ of: "r" }]);
  assert.deepEqual([stage.label, stage.stroke], ["", "#f00"], "of several runs, names of stages would lie over each other");
});

test("of several runs, one that has no curve in a plot leaves no marks in it", () => {
  const failed = new Run({ i: 1, id: "f", name: "failed", shape: run().shape, clock: { step: Int32Array.of(), seconds: [], tokens: [], flops: [] }, series: new Map(), events: [{ kind: "error", step: 0, text: "no GPU" }] });
  const healthy = run([{ kind: "pause", step: 2, text: "paused" }]);
  const scene = { x: "step", colours: { run: () => "#f00" }, theme };
  const lines = [failed, healthy].flatMap((one) => (one.line("loss", "step") ? [{ ...ofRun([failed, healthy], one) }] : []));
  assert.deepEqual(marksOf([failed, healthy], scene, lines).map(({ text }) => text), ["pause: paused"]);
  assert.deepEqual(marksOf([failed, healthy], scene, [{ of: "f" }, ...lines]).map(({ text }) => text), ["error: no GPU", "pause: paused"]);
  assert.equal(marksOf([failed], scene).length, 1, "alone it says so where its curve would stand");
});

test("what happened before the first record is marked where curves begin, unless somebody has zoomed in", () => {
  const begun = { lines: [{ ...picture().lines[0], x: Float64Array.of(1, 2, 3, 4, 5) }], extent: [1, 5], marks: [{ ...picture().marks[0], x: 0 }] };
  const signs = (made) => drawn(picture(made)).split("‖").length - 1;
  assert.equal(signs({ ...begun, marks: [] }), 0);
  assert.ok(signs(begun) > 0 || drawn(picture(begun)).includes("pause"));
  assert.equal(drawn(picture({ ...begun, window: [2, 4] })).includes("pause"), false);
});

test("words of events stand in a table, newest first, and of several runs with whose they are", () => {
  const events = [
    { kind: "knob", step: 2, text: "optimizer.lr 0.001 -> 0.0005", data: { path: "optimizer.lr", value: 0.0005 } },
    { kind: "stage", step: 1, text: "stage 2 of 3: more", data: { stage: 2, stages: 3 } },
  ];
  const scene = { x: "step", colours: { run: () => "#f00" }, theme };
  const alone = eventsOf(marksOf([run(events)], scene), "step");
  assert.deepEqual([alone.head, alone.rows], [["Steps", "Event"], [["step 2", "knob: optimizer.lr 0.001 -> 0.0005"], ["step 1", "stage 2 of 3: more"]]]);
  const both = marksOf([run(events, "first"), run(events.slice(1), "second")], scene, [{ of: "r" }]);
  assert.deepEqual(eventsOf(both, "step").head, ["Steps", "Run", "Event"]);
  assert.deepEqual(eventsOf(both, "step", [1, 1]).rows.map(([, name, text]) => [name, text]).sort(), [["first", "stage 2 of 3: more"], ["second", "stage 2 of 3: more"]], "what is zoomed out of sight is not listed");
  assert.equal(eventsOf(both, "step", [3, 4]), null);
  const many = Array.from({ length: 100 }, (_, x) => ({ x, text: `event ${x}`, run: "" }));
  assert.deepEqual([eventsOf(many, "step").rows.length, eventsOf(many, "step").title], [40, "Events marked in the plot, 40 of 100, newest first"]);
});

test("numbers leave as CSV that no spreadsheet takes for a formula", () => {
  const one = run([], '=cmd "x"');
  const text = csvOf([{ name: one.name, at: (steps, kind) => one.clock.at(steps, kind), series: new Map([["loss", one.series.get("loss").merged()]]) }], ["loss", "heldout_loss"]);
  assert.equal(text, 'run,step,seconds,tokens,flops,loss,heldout_loss\r\n"\'=cmd ""x""",1,1,10,1000000000,3,\r\n"\'=cmd ""x""",2,2,20,2000000000,,\r\n"\'=cmd ""x""",3,3,30,3000000000,1.5,\r\n');
});

test("layers leave as CSV, one row per record and layer, each with whose it is", () => {
  const layers = new Layers(2, ["state", "keep"]);
  layers.append({ steps: [10], values: new Map([["state", Uint8Array.of(0, 255)], ["keep", Float32Array.of(0.5, NaN)]]) });
  assert.equal(csvOfLayers("C, muon", layers, ["running"]), 'run,step,layer,state,keep\r\n"C, muon",10,1,running,0.5\r\n"C, muon",10,2,,\r\n');
});

test("events leave as CSV and stand in a table, whole and with whose they are", () => {
  const text = `forked: ${"optimizer.nesterov True -> None, ".repeat(20)}end`;
  const events = [{ name: "b", time: 1, step: 58, kind: "fork", text }, { name: "=a", time: null, step: 1200, kind: "start", text: "training" }];
  assert.equal(csvOfEvents(events), `run,time,step,kind,text\r\nb,1970-01-01T00:00:01.000Z,58,fork,"${text}"\r\n'=a,,1200,start,training\r\n`);
  assert.deepEqual(tableOfEvents(events).rows, [["58", "b", "fork", text], ["1,200", "=a", "start", "training"]]);
  assert.deepEqual(tableOfEvents(events.slice(0, 1)).head, ["Step", "Kind", "Event"]);
  assert.equal(tableOfEvents([]).note, "Nothing has happened yet.");
});

test("a saved picture of one of several runs names that one and no other", () => {
  const runs = [{ name: "B lion", place: 0 }, { name: "C muon", place: 1 }];
  const colours = { run: () => "#123456", dash: () => [] };
  const items = [{ text: "ramp", ramp: ["#000", "#fff"] }];
  assert.deepEqual(sheetOf("Layer activity", runs.slice(1), items, colours), { title: "Layer activity · C muon", legend: items });
  const both = sheetOf("Loss", runs, items, colours);
  assert.deepEqual([both.title, both.legend.map(({ text }) => text)], ["Loss", ["B lion", "C muon", "ramp"]]);
});

test("a ring at the edge of a saved picture is whole", () => {
  const x = Float64Array.of(0, 4);
  const made = picture({ lines: [{ name: "held-out", x, y: Float64Array.of(5, 1), stroke: "#123456", points: true, format: String }] });
  const svg = drawn(made);
  const clipped = /<g clip-path[^>]*>(.*?)<\/g>/s.exec(svg)[1];
  assert.ok(!clipped.includes("<circle"));
  assert.equal(svg.slice(svg.indexOf(clipped) + clipped.length).match(/<circle/g).length, 2);
  const zoomed = drawn({ ...made, window: [0, 2] });
  assert.equal(zoomed.slice(zoomed.indexOf("</g>")).match(/<circle/g).length, 1, "what lies outside is not drawn beside the picture");
});

test("a file is named for all of its runs, how many there are first", () => {
  assert.equal(fileName(["Loss", ...whose(["quickstart", "lansy", "dropper", "steered"])], "png"), "loss-4-runs-quickstart-lansy-dropper-steered.png");
  assert.equal(fileName(["Loss", ...whose(["one"])], "png"), "loss-one.png");
});

test("a table holds the window, newest first", () => {
  const line = { name: "loss", x: Float64Array.of(1, 2, 3, 4), y: Float64Array.of(9, 8, 7, 6), format: String };
  const { head, rows, note, part } = tableOf([line], "step", [2, 3]);
  assert.deepEqual([head, rows], [["Steps", "loss"], [["step 3", "7"], ["step 2", "8"]]]);
  assert.match(note, /2 of 4 records \(zoomed\)/);
  assert.deepEqual([part, tableOf([line], "step").part], [true, false]);
  assert.deepEqual([tableOf([], "step").note, tableOf([], "step").part], ["Nothing recorded yet.", false]);
});

test("a table has no value where none was measured: after the end of a run, between two scores", () => {
  const steps = (count, every = 1) => Float64Array.from({ length: count }, (_, i) => (i + 1) * every);
  const line = (name, x) => ({ name, x, y: x.map((at) => at / 100), format: String });
  const lines = [line("short", steps(261)), line("long", steps(562)), line("held-out", Float64Array.of(100, 261, 562))];
  const { head, rows, note } = tableOf(lines, "step");
  const at = Object.fromEntries(rows.map(([x, ...cells]) => [x, cells]));
  assert.deepEqual(head.slice(1), ["short", "long", "held-out"]);
  assert.deepEqual(at["step 562"], ["–", "5.62", "5.62"]);
  assert.deepEqual(at["step 261"], ["2.61", "2.61", "2.61"], "each run's end, every score");
  assert.deepEqual(at["step 100"], ["1", "1", "1"]);
  assert.deepEqual(at["step 547"], ["–", "5.47", "–"]);
  assert.ok(rows.every(([x, ...cells]) => cells.every((text) => text === "–" || Math.round(Number(text) * 100) === Number(x.slice(5)))), "each value is of its row");
  assert.deepEqual(rows.map(([x]) => Number(x.slice(5))), [...rows.map(([x]) => Number(x.slice(5)))].sort((a, b) => b - a));
  assert.ok(rows.length <= 42 && note === `${rows.length} of 562 records, newest first`);
});

test("a table over time has rows of every run, whose records never fall on one another", () => {
  const slow = { name: "slow", x: Float64Array.from({ length: 100 }, (_, i) => 7 * i + 3), y: new Float64Array(100).fill(2), format: String };
  const fast = { name: "fast", x: Float64Array.from({ length: 700 }, (_, i) => 2 * i), y: new Float64Array(700).fill(1), format: String };
  const { rows } = tableOf([slow, fast], "seconds");
  assert.equal(new Set(rows.map(([x]) => x)).size, rows.length, "no two rows read the same");
  assert.ok(rows.filter(([, value]) => value === "2").length >= 20 && rows.filter(([, , value]) => value === "1").length >= 20);
  assert.deepEqual(rows[0].slice(1), ["–", "1"], "the slow run had ended by then");
});

test("the speed that is drawn is that of the last ten seconds, as the state says it", () => {
  const steps = Float64Array.from({ length: 40 }, (_, i) => i + 1);
  const clock = { at: (of, kind) => of.map((step) => (kind === "seconds" ? step : 100 * step)) };
  const y = Float64Array.from(steps, (step) => (step % 2 ? 1000 : 10));
  assert.deepEqual([...recentSpeeds(clock, { steps, y })].slice(1), steps.map(() => 100).slice(1).reduce((all, v) => [...all, v], []));
});

test("a smoothed line is kept for as long as its numbers are", () => {
  const line = run().line("loss", "step");
  assert.equal(smoothed(line, 0.1), smoothed(line, 0.1));
  assert.notEqual(smoothed(line, 0.2), smoothed({ ...line, y: line.y.slice() }, 0.2));
});

test("held-out scores are one line to the last, which is filled where it is of all tokens; those of a part are marked", () => {
  const [x, y] = [Float64Array.of(10, 20, 30), Float64Array.of(6, 5.08, 4.85)];
  const run = (status, heldout_loss = 4.85) => ({ status: { status, heldout_loss }, line: () => ({ x, y, steps: x }) });
  const told = (...of) => scoresOf(run(...of), "step").map((line) => [line.whole, Array.from(line.y, line.format)]);
  assert.deepEqual(told("running"), [[false, ["~6.000", "~5.080", "~4.850"]]]);
  assert.deepEqual(told("stopped"), told("running"));
  assert.deepEqual(told("finished"), [[false, ["~6.000", "~5.080", "4.850"]], [true, ["4.850"]]]);
  assert.deepEqual(told("finished", null), told("running"), "it diverged: none of a part takes its place");
  assert.deepEqual(scoresOf({ line: () => null }, "step"), []);
  const lines = scoresOf(run("finished"), "step").map((line) => ({ ...line, name: "held-out", stroke: "#123456", points: true }));
  const circles = drawn(picture({ lines, extent: [0, 40] })).match(/<circle[^>]*>/g);
  assert.deepEqual(circles.map((circle) => /fill="(.*?)"/.exec(circle)[1]), ["#fff", "#fff", "#fff", "#123456"]);
  const legend = [{ text: "on all of them", line: { stroke: "#123456", ring: true, whole: true } }];
  assert.match(sheetSvg({ title: "Loss", legend, width: 700, height: 300, theme, body: () => "" }), /<circle[^>]*fill="#123456"/);
});

test("a loss of several parts is known by names alone, before the page has asked for their numbers", () => {
  const run = { series: new Map([["loss", {}]]), others: ["recall", "generator_loss"] };
  assert.equal(partOfTokens([run]), "generator_loss");
  assert.equal(partOfTokens([{ ...run, others: ["accuracy"] }]), undefined);
});
