// Runs put together: by their recipe without its seed, or by the value of a knob; mean and spread of what those reached
// that have finished, each seed once.
// Pure.

import { AMOUNT, columnOf, COLUMNS, knobText, ordered, pathOf, scoreKey, scoreNames, titleOf, UNIT } from "./columns.js";
import { experimentTitle } from "../format.js";
import { shown } from "./sheet.js";
import { countsOf, countTexts, many } from "./states.js";

/** Groups by everything that was asked, but for the seed. */
export const BY_RECIPE = "recipe";
/** No groups at all; without a choice the runs of an experiment stand together: of a race, a sweep or a tuning. */
export const FLAT = "flat";
// What tells repetitions apart, and what people call them.
const NOT_ASKED = new Set(["seed", "name", "notes"]);
// "baseline seed 3": a race's names.
const SEED = /[\s._-]*\bseed[\s._=-]*\d+$/i;
const SPREAD = COLUMNS.filter((column) => column.mean);
// Of a label with its knobs, and of "~13.215 ± 0.012", in pixels.
const LABEL_WIDTH = 240;
const STAT_WIDTH = 140;
// More knobs than these fit into no line.
const NAMED_KNOBS = 3;

/**
 * The groups of rows, in the order of their means where the table is sorted by a number, else of their first rows.
 * @param {object[]} rows as they are sorted
 * @param {string} by BY_RECIPE, or the key of a knob's column
 * @param {import("./filter.js").Knobs} knobs
 * @param {{key: string, direction: 1 | -1} | null} sort
 * @returns {{id: string, label: string, rows: object[], stats: Map<string, {mean: number, spread: number | null, count: number}>, counted: string, unlike: string}[]} `counted`: what `stats` are of; `unlike`: why they say little
 */
export function groupsOf(rows, by, knobs, sort = null) {
  const asked = knobs.asked.filter((path) => !NOT_ASKED.has(path));
  const recipes = by === BY_RECIPE ? recipesOf(knobs, asked) : null;
  const column = recipes ? null : columnOf(by, knobs);
  const asks = recipes ?? recipesOf(knobs, asked);
  const key = (row) => (recipes ? (recipes.get(row.id) ?? row.id) : JSON.stringify([column.value(row), column.steered?.(row)?.from, column.text(row)]));
  const groups = [...held(rows, (row) => `group:${key(row)}`)].map(([id, members]) => {
    const counted = countedOf(members, asks, knobs);
    return { id, rows: members, stats: statsOf(counted), counted: countedText(members, counted, recipes ? "seed" : "run"), unlike: budgetsText(counted, knobs) };
  });
  // Those alone by which these groups differ: what all rows shown have in common tells none from another.
  const told = [...new Set(asked.map((path) => (path === UNIT ? AMOUNT : path)))];
  const varied = told.filter((path) => new Set(groups.map((group) => knobText(path, group.rows[0], knobs))).size > 1);
  if (by === BY_RECIPE) labelRecipes(groups, varied, knobs);
  else for (const group of groups) group.label = knobLabel(by, group.rows[0], knobs);
  const mean = sort && columnOf(sort.key, knobs)?.mean;
  return mean ? ordered(groups, (group) => group.stats.get(sort.key)?.mean, sort.direction) : groups;
}

/**
 * Lines of a table in which the runs of an experiment stand together, in the place of the first of them.
 * @param {object[]} rows as they are sorted
 * @param {Object<string, string>} briefs what experiments say so far, by experimentName
 * @returns {({id: string, row: object, inside: false} | {id: string, group: object})[]}
 */
export function withExperiments(rows, briefs = {}) {
  const held = new Map();
  const lines = [];
  for (const row of rows) {
    const id = experimentOf(row);
    if (!id) lines.push({ id: row.id, row, inside: false });
    else if (held.has(id)) held.get(id).rows.push(row);
    else {
      // Arms differ: their mean would say nothing.
      const group = { id, label: experimentTitle(row), rows: [row], stats: new Map(), brief: briefs[experimentName(id)] ?? "" };
      held.set(id, group);
      lines.push({ id, group });
    }
  }
  return lines;
}

/** The group of a run's experiment; empty for any other run. */
export function experimentOf({ experiment }) {
  return experiment && `experiment:${experiment}`;
}

/** Whether a line of the table is an experiment. */
export const isExperiment = (id) => id.startsWith("experiment:");

/** What the kernel calls the experiment of such a line: "race:NAME 20260131-081500". */
export const experimentName = (id) => id.slice("experiment:".length);

// Of a thousand runs once per set of recipes, not with every letter of a filter.
const known = new WeakMap();

/** What was asked of each run, as one text. */
function recipesOf(knobs, asked) {
  if (!known.has(knobs)) known.set(knobs, new Map([...knobs.place.keys()].map((id) => [id, JSON.stringify(asked.map((path) => [knobs.value(path, id), knobs.steered(path, id)]))])));
  return known.get(knobs);
}

/** Mean and spread (the standard deviation of a sample; null of one run alone) of each number that some of them have. */
export function statsOf(rows) {
  const found = new Map();
  for (const column of [...SPREAD, ...scoreNames(rows).map((name) => columnOf(scoreKey(name), null))]) {
    const values = rows.map((row) => column.value(row)).filter((value) => value !== null && value !== undefined);
    if (!values.length) continue;
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    found.set(column.key, { mean, about: rows.map((row) => column.about?.(row)).find(Boolean) ?? "", spread: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : null, count: values.length });
  }
  return found;
}

/** The runs of a group that its mean is of: those that finished, and of one recipe and seed the first that was launched. */
function countedOf(rows, asks, knobs) {
  const first = new Map();
  for (const row of rows.filter(finished)) {
    const seed = knobs.value("seed", row.id);
    const key = seed === null ? row.id : JSON.stringify([asks.get(row.id), seed]);
    // Ids begin with the time of launch.
    if (!first.has(key) || row.id < first.get(key).id) first.set(key, row);
  }
  return [...first.values()];
}

const finished = (row) => row.status === "finished";

/** "4 seeds, 1 repeated, 1 running": how many runs a mean is of, and what stands beside them and is not in it. */
function countedText(rows, counted, noun) {
  const repeated = rows.filter(finished).length - counted.length;
  return [
    ...(counted.length ? [many(counted.length, noun)] : []),
    ...(repeated ? [`${repeated} repeated`] : []),
    ...countTexts(countsOf(rows.filter((row) => !finished(row)))),
  ].join(", ");
}

/** A column with room for what groups have to say. */
export function widened(column) {
  const least = column.key === "name" ? LABEL_WIDTH : column.mean ? STAT_WIDTH : 0;
  return { ...column, width: Math.max(column.width, least) };
}

/** "3.215 ± 0.012", or the mean alone; "~" before it where the value of one of them is marked so. */
export function statText(column, stat) {
  if (!stat) return "";
  const mean = `${stat.about ? "~" : ""}${column.mean(stat.mean)}`;
  return stat.spread === null ? mean : `${mean} ± ${column.mean(stat.spread)}`;
}

/** The value of a knob that all of a group have, else empty. */
export function shared(column, rows) {
  const texts = new Set(rows.map((row) => column.text(row)));
  return texts.size === 1 ? [...texts][0] : "";
}

function knobLabel(by, row, knobs) {
  const column = columnOf(by, knobs);
  return `${titleOf(pathOf(by))} = ${column.text(row) || "none"}`;
}

// Runs of other lengths are expected to end at other losses.
function budgetsText(rows, knobs) {
  const budgets = rows.map(({ id }) => ["amount", "unit"].map((part) => knobs.value(`budget.${part}`, id)));
  const texts = [...new Set(ordered(budgets, ([amount]) => amount, 1).filter(([amount]) => amount !== null).map(([amount, unit]) => `${shown(amount)} ${unit}`))];
  return texts.length < 2 ? "" : texts.length < 4 ? `different budgets: ${texts.join(", ")}` : `${texts.length} different budgets`;
}

/** Lists of what has one key, by it. */
function held(all, keyOf) {
  const found = new Map();
  for (const each of all) {
    const key = keyOf(each);
    if (found.has(key)) found.get(key).push(each);
    else found.set(key, [each]);
  }
  return found;
}

/** Each group by its name and its knobs; of groups of one name those knobs that tell them from each other, and no others. */
function labelRecipes(groups, varied, knobs) {
  // A kind brings knobs of its own along: it says more than any of them.
  const ranked = [...varied.filter(isKind), ...varied.filter((path) => !isKind(path))];
  const named = held(groups, ({ rows }) => nameOf(rows));
  for (const [name, same] of named) {
    const paths = same.length > 1 ? telling(same, ranked, knobs) : ranked;
    for (const group of same) {
      const told = paths.slice(0, NAMED_KNOBS).map((path) => knobWords(path, knobText(path, group.rows[0], knobs)));
      group.label = [name, ...told, ...(paths.length > NAMED_KNOBS ? ["…"] : [])].join(" · ");
    }
  }
}

const isKind = (path) => path.endsWith(".kind");

/** Knobs that tell groups apart, each only where it parts what those before it leave together (as workbench/client/titles.py does). */
function telling(groups, paths, knobs) {
  const found = [];
  let parts = [groups];
  for (const path of paths) {
    const finer = parts.flatMap((part) => [...held(part, ({ rows }) => knobText(path, rows[0], knobs)).values()]);
    if (finer.length > parts.length) found.push(path);
    parts = finer;
  }
  return found;
}

/** "lr 0.003", and "lans" for a kind. */
function knobWords(path, value) {
  return (isKind(path) || path === AMOUNT) && value ? value : `${titleOf(path)} ${value || "none"}`;
}

/** What names of repetitions have in common, without their seeds, else what most of them are called. */
function nameOf(rows) {
  const names = [...held(rows.map((row) => row.name.replace(SEED, "") || row.name), (name) => name)].sort(([, a], [, b]) => b.length - a.length);
  return names.length === 1 ? names[0][0] : beginning(names.map(([name]) => name)) || names[0][0];
}

// "bert-1", "bert-2" are "bert".
function beginning(names) {
  let end = names[0].length;
  for (const name of names) while (!name.startsWith(names[0].slice(0, end))) end--;
  return names[0].slice(0, end).replace(/[\s._=-]*$/, "");
}
