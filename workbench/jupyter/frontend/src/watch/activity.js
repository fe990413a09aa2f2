// Layer activity as numbers: stages and their boundaries, work done and saved, in words. Pure.
// The same rules as workbench/plots/activity.py.

import { LAYER_STATES } from "../palette.js";

const NO_STATE = 255;
const [RUNNING, DROPPED, FROZEN, ABSENT, , COPIED] = LAYER_STATES.keys();
const LONGEST_LABEL = 24;

/**
 * The stages that a run announced.
 * @returns {{step: number, label: string, number: string, text: string, copies: Map<number, number>}[]} copies: layer to
 *   the layer it was copied from, both counted from 1
 */
export function stagesOf(events) {
  return events.filter((event) => event.kind === "stage").map(stageOf);
}

/** One of them; runs of before told in words alone which layers are copies. */
export function stageOf({ step, text = "", data = {} }) {
  const { stage, stages, copies } = data;
  const several = Number.isInteger(stage) && stages > 1;
  const pairs = (Array.isArray(copies) ? copies : []).filter(Array.isArray);
  return { step, text, number: several ? String(stage) : "", label: several ? `stage ${stage} of ${stages}` : text.slice(0, LONGEST_LABEL), copies: new Map(pairs) };
}

/** Whether other layers exist, are frozen or are new than in the record before; which are skipped is chance. */
export function startsStage(before, now) {
  if (before.length !== now.length) return true;
  const settled = (code) => (code === DROPPED ? RUNNING : code === NO_STATE ? ABSENT : code);
  return now.some((code, layer) => settled(code) !== settled(before[layer]));
}

/**
 * Steps at which columns end: a record speaks for the stretch since the one before it, and a stage parts two columns
 * where it began.
 */
export function columnEnds(steps, stages) {
  const ends = Float64Array.from(steps);
  for (const { step } of stages) {
    const next = steps.findIndex((other) => other > step);
    if (next > 0) ends[next - 1] = step;
  }
  return ends;
}

/** Copies of the stages before a record: layer to its source. */
export function copiesAt(stages, step) {
  const copies = new Map();
  for (const stage of stages) if (stage.step < step) for (const [layer, source] of stage.copies) copies.set(layer, source);
  return copies;
}

/** What a layer (counted from 1) does, after "Layer 7 at step 420: ". */
export function sentence(code, layer, copies) {
  if (code === COPIED && copies.has(layer)) return `started as a copy of layer ${copies.get(layer)}`;
  return (LAYER_STATES[code] ?? LAYER_STATES[ABSENT]).sentence;
}

/**
 * How much of the model was computed.
 * @param {import("./layers.js").Layers} layers with states, and where the run says it the share of micro-batches
 * @returns {{forward: Float64Array[], trained: Float64Array[], share: number, perLayer: {forward: Float64Array, trained:
 *   Float64Array}, counts: {forward: Float64Array, trained: Float64Array}} | null} shares 0 to 1 per record and layer,
 *   their means over the run per layer, their sums per record; share: of the work of every layer training all the time
 */
export function workOf(layers) {
  const states = layers.values.get("state") ?? [];
  if (!states.length) return null;
  const ran = layers.values.get("ran");
  const [count, size] = [states.length, layers.layers];
  const perLayer = { forward: new Float64Array(size), trained: new Float64Array(size) };
  const counts = { forward: new Float64Array(count), trained: new Float64Array(count) };
  let total = 0;
  for (let c = 0; c < count; c++) {
    const gap = c > 0 ? layers.steps.data[c] - layers.steps.data[c - 1] : firstGap(layers.steps);
    // Two attempts may have recorded one step.
    const weight = Math.max(gap, 1e-9);
    // Where a stage has begun since the record before, the share mixes two stages, and the state alone says what is new.
    const mixed = c === 0 || startsStage(states[c - 1], states[c]);
    total += weight;
    for (let layer = 0; layer < size; layer++) {
      const code = states[c][layer];
      if (code === NO_STATE || code === ABSENT) continue;
      const told = ran?.[c]?.[layer];
      const forward = !mixed && Number.isFinite(told) ? told : Number(code !== DROPPED);
      const trained = code === FROZEN ? 0 : forward;
      perLayer.forward[layer] += weight * forward;
      perLayer.trained[layer] += weight * trained;
      counts.forward[c] += forward;
      counts.trained[c] += trained;
    }
  }
  for (const shares of Object.values(perLayer)) shares.forEach((sum, layer) => (shares[layer] = sum / total));
  return { perLayer, counts, share: mean(perLayer.forward, perLayer.trained) };
}

function firstGap(steps) {
  const first = steps.data[0];
  return steps.length > 1 ? Math.min(first, steps.data[1] - first) : 1;
}

/** Forward counts 1, backward 2. */
function mean(forward, trained) {
  let sum = 0;
  for (let layer = 0; layer < forward.length; layer++) sum += forward[layer] + 2 * trained[layer];
  return sum / (3 * forward.length);
}

/** Whether layers were dropped, frozen or not there: a map of a model that always runs whole shows nothing. */
export function savesWork(work) {
  return work !== null && work.share < 1 - 1e-6;
}

/** One sentence on how much of the model was computed. */
export function workWords({ perLayer, share }) {
  const sum = (shares) => shares.reduce((all, one) => all + one, 0).toFixed(1);
  const { forward, trained } = perLayer;
  return (
    `On average ${sum(forward)} of ${forward.length} layers ran forward and ${sum(trained)} backward: ` +
    `${Math.round(100 * share)}% of the work of training all of them`
  );
}

/** That a column stands for one step of several, where it does: what chance skips may differ in each of them. */
export function columnWords(steps) {
  if (steps.length < 3) return "";
  const gaps = Float64Array.from({ length: steps.length - 1 }, (_, i) => steps[i + 1] - steps[i]).sort();
  const usual = gaps[gaps.length >> 1];
  return usual > 1 ? `. Each column is one of every ${usual.toLocaleString("en")} steps` : "";
}

/**
 * Stages in sight, with their places: those that begin there, and the one in force at the left edge, named at the edge.
 * @param {{x: number}[]} stages ascending
 * @param {(x: number) => number} placeOf pixels of an x
 * @param {number} left pixels
 * @param {number} right pixels
 */
export function inSight(stages, placeOf, left, right) {
  const placed = stages.map((stage) => ({ ...stage, place: placeOf(stage.x) })).filter(({ place }) => place <= right);
  // Of what is over before the left edge only a stage is still in force; an event has gone by.
  const force = placed.findLast(({ place, passing }) => place < left && !passing);
  const inside = placed.filter((stage) => stage === force || stage.place >= left);
  return inside.map((stage) => ({ ...stage, place: Math.max(left, stage.place) }));
}

/**
 * Where a mark is drawn: an event of before the first record, as a knob changed while the run began, where curves begin.
 * @param {number} place by its x
 * @param {number} left edge of the plot
 * @param {boolean} zoomed then what is out of sight stays there
 */
export const markPlace = (place, left, zoomed) => (zoomed ? place : Math.max(place, left));

/**
 * Marks that have a line, with its place: of several events on one pixel the first, which has the word there. The last of
 * them would lie over it, and what was asked of one run look like another's.
 * @param {(mark: object) => number} placeOf pixels of a mark
 */
export function withLines(marks, placeOf) {
  const taken = new Set();
  const placed = marks.map((mark) => ({ ...mark, place: placeOf(mark) }));
  return placed.filter(({ stage, place }) => stage || (!taken.has(Math.round(place)) && taken.add(Math.round(place))));
}

/** Of what stands at a mark: a sign has the run's colour, words one that is read in both themes. */
export const inkOf = (text, stroke, theme) => (text.length === 1 && stroke) || theme.muted;

/**
 * What is written at boundaries and events: a label where there is room, else its short form alone, else nothing.
 * @param {{label: string, number: string, place: number}[]} stages place: pixels from the left
 * @param {(text: string) => number} widthOf pixels that a text takes
 * @param {number} [end] pixels at which the last one must end
 * @returns {{text: string, place: number, stroke?: string}[]}
 */
export function boundaryLabels(stages, widthOf, end = Infinity) {
  let free = -Infinity;
  const ordered = [...stages].sort((a, b) => a.place - b.place);
  return ordered.flatMap(({ label, number, place, stroke }, i) => {
    // Of several at one place (a pause, and going on) the first has the word.
    const next = ordered.find((other, k) => k > i && other.place > place + 3);
    const room = Math.min(next?.place ?? Infinity, end) - place;
    const text = room >= widthOf(label) + 8 ? label : number;
    if (!text || place < free) return [];
    free = place + widthOf(text) + 4;
    return [{ text, place, ...(stroke && { stroke }) }];
  });
}

/**
 * Which pixel rows of a layer have ink, per state.
 * @param {number} height pixels of a layer's row
 * @returns {number[][]} rows counted from the top, per code
 */
export function inkRows(height) {
  return LAYER_STATES.map(({ shape }) => {
    const rows = [];
    for (let y = 0; y < height; y++) {
      if (shape[Math.floor(((height - 1 - y + 0.5) / height) * shape.length)] === "#") rows.push(y);
    }
    return rows;
  });
}
