// Knobs of a running run as workbench/recipes/changes.py describes them: their values as text, and what may be typed.
// Pure. What combinations forbid besides bounds, only the run itself can tell.

import { plainMinus, short } from "../format.js";

// A comma parts thousands and nothing else: "0,001" is not 1.
const NUMBER = /^[-+]?(\d[\d_]*|[1-9]\d{0,2}(,\d{3})+)?(\.\d*)?(e[-+]?\d+)?$/i;
const BOUNDS = {
  exclusiveMinimum: [">", (value, bound) => value > bound],
  minimum: ["≥", (value, bound) => value >= bound],
  exclusiveMaximum: ["<", (value, bound) => value < bound],
  maximum: ["≤", (value, bound) => value <= bound],
};

/** A value as it stands in a text field; the same text read back gives the same value. */
export function textOf(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A value in few characters, for a list: a schedule by its kind. */
export function brief(value) {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return JSON.stringify(value);
  if (typeof value === "object") return `${value.kind ?? "a"} schedule`;
  return String(value);
}

/** "> 0 and ≤ 100", empty without bounds. */
export function boundsInWords(knob) {
  return Object.entries(BOUNDS)
    .filter(([word]) => knob[word] !== undefined)
    .map(([word, [sign]]) => `${sign} ${short(knob[word])}`)
    .join(" and ");
}

/** What may stand there: "a number > 0 and ≤ 100, or a schedule as JSON". */
export function legalInWords(knob) {
  if (knob.options) return `one of ${knob.options.map(textOf).join(", ")}`;
  const bounds = boundsInWords(knob);
  const words = {
    number: `a number${bounds ? ` ${bounds}` : ""}`,
    integer: `a whole number${bounds ? ` ${bounds}` : ""}`,
    boolean: "true or false",
    string: "text",
    array: "a JSON list",
    schedule: "a schedule as JSON",
    null: "empty",
  };
  return knob.types.map((type) => words[type] ?? type).join(", or ");
}

/**
 * What a typed text means for a knob.
 * @returns {{value: any} | {problem: string}}
 */
export function read(knob, typed) {
  const text = typed.trim();
  const wrong = { problem: `must be ${legalInWords(knob)}` };
  if (knob.options) {
    const option = knob.options.find((each) => textOf(each) === text);
    return option === undefined ? wrong : { value: option };
  }
  if (text === "") return knob.types.includes("null") ? { value: null } : wrong;
  for (const type of knob.types) {
    const found = READERS[type]?.(text, knob);
    if (found !== undefined) return found.problem ? { problem: `must be ${legalInWords(knob)}` } : found;
  }
  return wrong;
}

const READERS = {
  number: (text, knob) => numeric(text, knob, false),
  integer: (text, knob) => numeric(text, knob, true),
  boolean: (text) => ({ true: { value: true }, false: { value: false } })[text],
  array: (text) => json(text, (value) => Array.isArray(value)),
  // A bare word is the kind of a schedule with its defaults.
  schedule: (text) => (/^[a-z_]+$/.test(text) ? { value: text } : json(text, (value) => value !== null && typeof value === "object" && !Array.isArray(value))),
  string: (text) => ({ value: text }),
};

/** Undefined where the text is no number at all: it may be a schedule. */
function numeric(typed, knob, whole) {
  const text = plainMinus(typed);
  const value = NUMBER.test(text) ? Number(text.replaceAll(/[_,](?=\d)/g, "")) : Number.NaN;
  if (!Number.isFinite(value)) return undefined;
  const out = Object.entries(BOUNDS).some(([word, [, holds]]) => knob[word] !== undefined && !holds(value, knob[word]));
  return out || (whole && !Number.isInteger(value)) ? { problem: true } : { value };
}

function json(text, fits) {
  try {
    const value = JSON.parse(text);
    return fits(value) ? { value } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Edits of a fork, one PATH=VALUE per line; empty lines and lines that begin with # are none.
 * @returns {{edits: string[], problems: string[]}} problems: what is wrong, by line
 */
export function editsOf(text, knobs) {
  const edits = [];
  const problems = [];
  for (const [index, line] of text.split("\n").entries()) {
    const edit = line.trim();
    if (!edit || edit.startsWith("#")) continue;
    const equals = edit.indexOf("=");
    const path = edit.slice(0, Math.max(0, equals)).trim();
    const knob = knobs.find((each) => each.path === path);
    const found = knob ? read(knob, edit.slice(equals + 1)) : {};
    if (equals < 1 || !path) problems.push(`line ${index + 1}: write PATH=VALUE, for example optimizer.lr=1e-3`);
    // An empty value is read as text further on; only here it can mean "none".
    else if (found.problem) problems.push(`line ${index + 1}: ${path} ${found.problem}`);
    else edits.push(knob && found.value === null ? `${path}=null` : edit);
  }
  return { edits, problems };
}

/** Of the checkpoints to fork from, the choice that stands for whichever is newest. */
export const NEWEST = "newest";

/**
 * The step that a fork begins at: the one that stands in the page, whatever the run has saved since.
 * @param {string} choice NEWEST or a step
 * @param {number[]} shown steps of the checkpoints, as the page shows them, newest first
 * @returns {number | null} null: no checkpoint is shown
 */
export function forkStep(choice, shown) {
  return choice === NEWEST ? (shown[0] ?? null) : Number(choice);
}
