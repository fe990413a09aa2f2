// The columns of the table of runs: what they are called, how they sort, and what stands in them. Pure.

import { heldout, partScore, queueText, shareDone, whole } from "../format.js";
import { shown } from "./sheet.js";
import { STATES } from "./states.js";

/**
 * One column.
 * `value` is what it sorts and filters by (null: nothing said), `text` what stands in a cell, `first` the direction of
 * the first click on its header, `width` in pixels; `mean` writes the mean of a group of runs; `about` says why a value
 * is marked "~", `tip` what else there is to say of it, `hint` more than the title.
 */
export const COLUMNS = [
  { key: "name", title: "name", first: 1, width: 170, value: (row) => row.name, text: (row) => row.name, fixed: true },
  {
    key: "state", title: "state", first: 1, width: 104,
    value: (row) => STATES.indexOf(row.status), text: (row) => row.status,
  },
  { key: "progress", title: "progress", first: -1, width: 112, value: (row) => row.progress, text: (row) => queueText(row) || shareDone(row.progress) },
  { key: "step", title: "step", first: -1, width: 70, number: true, value: (row) => row.step, text: (row) => whole(row.step) },
  { key: "loss", title: "loss", hint: "training loss of the last step", first: 1, width: 76, number: true, value: (row) => number(row.loss), text: (row) => fixed(row.loss), mean: (value) => value.toFixed(3) },
  { key: "heldout", title: "held-out", first: 1, width: 92, number: true, value: (row) => number(row.heldout_loss), text: (row) => fixed(row.heldout_loss) && heldout(row), about: partScore, mean: (value) => value.toFixed(3) },
  { key: "speed", title: "tokens/s", first: -1, width: 96, number: true, value: (row) => number(row.tokens_per_second), text: speedText, mean: whole },
  { key: "owner", title: "owner", first: 1, width: 84, value: (row) => row.owner || null, text: (row) => row.owner },
  { key: "device", title: "device", first: 1, width: 110, value: (row) => row.device || null, text: (row) => row.device },
  { key: "started", title: "started", first: -1, width: 108, value: (row) => row.started, text: (row, now) => since(row.started, now) },
  { key: "tags", title: "tags", first: 1, width: 108, value: (row) => row.tags.join(" ") || null, text: (row) => row.tags.join(" ") },
  { key: "note", title: "note", first: 1, width: 84, value: (row) => row.notes || null, text: noteText },
];

export const BY_KEY = new Map(COLUMNS.map((column) => [column.key, column]));

/** Of the boxes and circles before the name. */
export const PICK_WIDTH = 72;
// In this order, where there is little room.
const GIVE_WAY = ["device", "speed", "note", "tags", "started", "step", "owner", "heldout"];

/** Pixels that a line with these columns takes. */
export const lineWidth = (columns) => columns.reduce((sum, { width }) => sum + width, PICK_WIDTH);

/**
 * The columns that fit where the user has chosen none; who owns a run is news where there are two owners.
 * @param {number} width of the table
 * @param {object[]} rows
 * @param {(column: object) => object} sized a column as wide as it is drawn
 */
export function fitting(width, rows, sized = (column) => column) {
  const fit = new Set(COLUMNS);
  if (rows.every(({ owner }) => owner === rows[0].owner)) fit.delete(BY_KEY.get("owner"));
  for (const key of GIVE_WAY) if (lineWidth([...fit].map(sized)) > width) fit.delete(BY_KEY.get(key));
  return [...fit].map(({ key }) => key);
}

const SCORE = "score:";
const SCORE_WIDTH = 168;

// As Python writes them in four digits.
const short = (value) => String(Number(value.toPrecision(4)));

/** The key of the column of a benchmark's score, by its name. */
export const scoreKey = (name) => SCORE + name;

/** Names of the scores that some of these rows have. */
export const scoreNames = (rows) => [...new Set(rows.flatMap(({ scores }) => Object.keys(scores ?? {})))].sort();

function scoreColumn(key) {
  const name = key.slice(SCORE.length);
  const value = (row) => number(row.scores?.[name]);
  const against = (row) => row.held_against?.[name] ?? {};
  // The untrained model, where it was scored, and the best that needs no model; all of them, by name, are in the tip.
  const beside = (row) => {
    const { untrained, ...others } = against(row);
    const values = [...(untrained === undefined ? [] : [untrained]), ...Object.values(others).sort((one, other) => other - one).slice(0, 1)];
    return values.length ? ` (${values.map(short).join(", ")})` : "";
  };
  const text = (row) => (value(row) === null ? "" : `${value(row).toFixed(4)}${beside(row)}`);
  const tip = (row) => {
    const all = Object.entries(against(row)).map(([other, score]) => `${other} ${short(score)}`);
    return all.length ? `held against: ${all.join(", ")}` : "";
  };
  return { key, title: name, hint: `newest score of ${name}, and in brackets the untrained model, where it was scored, and the best that needs none`, first: -1, width: SCORE_WIDTH, number: true, value, text, tip, mean: (score) => score.toFixed(4) };
}

const KNOB = "knob:";
const KNOB_WIDTH = 116;

/** The key of the column of a knob, by its path in the recipe. */
export const knobKey = (path) => KNOB + path;

/** The path of a knob's column; empty for any other key. */
export const pathOf = (key) => (key.startsWith(KNOB) ? key.slice(KNOB.length) : "");

/**
 * The column of a key: one of ours, a score, or a knob of the recipe.
 * @param {string} key
 * @param {import("./filter.js").Knobs | null} knobs null while they are not there yet
 * @returns {object | undefined} undefined when there is no such column
 */
export function columnOf(key, knobs) {
  if (key.startsWith(SCORE)) return scoreColumn(key);
  const path = pathOf(key);
  if (!path) return BY_KEY.get(key);
  const value = (row) => knobs?.value(path, row.id) ?? null;
  const steered = (row) => knobs?.steered(path, row.id) ?? null;
  const text = (row) => knobText(path, row, knobs);
  const tip = (row) => (steered(row) ? steeredText(steered(row)) : "");
  return { key, title: titleOf(path), hint: path, first: 1, width: KNOB_WIDTH, value, steered, text, tip };
}

/** An amount and its unit say nothing without each other: they are shown as one knob, which sorts by the amount. */
export const [AMOUNT, UNIT] = ["budget.amount", "budget.unit"];

/** The value of a knob in a run, empty where it has none; "0.001 → 0.002" where it was steered. */
export function knobText(path, row, knobs) {
  const value = knobs?.value(path, row.id) ?? null;
  const steered = knobs?.steered(path, row.id);
  if (value === null) return "";
  const text = steered ? `${shown(steered.from)} → ${shown(value)}` : shown(value);
  return path === AMOUNT ? `${text} ${unitText(text, knobs.value(UNIT, row.id))}`.trim() : text;
}

/** As short as workbench/client/titles.py tells it: "s", "steps", "step" of one. */
function unitText(amount, unit) {
  if (unit === "seconds") return "s";
  return amount === "1" ? (unit ?? "").replace(/s$/, "") : (unit ?? "");
}

function steeredText({ from, step }) {
  return `steered from ${shown(from)}${step === null ? "" : ` at step ${whole(step)}`}`;
}

/** A path as short as it says something: "lr", and "optimizer" for the kind of one. */
export function titleOf(path) {
  const parts = path.split(".");
  if (path === AMOUNT) return "budget";
  return parts.at(-1) === "kind" && parts.length > 1 ? parts.at(-2) : parts.at(-1);
}

function speedText(row) {
  return row.tokens_per_second === null || row.tokens_per_second === undefined ? "" : whole(row.tokens_per_second);
}

/** A text with its paths as their last part: a cell has room for little more than the folders of one. */
export function shortPaths(text) {
  return text.replace(/(?<![\w.~/…])\/(?:[^\s'"/:]+\/)+(?=[^\s'"/])/g, "…/");
}

/** What went wrong, or what it does now, stands where a note would: an empty cell helps nobody. */
function noteText(row) {
  return row.notes || (row.status === "finished" ? "" : row.message);
}

// JSON has no NaN: a loss that is none travels as text.
function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function fixed(value) {
  return value === null || value === undefined ? "" : Number.isFinite(value) ? value.toFixed(3) : String(value);
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (count) => String(count).padStart(2, "0");

/** A time in seconds as short as it can be told: "14:05" today, "3 Nov 14:05" this year, "3 Nov 2024" before. */
export function since(seconds, now = Date.now()) {
  if (seconds === null || seconds === undefined) return "";
  const [then, present] = [new Date(1000 * seconds), new Date(now)];
  const clock = `${two(then.getHours())}:${two(then.getMinutes())}`;
  const day = `${then.getDate()} ${MONTHS[then.getMonth()]}`;
  if (then.getFullYear() !== present.getFullYear()) return `${day} ${then.getFullYear()}`;
  return then.toDateString() === present.toDateString() ? clock : `${day} ${clock}`;
}

/** A time in full: "3 Nov 2026 14:05". */
export function whenText(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const then = new Date(1000 * seconds);
  return `${then.getDate()} ${MONTHS[then.getMonth()]} ${then.getFullYear()} ${two(then.getHours())}:${two(then.getMinutes())}`;
}

/**
 * Rows in the order of a column; what has no value comes last either way, and equal rows stay newest first.
 * @param {object[]} rows newest first
 * @param {{key: string, direction: 1 | -1} | null} sort null: newest first
 * @param {import("./filter.js").Knobs | null} knobs where it may be sorted by one
 */
export function sorted(rows, sort, knobs = null) {
  const column = sort && columnOf(sort.key, knobs);
  return column ? ordered(rows, column.value, sort.direction) : rows;
}

/** Anything in the order of a value of it; what has none comes last. */
export function ordered(all, valueOf, direction) {
  const values = new Map(all.map((each) => [each, valueOf(each)]));
  const known = (value) => value !== null && value !== undefined && value !== "";
  return [...all].sort((a, b) => {
    const [x, y] = [values.get(a), values.get(b)];
    if (!known(x) || !known(y)) return known(y) - known(x);
    // Knobs may be a number in one run and a word in another.
    const plain = typeof x === "number" && typeof y === "number";
    return direction * (plain ? x - y : String(x).localeCompare(String(y), "en", { numeric: true, sensitivity: "base" }));
  });
}

/** What a click on a header does next: its own direction, the other one, then newest first again. */
export function nextSort(sort, { key, first }) {
  if (sort?.key !== key) return { key, direction: first };
  return sort.direction === first ? { key, direction: -first } : null;
}
