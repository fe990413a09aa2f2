import assert from "node:assert/strict";
import { test } from "node:test";

import { offeredOf, sought } from "../../workbench/jupyter/frontend/src/runs/chooser.js";
import { COLUMNS } from "../../workbench/jupyter/frontend/src/runs/columns.js";
import { STATES } from "../../workbench/jupyter/frontend/src/runs/states.js";
import { Knobs, asksForKnobs, filterOf, numberOf, terms } from "../../workbench/jupyter/frontend/src/runs/filter.js";

const row = (id, more = {}) => ({
  id, name: "bert tiny", status: "running", tags: [], notes: "", message: "", owner: "ada", device: "H200", host: "n1",
  step: 100, progress: 0.5, loss: 2.5, heldout_loss: null, tokens_per_second: 12000, parent: null, ...more,
});
const knobs = new Knobs({
  runs: ["a", "b"],
  same: { "architecture.kind": "pre_ln", seed: 0 },
  differ: { "optimizer.kind": ["adamw", "lans"], "optimizer.lr": [0.001, 0.003], "objective.mask_rate.kind": ["linear", null], "data.batch_size": [16, 32] },
});
const finds = (text, rows = [row("a", { tags: ["base"] }), row("b", { name: "gpt", status: "failed", tags: ["database"], loss: null })]) =>
  rows.filter(filterOf(text, knobs).test).map(({ id }) => id).join("");

test("plain words must all be somewhere", () => {
  assert.equal(finds(""), "ab");
  assert.equal(finds("BERT"), "a");
  assert.equal(finds("bert gpt"), "");
  assert.equal(finds('"bert tiny"'), "a");
  assert.equal(finds("-bert"), "b");
  assert.equal(finds("h200"), "ab");
});

test("a column by its name; half a tag is not the tag", () => {
  assert.equal(finds("state:run"), "a");
  assert.equal(finds("state=failed"), "b");
  assert.equal(finds("tag:base"), "a");
  assert.equal(finds("tag:data"), "b");
  assert.equal(finds("-tag:base"), "b");
  assert.equal(finds("name:tiny owner:ad"), "a");
  assert.equal(finds("state!=failed"), "a");
});

test("progress counts to a hundred, as its column does", () => {
  const rows = [row("a", { progress: 1 }), row("b", { progress: 0.5 }), row("c", { progress: null })];
  assert.equal(finds("progress<100", rows), "b");
  assert.equal(finds("progress=100", rows), "a");
  assert.equal(finds("progress:50%", rows), "b");
  assert.equal(finds("progress>1", rows), "ab");
});

test("a knob is found by the title of its column", () => {
  const found = new Knobs({ runs: ["a"], same: { "budget.amount": 60, "budget.unit": "seconds" }, differ: {} });
  assert.deepEqual(found.paths("budget"), ["budget.amount"]);
  assert.equal(filterOf("budget:60", found).problem, "");
});

test("every column of the table is searched by its name", () => {
  for (const { key, title } of COLUMNS) for (const name of [key, title]) assert.doesNotMatch(filterOf(`${name}:1`, knobs).problem, /no column/, name);
});

test("a state that is none is told, with those that there are", () => {
  assert.equal(filterOf("state:bogus", knobs).problem, `no state 'bogus'; there are ${STATES.join(", ")}`);
  assert.equal(filterOf("state:Fin -status:lost", knobs).problem, "");
});

test("when a run has started: days, minutes, so long ago", () => {
  const now = new Date(2026, 10, 24, 0, 30).getTime();
  const at = (...when) => new Date(2026, 10, ...when).getTime() / 1000;
  const rows = [row("a", { started: at(24, 0, 10) }), row("b", { started: at(23, 23, 50) }), row("c", { started: at(23, 9, 5) }), row("d", { started: at(22, 12) }), row("e", { started: null })];
  const found = (text) => rows.filter(filterOf(text, knobs, now).test).map(({ id }) => id).join("");
  const asked = {
    "started>yesterday": "a", "started>=yesterday": "abc", "started:yesterday": "bc", "started=today": "a", "started!=today": "bcd", "started<today": "bcd", "started<=2026-11-23": "bcd",
    "started<2026-11-23": "d", "started:2026-11-23T09:05": "c", 'started>"2026-11-23 09:05"': "ab", "started:0:10": "a", "started:1h": "ab", "started>1h": "ab", "started<1h": "cd", "started:2d": "abcd", "-started:2d": "e", "started>30min": "a",
  };
  for (const [text, ids] of Object.entries(asked)) assert.equal(found(text), ids, text);
  for (const text of ["soon", "2026-13-01", "2026-11-31", "25:00", "7"]) assert.match(filterOf(`started>${text}`, knobs, now).problem, /is not a time; write today, yesterday, 2026-11-23/, text);
});

test("a race or a sweep by its name", () => {
  const rows = [row("a", { experiment: "race:baseline-vs-mine 20260131-081500" }), row("b", { experiment: "sweep:mine 20260131-081500" }), row("c", { experiment: "", tags: ["mine"] })];
  assert.equal(finds("race:mine", rows), "a");
  assert.equal(finds("sweep:mine", rows), "b");
  assert.equal(finds("-race:base", rows), "bc");
  assert.equal(finds("race:2026", rows), "", "the moment is no part of its name");
});

test("numbers of the table, also as people write them; what is not there is not less", () => {
  assert.equal(finds("loss<3"), "a");
  assert.equal(finds("loss>=2.5"), "a");
  assert.equal(finds("speed>11k progress=50%"), "ab");
  assert.equal(finds("heldout<100"), "");
  assert.equal(numberOf("1e-3"), 0.001);
  assert.equal(numberOf("2M"), 2e6);
  assert.ok(Number.isNaN(numberOf("fast")));
  assert.ok(Number.isNaN(numberOf("%")));
});

test("knobs by the end of their path, choices by their axis", () => {
  assert.equal(finds("lr>1e-3"), "b");
  assert.equal(finds("optimizer.lr<=0.001"), "a");
  assert.equal(finds("optimizer:lans"), "b");
  assert.equal(finds("mask_rate:lin"), "a");
  assert.equal(finds("architecture:pre_ln seed=0"), "ab");
  assert.equal(finds("batch_size:32"), "b");
  assert.equal(finds("optimizer!=lans"), "a");
});

test("what cannot be understood is said and passed over", () => {
  assert.match(filterOf("loss>fast", knobs).problem, /'fast' is not a number/);
  assert.match(filterOf("batch_sise>3", knobs).problem, /did you mean batch_size\?/);
  assert.match(filterOf("name>3", knobs).problem, /name is text/);
  // Each of several is named, each once.
  assert.match(filterOf("loss>fast name>3 loss>fast", knobs).problem, /^loss>fast: [^;]+; name is text[^;]*$/);
  assert.equal(finds("batch_sise>3 bert"), "a");
  // Until the knobs are there nothing is said: they are on their way.
  assert.deepEqual(filterOf("lr>1", null).problem, "");
});

test("half-typed terms ask for nothing and say what is missing", () => {
  assert.equal(finds("lr> state: started>"), "ab");
  assert.equal(filterOf("lr>", knobs).problem, "lr> is incomplete: write a number after it");
  assert.match(filterOf("state:", knobs).problem, /^state: is incomplete: write one of stalled, running, /);
  assert.match(filterOf("started>", knobs).problem, /^started> is incomplete: write today, yesterday, /);
  assert.match(filterOf("lrr>", knobs).problem, /no column or knob 'lrr'; did you mean lr\?/);
  assert.deepEqual(terms("  "), []);
  assert.deepEqual(terms('-tag:"a b'), [{ not: true, key: "tag", sign: ":", value: "a b" }]);
  assert.equal(terms("a<b>c:d=e ((( \"\" --").length > 0, true);
});

test("only questions about recipes need the knobs", () => {
  assert.equal(asksForKnobs("bert state:running loss<3"), false);
  assert.equal(asksForKnobs("lr>1"), true);
});

test("a knob for a column is found by words of its path and of its help", () => {
  const { same, differ } = knobs;
  const told = new Knobs({ runs: ["a", "b"], same, differ, texts: { "optimizer.lr": "peak learning rate", "data.batch_size": "rows per step" } });
  assert.deepEqual(sought("lr", told), { paths: ["optimizer.lr"], problem: "" });
  assert.deepEqual(sought("Learning", told), { paths: ["optimizer.lr"], problem: "" });
  assert.deepEqual(sought("batch rows", told).paths, ["data.batch_size"]);
  assert.equal(sought("rate", told).problem, "'rate' is in 2 knobs: optimizer.lr (peak learning rate), objective.mask_rate.kind; name one");
  assert.equal(sought("batch_sise", told).problem, "no knob 'batch_sise'; did you mean batch_size?");
  const kinds = new Knobs({ runs: ["a", "b"], same: { "optimizer.kind": "adamw", "optimizer.lr": 1 }, differ: {} });
  assert.equal(sought("optimizr", kinds).problem, "no knob 'optimizr'; did you mean optimizer?");
  assert.equal(sought("optimizer.lrr", told).problem, "no knob 'optimizer.lrr'; did you mean optimizer.lr?");
});

test("a run that is newer than the knobs has none yet", () => {
  assert.equal(knobs.value("seed", "c"), null);
  assert.equal(finds("lr>0", [row("c")]), "");
});

test("knobs that differ are offered as columns, and none is left out without a word", () => {
  const differ = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`optimizer.knob${i}`, [1, 2]]));
  const knobs = (more) => new Knobs({ runs: ["a", "b"], same: {}, differ: { name: ["a", "b"], "budget.amount": [9, 5], "budget.unit": ["steps", "seconds"], ...differ, ...more } });
  assert.deepEqual(offeredOf(knobs({})), { paths: [...Object.keys(differ), "budget.amount"], more: 0 });
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`depth.knob${i}`, [1, 2]]));
  assert.equal(offeredOf(knobs(many)).paths.length + offeredOf(knobs(many)).more, 30);
  assert.equal(offeredOf(knobs(many)).more, 6);
  const asked = ["architecture.layers", "data.kind", "data.text.kind", "data.text.tokenizer.lowercase", "execution.precision", "objective.mask_rate.kind", "optimizer.kind", "optimizer.lr", "optimizer.schedule.kind", "optimizer.schedule.warmup", "other", "seed"];
  const kinds = ["optimizer.kind", "optimizer.schedule.kind", "data.kind"];
  const own = ["optimizer.lr", "optimizer.schedule.warmup", "architecture.layers", "seed", "execution.precision", "other"];
  const parts = ["objective.mask_rate.kind", "data.text.kind", "data.text.tokenizer.lowercase"];
  const mixed = new Knobs({ runs: ["a", "b"], same: {}, differ: Object.fromEntries(asked.map((path) => [path, [1, 2]])) });
  assert.deepEqual(offeredOf(mixed).paths, [...kinds, ...own, ...parts], "what people compare comes first");
  assert.deepEqual(offeredOf(null), { paths: [], more: 0 });
});
