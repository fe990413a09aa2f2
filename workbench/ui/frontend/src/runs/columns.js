// The columns of the table of runs: what they are called, how they sort, and what stands in them. Pure.

import { whole } from "../format.js";

// The order in which people look for runs: what goes on first, what went wrong next.
const URGENCY = ["running", "starting", "stopping", "paused", "queued", "failed", "lost", "stopped", "finished"];

/**
 * One column.
 * `value` is what it sorts and filters by (null: nothing said), `text` what stands in a cell, `first` the direction of
 * the first click on its header, `width` in pixels.
 */
export const COLUMNS = [
  { key: "name", title: "name", first: 1, width: 190, value: (row) => row.name, text: (row) => row.name, fixed: true },
  {
    key: "state", title: "state", first: 1, width: 104,
    value: (row) => URGENCY.indexOf(row.status), text: (row) => row.status,
  },
  { key: "progress", title: "progress", first: -1, width: 118, value: (row) => row.progress, text: (row) => `${Math.floor(100 * row.progress)}%` },
  { key: "step", title: "step", first: -1, width: 74, number: true, value: (row) => row.step, text: (row) => whole(row.step) },
  { key: "loss", title: "loss", first: 1, width: 68, number: true, value: (row) => number(row.loss), text: (row) => fixed(row.loss) },
  { key: "heldout", title: "held-out", first: 1, width: 80, number: true, value: (row) => number(row.heldout_loss), text: (row) => fixed(row.heldout_loss) },
  { key: "speed", title: "tokens/s", first: -1, width: 82, number: true, value: (row) => number(row.tokens_per_second), text: speedText },
  { key: "owner", title: "owner", first: 1, width: 84, value: (row) => row.owner || null, text: (row) => row.owner },
  { key: "device", title: "device", first: 1, width: 110, value: (row) => row.device || null, text: (row) => row.device },
  { key: "started", title: "started", first: -1, width: 98, value: (row) => row.started, text: (row, now) => since(row.started, now) },
  { key: "tags", title: "tags", first: 1, width: 150, value: (row) => row.tags.join(" ") || null, text: (row) => row.tags.join(" ") },
  { key: "note", title: "note", first: 1, width: 220, value: (row) => row.notes || null, text: noteText },
];

export const BY_KEY = new Map(COLUMNS.map((column) => [column.key, column]));

function speedText(row) {
  return row.tokens_per_second === null || row.tokens_per_second === undefined ? "" : whole(row.tokens_per_second);
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
 */
export function sorted(rows, sort) {
  const column = sort && BY_KEY.get(sort.key);
  if (!column) return rows;
  const values = new Map(rows.map((row) => [row, column.value(row)]));
  const known = (value) => value !== null && value !== undefined && value !== "";
  return [...rows].sort((a, b) => {
    const [x, y] = [values.get(a), values.get(b)];
    if (!known(x) || !known(y)) return known(y) - known(x);
    return sort.direction * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true, sensitivity: "base" }) : x - y);
  });
}

/** What a click on a header does next: its own direction, the other one, then newest first again. */
export function nextSort(sort, key) {
  const { first } = BY_KEY.get(key);
  if (sort?.key !== key) return { key, direction: first };
  return sort.direction === first ? { key, direction: -first } : null;
}
