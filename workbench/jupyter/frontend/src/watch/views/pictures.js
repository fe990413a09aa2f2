// What the curve views have in common: the lines of a scalar, event marks, the stretch of x, tables. Pure.

import { stageOf } from "../activity.js";
import { loss as lossText, partLoss, partScore, xValue } from "../../format.js";
import { brief } from "../knobs.js";
import { AXES, LEVEL_DASHES, LEVEL_HELP, SPEED_SECONDS } from "../../palette.js";
import { lowerBound, smooth } from "../series.js";

/** Event kinds worth a line on every plot, with the sign that stands for them where there is no room for words. */
const MARKED = { stage: "", phase: "P", knob: "◆", pause: "‖", resume: "▸", fork: "↳", stop: "■", memory: "M", warning: "!", error: "✕" };
/** Of requests, those that have no event of their own. */
const ASKED = { checkpoint: "▼", evaluate: "◇" };
const TABLE_ROWS = 40;
const smoothings = new WeakMap();

/** First to last x over all runs. */
export function extentOf(runs, kind) {
  const extents = runs.map((run) => run.clock.extent(kind)).filter(Boolean);
  if (!extents.length) return null;
  return [Math.min(...extents.map((e) => e[0])), Math.max(...extents.map((e) => e[1]))];
}

/**
 * Events worth a line on every plot, by x: what is written above it (short where there is no room), what a reading says.
 * @param {object[]} lines of the plot: of several runs, one without any has no marks in it, which would stand on the curves of others
 */
export function marksOf(runs, scene, lines = []) {
  const drawn = new Set(lines.map(({ of }) => of));
  const marks = runs.flatMap((run) => {
    if (runs.length > 1 && !drawn.has(run.id)) return [];
    const events = run.events.filter((event) => event.kind in MARKED || verbOf(event) in ASKED);
    const steps = Float64Array.from(events, (event) => event.step).sort();
    const xs = run.clock.at(steps, scene.x);
    return events.map((event) => {
      const stage = event.kind === "stage";
      const verb = verbOf(event);
      return {
        x: xs[steps.indexOf(event.step)],
        // The text of a stage, and of a request, begins with that word.
        text: stage || verb ? event.text : `${event.kind}: ${event.text}`,
        run: runs.length > 1 ? shortName(run.name) : "",
        stage,
        passing: !stage,
        label: stage ? "" : labelOf(event),
        number: MARKED[event.kind] ?? ASKED[verb],
        stroke: runs.length > 1 ? scene.colours.run(run.place) : scene.theme.muted,
        // Of several runs, names of stages would lie over each other.
        ...(stage && runs.length === 1 && stageOf(event)),
      };
    });
  });
  return marks.filter((mark) => Number.isFinite(mark.x)).sort((a, b) => a.x - b.x);
}

/** Of a request that was carried out, what was asked. */
function verbOf({ kind, data }) {
  return kind === "request" && data?.done === true ? data.verb : undefined;
}

/** A word or two: "lr → 0.0005", "pause". */
function labelOf({ kind, data }) {
  if (kind === "knob" && typeof data?.path === "string") return `${data.path.split(".").at(-1)} → ${brief(data.value)}`;
  return verbOf({ kind, data }) ?? kind;
}

/** Name of a line: the run's name only when there are several. */
export function named(runs, run, what) {
  if (runs.length < 2) return what;
  // What first: the colour tells the run as well, the end may be cut off.
  return `${what} · ${shortName(run.name)}`;
}

/** Of several runs, whose line it is: a reading tells all lines of a run in one row. */
export function ofRun(runs, run) {
  return runs.length < 2 ? {} : { of: run.id, run: shortName(run.name) };
}

/** A name without its middle where it is long: runs of one family differ at the end. */
export function shortName(name) {
  return name.length > 30 ? `${name.slice(0, 18)}…${name.slice(-11)}` : name;
}

/**
 * Held-out scores: one line of all, and the one that a run ends with again, to be drawn filled.
 * @param {object} run
 * @param {string} kind of x
 * @returns {object[]} lines with `format` and `whole`; none without a score
 */
export function scoresOf(run, kind) {
  const all = run.line("heldout_loss", kind);
  if (!all) return [];
  const ended = Number.isFinite(run.status.heldout_loss) && !partScore(run.status);
  const count = all.x.length - Number(ended);
  const end = { x: all.x.subarray(count), y: all.y.subarray(count), steps: all.steps.subarray(count) };
  const format = (value) => (value === end.y[0] ? lossText : partLoss)(value);
  return [{ ...all, whole: false, format }, { ...end, whole: true, quiet: true, format: lossText }].filter(({ x }) => x.length);
}

/** Whether a run records a scalar, as far as this page has heard: what nobody looks at is not sent. */
export function knows(run, name) {
  return run.series.has(name) || run.others.includes(name);
}

/** Where the loss of some run has several parts: the name of the one of tokens, which word frequencies are of. */
export function partOfTokens(runs) {
  return ["generator_loss", "token_loss", "ahead_1"].find((name) => runs.some((run) => knows(run, name)));
}

/** Latest finite value of a scalar. */
export function latest(run, name) {
  const values = run.series.get(name)?.values.view() ?? [];
  for (let i = values.length - 1; i >= 0; i--) if (Number.isFinite(values[i])) return values[i];
  return null;
}

/**
 * The smoothed y of a line; kept for as long as the line is.
 * @param {number} share of all steps over which a sample's weight falls to 1/e
 * @param {boolean} [rate] smoothed over time spent: a mean of rates would count the slow steps too little
 */
export function smoothed({ steps, y }, share, rate = false) {
  const key = `${share} ${rate}`;
  const held = smoothings.get(y);
  if (held?.key === key) return held.smooth;
  const width = share * (steps[steps.length - 1] - steps[0]);
  const made = rate ? smooth(steps, y.map((v) => 1 / v), width).map((v) => 1 / v) : smooth(steps, y, width);
  smoothings.set(y, { key, smooth: made });
  return made;
}

/** Tokens per second over the last ten seconds at each record of a line; as recent_speeds of workbench/telemetry/speed.py. */
export function recentSpeeds(clock, { steps, y }) {
  const held = smoothings.get(y);
  if (held?.key === "speed") return held.smooth;
  const [seconds, tokens] = [clock.at(steps, "seconds"), clock.at(steps, "tokens")];
  let since = 0;
  const made = Float64Array.from(y, (first, i) => {
    while (since + 1 < i && seconds[i] - seconds[since + 1] >= SPEED_SECONDS) since += 1;
    return i ? (tokens[i] - tokens[since]) / Math.max(seconds[i] - seconds[since], 1e-9) : first;
  });
  smoothings.set(y, { key: "speed", smooth: made });
  return made;
}

/** Losses to compare with: the baselines of every run, and the target, which alone is shown however far it is. */
export function levelsOf({ runs, target, colours }) {
  const all = runs.flatMap(({ name: run, place, status }) => Object.entries(status.levels ?? {}).map(([name, y]) => ({ name, y, run, place })));
  if (Number.isFinite(target)) all.push({ name: "target", y: target });
  // Runs on one text share their lines; of others it is said whose they are.
  const texts = new Map();
  for (const level of all) {
    const text = `${level.name} ${lossText(level.y)}`;
    if (!texts.has(text)) texts.set(text, { ...level, runs: new Set() });
    texts.get(text).runs.add(level.run);
  }
  const several = ({ name }) => [...texts.values()].filter((other) => other.name === name).length > 1;
  const whose = ({ runs: [first, ...rest] }) => ` · ${shortName(first)}${rest.length ? ` and ${rest.length} more` : ""}`;
  return [...texts].map(([text, level]) => ({ ...level, text: several(level) ? text + whose(level) : text })).map(({ name, text, y, place, runs: owners }) => ({ name, text, y, stroke: owners.size === 1 && texts.size > 3 ? colours?.run(place) : undefined, help: LEVEL_HELP[name], dash: LEVEL_DASHES[name] ?? [2, 4], always: name === "target" }));
}

/** Levels for a legend: those of one name are one entry, of several texts from the lowest to the highest; a reading tells each one. */
export function levelEntries(levels) {
  return [...new Set(levels.map(({ name }) => name))].map((name) => {
    const alike = levels.filter((level) => level.name === name).sort((a, b) => a.y - b.y);
    if (alike.length === 1) return alike[0];
    const [low, high] = [alike[0], alike.at(-1)].map(({ y }) => lossText(y));
    return { ...alike[0], text: `${name} ${low} to ${high}`, help: [alike[0].help, ...alike.map(({ text }) => text)].filter(Boolean).join("\n") };
  });
}

const X_HEADS = Object.fromEntries(AXES.map(({ name, short }) => [name, short]));

/**
 * Rows for "show as table", newest first: a value stands where it was measured and nowhere else.
 * The longest line gives at most 40 x values, every line its last one, a line of few values (scores) all of them.
 */
export function tableOf(lines, kind, window = null) {
  const head = [X_HEADS[kind], ...lines.map((line) => line.name)];
  const inside = lines.map(({ x }) => x.filter((at) => !window || (at >= window[0] && at <= window[1])));
  const longest = [...inside].sort((a, b) => b.length - a.length);
  // Two x that read the same are one row.
  const places = new Map();
  for (const xs of longest) for (const x of wanted(xs, kind, places)) if (!places.has(xValue(x, kind))) places.set(xValue(x, kind), x);
  const rows = [...places].sort(([, a], [, b]) => b - a).map(([text, x]) => [text, ...lines.map((line) => cell(line, x, kind))]);
  if (!rows.length) return { head, rows, note: lines.length ? "" : "Nothing recorded yet.", part: false };
  const all = new Set(lines.flatMap(({ x, y }) => Array.from(x).filter((_, i) => !Number.isNaN(y[i])))).size;
  const part = rows.length < all;
  return { head, rows, note: part ? `${rows.length} of ${all} records${window ? " (zoomed)" : ""}, newest first` : "", part };
}

/**
 * The words of events that a plot marks, newest first, for those who cannot point at a line; of several runs, whose each is.
 * @returns {{title: string, head: string[], rows: string[][]} | null} null where none is marked
 */
export function eventsOf(marks, kind, window = null) {
  const inside = marks.filter(({ x }) => !window || (x >= window[0] && x <= window[1])).reverse();
  if (!inside.length) return null;
  const several = inside.some(({ run }) => run);
  const rows = inside.slice(0, TABLE_ROWS).map(({ x, run, text }) => [xValue(x, kind), ...(several ? [run] : []), text]);
  const more = inside.length > rows.length ? `${rows.length} of ${inside.length}, ` : "";
  return { title: `Events marked in the plot, ${more}newest first`, head: [X_HEADS[kind], ...(several ? ["Run"] : []), "Event"], rows };
}

/** The x of a line that get rows; few of a long line whose values stand in the rows that are there (text -> x). */
function wanted(xs, kind, places) {
  const stride = Math.max(1, Math.ceil(xs.length / TABLE_ROWS));
  const picked = Array.from(xs.filter((_, i) => (xs.length - 1 - i) % stride === 0));
  const within = [...places].filter(([, x]) => x >= xs[0] && x <= xs[xs.length - 1]);
  const met = within.filter(([text, x]) => xValue(xs[closest(xs, x)], kind) === text);
  return stride > 1 && within.length && met.length >= within.length / 2 ? picked.slice(-1) : picked;
}

function closest(xs, x) {
  const next = Math.min(lowerBound(xs, x), xs.length - 1);
  return next > 0 && x - xs[next - 1] < Math.abs(xs[next] - x) ? next - 1 : next;
}

/** What was measured at an x, as exactly as the table writes x; nothing is carried on from before. */
function cell(line, x, kind) {
  const k = line.x.length ? closest(line.x, x) : -1;
  return k >= 0 && xValue(line.x[k], kind) === xValue(x, kind) ? (line.format ?? lossText)(line.y[k]) : "–";
}
