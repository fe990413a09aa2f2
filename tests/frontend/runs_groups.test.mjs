import assert from "node:assert/strict";
import { test } from "node:test";

import { BY_KEY, columnOf, knobKey, scoreKey, scoreNames, sorted } from "../../workbench/jupyter/frontend/src/runs/columns.js";
import { whole } from "../../workbench/jupyter/frontend/src/format.js";
import { filterOf, Knobs } from "../../workbench/jupyter/frontend/src/runs/filter.js";
import { BY_RECIPE, experimentName, experimentOf, groupsOf, isExperiment, shared, statsOf, statText, widened, withExperiments } from "../../workbench/jupyter/frontend/src/runs/groups.js";
import { countsOf, statesText } from "../../workbench/jupyter/frontend/src/runs/states.js";

const row = (id, heldout, more = {}) => ({ id, name: id, status: "finished", tags: [], notes: "", message: "", loss: null, heldout_loss: heldout, ...more });
// Two rates with two seeds each, and one run that names no rate.
const RUNS = [row("b-2", 3.2), row("b-1", 3.0), row("a-2", 2.5), row("a-1", 2.1), row("c", 9)];
const KNOBS = new Knobs({
  runs: RUNS.map(({ id }) => id),
  same: { "optimizer.kind": "adamw" },
  differ: { "optimizer.lr": [0.01, 0.01, 0.002, 0.002, null], seed: [2, 1, 2, 1, 1], name: RUNS.map(({ id }) => id) },
});

test("runs of one recipe stand together whatever their seed, with mean and spread", () => {
  const groups = groupsOf(RUNS, BY_RECIPE, KNOBS);
  assert.deepEqual(groups.map((group) => group.label), ["b · lr 0.01", "a · lr 0.002", "c · lr none"]);
  assert.deepEqual(groups.map((group) => group.rows.map(({ id }) => id)), [["b-2", "b-1"], ["a-2", "a-1"], ["c"]]);
  const { mean, spread, count } = groups[0].stats.get("heldout");
  assert.ok(Math.abs(mean - 3.1) < 1e-12 && count === 2);
  // Of a sample of two: their distance over the root of two.
  assert.ok(Math.abs(spread - 0.2 / Math.SQRT2) < 1e-12);
  assert.equal(statText(BY_KEY.get("heldout"), groups[0].stats.get("heldout")), "3.100 ± 0.141");
  assert.equal(statText(BY_KEY.get("heldout"), groups[2].stats.get("heldout")), "9.000", "one run has no spread");
  assert.equal(groups[0].stats.has("loss"), false);
});

test("groups are sorted by their means where the table is sorted by a number", () => {
  const order = (sort) => groupsOf(sorted(RUNS, sort, KNOBS), BY_RECIPE, KNOBS, sort).map((group) => group.label[0]).join("");
  assert.equal(order({ key: "heldout", direction: 1 }), "abc");
  assert.equal(order({ key: "heldout", direction: -1 }), "cba");
  assert.equal(order({ key: "name", direction: 1 }), "abc", "else as their first runs");
});

test("any knob is a column, sorts and groups", () => {
  const column = columnOf(knobKey("optimizer.lr"), KNOBS);
  assert.deepEqual([column.title, column.hint, column.text(RUNS[0]), column.text(RUNS[4])], ["lr", "optimizer.lr", "0.01", ""]);
  assert.equal(columnOf(knobKey("optimizer.kind"), KNOBS).title, "optimizer");
  assert.equal(columnOf(knobKey("optimizer.kind"), KNOBS).text(RUNS[0]), "adamw");
  assert.equal(columnOf(knobKey("optimizer.lr"), null).text(RUNS[0]), "", "before the recipes are there");
  assert.equal(columnOf("gone", KNOBS), undefined);
  const sort = { key: knobKey("optimizer.lr"), direction: 1 };
  assert.deepEqual(sorted(RUNS, sort, KNOBS).map(({ id }) => id), ["a-2", "a-1", "b-2", "b-1", "c"], "what has none comes last");
  const groups = groupsOf(RUNS, knobKey("seed"), KNOBS);
  assert.deepEqual(groups.map((group) => [group.label, group.rows.length]), [["seed = 2", 2], ["seed = 1", 3]]);
  assert.equal(shared(column, groups[0].rows), "", "they differ");
  assert.equal(shared(columnOf(knobKey("seed"), KNOBS), groups[0].rows), "2");
});

test("the line of an experiment says how its runs stand, without being unfolded", () => {
  const runs = ["finished", "running", "finished", "queued"].map((status, i) => row(`r${i}`, 1, { status }));
  assert.equal(statesText(countsOf(runs)), "4 runs: 1 running, 1 queued, 2 finished");
  assert.equal(statesText(countsOf([runs[0], runs[2]])), "2 runs, finished");
  assert.equal(statesText(countsOf([runs[3]])), "1 run, queued");
});

test("groups have room for a mean with its spread", () => {
  assert.equal(widened(BY_KEY.get("heldout")).width > BY_KEY.get("heldout").width, true);
  // In bold digits, with the padding of a cell.
  assert.ok(widened(BY_KEY.get("heldout")).width >= 8.2 * "~13.215 ± 0.012".length + 16);
  assert.equal(widened(BY_KEY.get("state")).width, BY_KEY.get("state").width);
});

test("names of repetitions are called by what they have in common", () => {
  const runs = ["bert seed 1", "bert seed 2"].map((name, i) => row(`r${i}`, 1, { name }));
  const knobs = new Knobs({ runs: ["r0", "r1"], same: { "optimizer.lr": 1 }, differ: { seed: [1, 2], name: runs.map(({ name }) => name) } });
  assert.equal(groupsOf(runs, BY_RECIPE, knobs)[0].label, "bert");
  assert.equal(statsOf([]).size, 0);
});

test("a mean is of runs that have finished, each seed once, and the row says what is not in it", () => {
  const named = [["5-again", "baseline seed 0", 0, 6.2], ["4", "baseline seed 3", 3, 9, "running"], ["3", "baseline seed 1", 1, 6.4], ["2", "baseline seed 0", 0, 6.0], ["1", "lansy", 2, 6.2], ["0", "baseline seed 2", 2, 7, "stopped"]];
  const runs = named.map(([id, name, , heldout, status = "finished"]) => row(id, heldout, { name, status }));
  const knobs = new Knobs({ runs: named.map(([id]) => id), same: { "optimizer.lr": 1 }, differ: { seed: named.map(([, , seed]) => seed), name: named.map(([, name]) => name) } });
  const [group, none] = groupsOf(runs, BY_RECIPE, knobs);
  assert.equal(none, undefined);
  assert.equal(group.label, "baseline", "what most are called, without their seeds");
  assert.equal(group.counted, "3 seeds, 1 repeated, 1 running, 1 stopped");
  const { mean, count } = group.stats.get("heldout");
  assert.ok(Math.abs(mean - 6.2) < 1e-12 && count === 3, "of two runs of a seed the first");
  assert.equal(group.rows.length, 6);
  const [running] = groupsOf(runs.slice(1, 2), BY_RECIPE, knobs);
  assert.deepEqual([running.counted, running.stats.size, running.label], ["1 running", 0, "baseline"]);
  assert.equal(groupsOf(runs, knobKey("optimizer.lr"), knobs)[0].counted, "3 runs, 1 repeated, 1 running, 1 stopped");
});

test("equal seeds of unlike recipes are no repetitions", () => {
  assert.deepEqual(groupsOf(RUNS, knobKey("optimizer.kind"), KNOBS).map(({ counted }) => counted), ["5 runs"]);
});

test("groups of one name are called by what tells them from each other, kinds first", () => {
  const names = ["quickstart", "quickstart", "quickstart", "fast"];
  const runs = names.map((name, i) => row(`r${i}`, 1, { name }));
  const differ = { "architecture.heads": [2, 2, 2, 8], "architecture.layers": [6, 6, 6, 2], "architecture.width": [64, 64, 64, 32], "optimizer.beta": [0.9, null, 0.9, 0.9], "optimizer.kind": ["adamw", "lans", "adamw", "adamw"], "optimizer.lr": [0.001, 0.003, 0.01, 0.001], name: names };
  const labels = (count) => groupsOf(runs.slice(0, count), BY_RECIPE, new Knobs({ runs: runs.map(({ id }) => id), same: {}, differ })).map(({ label }) => label);
  assert.deepEqual(labels(2), ["quickstart · adamw", "quickstart · lans"]);
  assert.deepEqual(labels(4), ["quickstart · adamw · lr 0.001", "quickstart · lans · lr 0.003", "quickstart · adamw · lr 0.01", "fast · adamw · heads 8 · layers 2 · …"]);
});

test("runs of a race stand together where the first of them is; two races of one name stay two", () => {
  const [newer, older] = ["race:a-vs-b 20260102-000000", "race:a-vs-b 20260101-000000"];
  const of = (id, experiment = "") => row(id, 3, { experiment });
  const rows = [of("mine"), of("b", newer), of("c", older), of("a", newer), of("other")];
  const lines = withExperiments(rows, { [newer]: "a better", "sweep:gone 20260101-000000": "best 3.215" });
  assert.deepEqual(lines.map(({ group, id }) => group?.rows.length ?? id), ["mine", 2, 1, "other"]);
  assert.equal(lines[1].group.label, "race a-vs-b");
  assert.deepEqual(lines.flatMap(({ group }) => group?.brief ?? []), ["a better", ""], "what each says so far, and nothing where nobody has read it");
  assert.equal(lines[1].id, experimentOf(rows[3]));
  assert.equal(experimentOf(rows[0]), "");
});

test("the line of a race names it as the kernel does", () => {
  const id = experimentOf(row("20260131-081500-mine-s0-0a1b2c", 3, { experiment: "race:deep-or-wide 20260131-081500" }));
  assert.equal(experimentName(id), "race:deep-or-wide 20260131-081500");
  assert.deepEqual([id, "group:[1]", "20260131-081500-a"].map(isExperiment), [true, false, false]);
});

// Launched with 0.001 and steered to 0.002; launched with 0.002; launched with 0.001.
const STEERED = [row("s", 3), row("always", 2), row("never", 1)];
const LR = knobKey("optimizer.lr");
const IN_FORCE = new Knobs({ runs: ["s", "always", "never"], same: {}, differ: { "optimizer.lr": [0.002, 0.002, 0.001] }, steered: { s: { "optimizer.lr": [0.001, 1214] } } });

test("a steered knob shows, sorts and filters by the value in force, and says since when", () => {
  const column = columnOf(LR, IN_FORCE);
  assert.deepEqual(STEERED.map((each) => [column.text(each), column.value(each), column.tip(each)]), [["0.001 → 0.002", 0.002, `steered from 0.001 at step ${whole(1214)}`], ["0.002", 0.002, ""], ["0.001", 0.001, ""]]);
  assert.deepEqual(sorted(STEERED, { key: LR, direction: 1 }, IN_FORCE).map(({ id }) => id), ["never", "s", "always"]);
  assert.deepEqual(STEERED.filter(filterOf("lr>1e-3", IN_FORCE).test).map(({ id }) => id), ["s", "always"]);
});

test("a steered run stands with none that always had the value, by knob and by recipe", () => {
  const members = (groups) => groups.map((group) => group.rows.map(({ id }) => id));
  const groups = groupsOf(STEERED, LR, IN_FORCE);
  assert.deepEqual(members(groups), [["s"], ["always"], ["never"]]);
  assert.deepEqual(groups.map(({ label }) => label), ["lr = 0.001 → 0.002", "lr = 0.002", "lr = 0.001"]);
  const two = new Knobs({ runs: ["s", "always"], same: { "optimizer.lr": 0.002 }, differ: {}, steered: { s: { "optimizer.lr": [0.001, null] } } });
  const recipes = groupsOf(STEERED.slice(0, 2), BY_RECIPE, two);
  assert.deepEqual(members(recipes), [["s"], ["always"]]);
  assert.deepEqual(recipes.map(({ label }) => label), ["s · lr 0.001 → 0.002", "always · lr 0.002"]);
});

test("a budget is told with its unit", () => {
  const runs = ["s", "always", "never"].map((id) => row(id, 1, { name: "steered" }));
  const differ = { "budget.unit": ["seconds", "steps", "steps"], "budget.amount": [90, 25, 1] };
  const knobs = new Knobs({ runs: runs.map(({ id }) => id), same: { "optimizer.lr": 1 }, differ });
  assert.deepEqual(groupsOf(runs, BY_RECIPE, knobs).map(({ label }) => label), ["steered · 90 s", "steered · 25 steps", "steered · 1 step"]);
  const column = columnOf(knobKey("budget.amount"), knobs);
  assert.deepEqual(groupsOf(runs, knobKey("budget.amount"), knobs).map(({ label }) => label), ["budget = 90 s", "budget = 25 steps", "budget = 1 step"]);
  assert.equal(groupsOf(runs, knobKey("budget.amount"), new Knobs({ runs: runs.map(({ id }) => id), same: { "budget.amount": 30 }, differ: { "budget.unit": ["seconds", "steps", "steps"] } })).length, 2);
  assert.deepEqual([column.title, runs.map(column.text), runs.map(column.value)], ["budget", ["90 s", "25 steps", "1 step"], [90, 25, 1]]);
  const alike = new Knobs({ runs: runs.map(({ id }) => id), same: { "budget.amount": 30 }, differ: { "budget.unit": ["seconds", "steps", "steps"] } });
  assert.deepEqual(groupsOf(runs, BY_RECIPE, alike).map(({ label }) => label), ["steered · 30 s", "steered · 30 steps"]);
});

test("a group whose runs trained for different lengths says so", () => {
  const knobs = (amounts) => new Knobs({ runs: ["s", "always", "never"], same: { "optimizer.lr": 0.1, "budget.unit": "seconds" }, differ: { "budget.amount": amounts } });
  assert.equal(groupsOf(STEERED, LR, knobs([150, 20, 20]))[0].unlike, "different budgets: 20 seconds, 150 seconds");
  assert.equal(groupsOf(STEERED, LR, new Knobs({ runs: ["s", "always", "never"], same: { "optimizer.lr": 0.1, "budget.amount": 20, "budget.unit": "seconds" }, differ: {} }))[0].unlike, "");
});

test("scores of benchmarks are columns, with mean and spread over seeds", () => {
  const rows = [row("a", 3, { scores: { blimp: 0.7 }, held_against: { blimp: { untrained: 0.504, chance: 0.5, "word frequencies": 0.551 } } }), row("b", 2, { scores: { blimp: 0.8, lambada: 0.1 } }), row("c", 1)];
  assert.deepEqual(scoreNames(rows), ["blimp", "lambada"]);
  const column = columnOf(scoreKey("blimp"), null);
  assert.deepEqual(rows.map((each) => column.text(each)), ["0.7000 (0.504, 0.551)", "0.8000", ""]);
  assert.equal(column.tip(rows[0]), "held against: untrained 0.504, chance 0.5, word frequencies 0.551");
  assert.equal(column.text(row("d", 4, { scores: { blimp: 0.9 }, held_against: { blimp: { majority: 0.622 } } })), "0.9000 (0.622)");
  assert.deepEqual(sorted(rows, { key: column.key, direction: column.first }).map(({ id }) => id), ["b", "a", "c"]);
  const { mean, spread, count } = statsOf(rows).get(column.key);
  assert.deepEqual([column.mean(mean), spread.toFixed(3), count], ["0.7500", "0.071", 2]);
});
