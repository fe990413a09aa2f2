// What stands in the filter box, as a question to a row. Pure.
//
//   bert tiny              both words, anywhere in name, id, tags, note, state, owner, device
//   state:running tag:x    a word in one column; `tag:` and `state:` want its beginning
//   loss<2.5 lr>=1e-3      a number of the table or of the recipe (the end of its path is enough)
//   progress>50            of a hundred, as the column shows it; 50% is the same
//   optimizer:lans         a choice or text of the recipe
//   started>yesterday      later than that day; >= from it on, : on it; started:2h within the last two hours
//   race:mine              the runs of a race; sweep: and tuning: alike
//   -tag:old "two words"   not; words with spaces

import { experimentParts } from "../format.js";
import { COLUMNS, titleOf } from "./columns.js";
import { MOMENTS, STANDS, stretchOf } from "./moments.js";
import { STATES } from "./states.js";

export const EXAMPLE = "bert state:running tag:good lr>1e-3 -old";
/** What can be searched, for people. */
export const HELP = `search, for example: ${EXAMPLE} ( / )
words: in name, tags, note, state, owner or device; -word leaves out
columns: ${COLUMNS.map(({ key }) => key).join(", ")}; knobs: lr, optimizer and all others
signs: : = != < > <= >=
started>=yesterday, started:2h (in the last two hours), started<2026-11-23; times: ${MOMENTS}`;

const TERM = /(-?)(?:([a-z_][\w./-]*)(<=|>=|!=|[:=<>]))?(?:"([^"]*)"?|(\S*))\s*/giy;
const SCALES = { k: 1e3, m: 1e6, b: 1e9, "%": 0.01 };
const status = (row) => [row.status];
const TEXTS = {
  name: (row) => [row.name],
  id: (row) => [row.id],
  state: status,
  status,
  tag: (row) => row.tags,
  tags: (row) => row.tags,
  race: (row) => experimentsNamed(row, "race"),
  sweep: (row) => experimentsNamed(row, "sweep"),
  tuning: (row) => experimentsNamed(row, "tuning"),
  finetuning: (row) => experimentsNamed(row, "finetuning"),
  note: (row) => [row.notes, row.message],
  notes: (row) => [row.notes],
  owner: (row) => [row.owner],
  device: (row) => [row.device, row.host],
  parent: (row) => [row.parent?.run],
};
// Half a tag is not the tag: "tag:base" must not find "database".
const BEGINNINGS = new Set(["tag", "tags", "state", "status"]);
const NUMBERS = {
  step: (row) => row.step,
  progress: (row) => (typeof row.progress === "number" ? Number((100 * row.progress).toFixed(6)) : null),
  loss: (row) => row.loss,
  heldout: (row) => row.heldout_loss,
  "held-out": (row) => row.heldout_loss,
  speed: (row) => row.tokens_per_second,
  "tokens/s": (row) => row.tokens_per_second,
};
const TIMES = { started: (row) => row.started };
const ORDERED = new Set(["<", ">", "<=", ">="]);
const COMPARE = {
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
  "=": (a, b) => a === b,
  ":": (a, b) => a === b,
  "!=": (a, b) => a !== b,
};

function experimentsNamed(row, noun) {
  const found = experimentParts(row);
  return found?.noun === noun ? [found.name] : [];
}

/** The terms of a filter: `{not, key, sign, value}`, key null for a plain word, value empty while it is being typed. */
export function terms(text) {
  const found = [];
  TERM.lastIndex = 0;
  const source = text.trim();
  while (TERM.lastIndex < source.length) {
    const match = TERM.exec(source);
    if (!match || !match[0]) break;
    const [, not, key, sign, quoted, plain] = match;
    const value = quoted ?? plain;
    if (value || key) found.push({ not: not === "-", key: key?.toLowerCase() ?? null, sign: sign ?? null, value });
  }
  return found;
}

/** A number as people write it: 1e-3, 10k, 2M, 50%; NaN when it is none. */
export function numberOf(text) {
  const scale = SCALES[text.at(-1)?.toLowerCase()];
  const digits = scale ? text.slice(0, -1) : text;
  return digits.trim() === "" ? NaN : Number(digits) * (scale ?? 1);
}

const isColumn = (key) => [TEXTS, NUMBERS, TIMES].some((each) => Object.hasOwn(each, key));

/**
 * Whether a filter asks for knobs of recipes, which the page does not have until it asks for them.
 * @param {string} text
 */
export function asksForKnobs(text) {
  return terms(text).some(({ key }) => key !== null && !isColumn(key));
}

/**
 * The filter as a test of rows.
 * @param {string} text what was typed
 * @param {Knobs | null} knobs of the recipes, null while they are not there yet
 * @param {number} now milliseconds
 * @returns {{test: (row: object) => boolean, problem: string}} a term with a problem is passed over
 */
export function filterOf(text, knobs = null, now = Date.now()) {
  const problems = [];
  const tests = [];
  for (const term of terms(text)) {
    const { test, problem } = testOf(term, knobs, now);
    if (problem) problems.push(problem);
    if (test) tests.push(term.not ? (row) => !test(row) : test);
  }
  return { test: (row) => tests.every((test) => test(row)), problem: [...new Set(problems)].join("; ") };
}

function testOf({ key, sign, value }, knobs, now) {
  if (key === null) {
    const word = value.toLowerCase();
    return { test: (row) => haystack(row).includes(word) };
  }
  if (!isColumn(key)) return knobs === null ? {} : knobTest(key, sign, value, knobs);
  if (!value) return { problem: `${key}${sign} is incomplete: write ${wantedFor(key)} after it` };
  if (key in NUMBERS) return numberTest(key, sign, value, NUMBERS[key]);
  if (key in TIMES) return timeTest(key, sign, value, now);
  if (ORDERED.has(sign)) return { problem: `${key} is text: write ${key}:${value}` };
  if (isState(key) && !STATES.some((state) => state.startsWith(value.toLowerCase()))) return { problem: `no state '${value}'; there are ${STATES.join(", ")}` };
  // "state=running" is what half of all people type.
  return { test: negated(sign, textTest(TEXTS[key], value, BEGINNINGS.has(key))) };
}

const isState = (key) => TEXTS[key] === TEXTS.state;

function wantedFor(key) {
  if (isState(key)) return `one of ${STATES.join(", ")}`;
  return key in NUMBERS ? "a number" : key in TIMES ? MOMENTS : "a word";
}

const negated = (sign, test) => (sign === "!=" ? (row) => !test(row) : test);

function textTest(texts, value, beginning) {
  const word = value.toLowerCase();
  const fits = (text) => (beginning ? text.startsWith(word) : text.includes(word));
  return (row) => texts(row).some((text) => text && fits(text.toLowerCase()));
}

function numberTest(key, sign, value, read) {
  const wanted = numberOf(key === "progress" ? value.replace(/%$/, "") : value);
  if (Number.isNaN(wanted)) return { problem: `${key}${sign}${value}: '${value}' is not a number` };
  return {
    test: (row) => {
      const found = read(row);
      return typeof found === "number" && COMPARE[sign](found, wanted);
    },
  };
}

function knobTest(key, sign, value, knobs) {
  const paths = knobs.paths(key);
  if (!paths.length) {
    const near = knobs.nearest(key);
    return { problem: `no column or knob '${key}'${near ? `; did you mean ${near}?` : ""}` };
  }
  const ordered = ORDERED.has(sign);
  if (!value) return { problem: `${key}${sign} is incomplete: write a ${ordered ? "number" : "value"} after it` };
  const wanted = numberOf(value);
  if (ordered && Number.isNaN(wanted)) return { problem: `${key}${sign}${value}: '${value}' is not a number` };
  const word = value.toLowerCase();
  const fits = (found) => {
    if (found === null || found === undefined) return false;
    if (typeof found === "number" && !Number.isNaN(wanted)) return COMPARE[sign === "!=" ? "=" : sign](found, wanted);
    return !ordered && (sign === ":" ? String(found).toLowerCase().includes(word) : String(found).toLowerCase() === word);
  };
  return { test: negated(sign, (row) => paths.some((path) => fits(knobs.value(path, row.id)))) };
}

function timeTest(key, sign, value, now) {
  const stretch = stretchOf(value, now);
  if (!stretch) return { problem: `${key}${sign}${value}: '${value}' is not a time; write ${MOMENTS}` };
  return {
    test: (row) => {
      const found = TIMES[key](row);
      return typeof found === "number" && STANDS[sign](found, stretch);
    },
  };
}

function haystack(row) {
  const all = [row.name, row.id, row.status, row.notes, row.message, row.owner, row.device, ...row.tags];
  return all.join("\n").toLowerCase();
}

/** Knobs of all recipes, as the kernel sends them (see workbench/client/listing.py). */
export class Knobs {
  constructor({ runs, same, differ, steered = {}, texts = {} }) {
    this.place = new Map(runs.map((id, index) => [id, index]));
    Object.assign(this, { same, differ, texts, launchedWith: steered });
    this.all = [...Object.keys(same), ...Object.keys(differ)];
  }

  /** Paths that a name stands for: itself, those that end with it, the kind of an axis or choice, or a column's title. */
  paths(name) {
    const lower = (path) => path.toLowerCase();
    const exact = this.all.filter((path) => lower(path) === name);
    if (exact.length) return exact;
    const ends = [`.${name}`, `.${name}.kind`];
    const found = this.all.filter((path) => lower(path) === `${name}.kind` || ends.some((end) => lower(path).endsWith(end)));
    return found.length ? found : this.all.filter((path) => lower(titleOf(path)) === name);
  }

  /** Paths that hold all of these words, in themselves or in what they are for. */
  about(text) {
    const words = text.toLowerCase().split(/[\s._]+/).filter(Boolean);
    return this.all.filter((path) => words.length && words.every((word) => `${path} ${this.texts[path] ?? ""}`.toLowerCase().includes(word)));
  }

  /** Value of a knob of one run; null when it has none, or is newer than the knobs. */
  value(path, id) {
    if (!this.place.has(id)) return null;
    return path in this.same ? this.same[path] : (this.differ[path]?.[this.place.get(id)] ?? null);
  }

  /** Where a run was steered away from the value it was launched with: that value and the step (null: not known); else null. */
  steered(path, id) {
    const found = this.launchedWith[id]?.[path];
    return found ? { from: found[0], step: found[1] } : null;
  }

  /** Paths of knobs that are not the same in all runs: in value, or in having been steered to it. */
  get asked() {
    return [...new Set([...Object.keys(this.differ), ...Object.values(this.launchedWith).flatMap(Object.keys)])];
  }

  /** The name of a knob that looks most like `name`, or null. */
  nearest(name) {
    const names = [...new Set([...Object.keys({ ...NUMBERS, ...TEXTS, ...TIMES }), ...this.all.map(titleOf), ...this.all.map((path) => path.split(".").at(-1)), ...this.all])];
    const best = names.map((each) => [distance(name, each), each]).sort(([a], [b]) => a - b)[0];
    return best && best[0] <= Math.max(1, name.length / 3) ? best[1] : null;
  }
}

// Letters to insert, remove or replace.
function distance(a, b) {
  let line = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(next[j - 1] + 1, line[j] + 1, line[j - 1] + (a[i - 1] !== b[j - 1]));
    line = next;
  }
  return line[b.length];
}
