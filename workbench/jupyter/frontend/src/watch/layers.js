// Heat-map columns (one per telemetry record, one value per layer) and how they fall on pixels. Pure.

import { startsStage } from "./activity.js";
import { Column, lowerBound } from "./series.js";

const MOST_COLUMNS = 4096;

/** Layer activity of one run: steps, and for every quantity a list of vectors with one value per layer. */
export class Layers {
  constructor(layers, names) {
    this.layers = layers;
    this.steps = new Column();
    this.values = new Map(names.map((name) => [name, []]));
    this.memos = new Map();
  }

  /** What `make` gives, kept until something is added: a picture is drawn far more often than it changes. */
  memo(key, make) {
    if (!this.memos.has(key)) this.memos.set(key, make());
    return this.memos.get(key);
  }

  get length() {
    return this.steps.length;
  }

  append({ steps, values }) {
    this.memos.clear();
    for (const [name, block] of values) {
      const vectors = this.values.get(name);
      if (!vectors) continue;
      for (let c = 0; c < steps.length; c++) {
        vectors.push(block.slice(c * this.layers, (c + 1) * this.layers));
      }
    }
    this.steps.append(steps);
    if (this.length > MOST_COLUMNS) this.downsample();
  }

  /** Steps of the records that have a value of a quantity: not every record has one of each. */
  measured(name) {
    const vectors = this.values.get(name) ?? [];
    return this.memo(`measured ${name}`, () => this.steps.view().filter((_, c) => vectors[c]?.some(Number.isFinite)));
  }

  /** Every second column goes; the later of each pair stays, as in a pixel, and every first one of a stage. */
  downsample() {
    const states = this.values.get("state") ?? [];
    const starts = this.steps.view().map((_, i) => (i > 0 && states[i] && startsStage(states[i - 1], states[i]) ? 1 : 0));
    // With a stage every few records there is no short one to protect.
    const few = starts.reduce((sum, one) => sum + one, 0) <= this.length / 4;
    const stays = (_, i) => i % 2 === 1 || (few && starts[i] === 1);
    this.memos.clear();
    this.steps = new Column(this.steps.view().filter(stays));
    for (const [name, vectors] of this.values) this.values.set(name, vectors.filter(stays));
  }
}

/**
 * Which column each pixel shows. A record speaks for the stretch since the record before it; of several in one pixel
 * the last wins.
 * @param {ArrayLike<number>} xs ascending x at which columns end
 * @param {number} width pixels
 * @param {number} from x at the left edge
 * @param {number} to x at the right edge
 * @returns {Int32Array} column per pixel, -1 beyond the last record
 */
export function columnsOfPixels(xs, width, from, to) {
  const out = new Int32Array(width).fill(-1);
  const size = (to - from) / Math.max(1, width);
  const last = xs.length - 1;
  if (last < 0 || !(size > 0)) return out;
  for (let p = 0; p < width; p++) {
    const left = from + p * size;
    if (left > xs[last]) break;
    const next = lowerBound(xs, left + size);
    const inside = next - 1;
    // Inside the pixel if there is one, else the record that this stretch led to.
    out[p] = inside >= 0 && xs[inside] >= left ? inside : Math.min(next, last);
  }
  return out;
}

/**
 * Scale of a quantity over all its finite values.
 * @param {Iterable<number>[]} vectors
 * @param {boolean} [wanted] logarithmic; zero, as a frozen layer's gradient, has no place there
 * @returns {{low: number, high: number, log: boolean, place: (value: number) => number}} place maps to 0..1
 */
export function scaleOf(vectors, wanted = false) {
  let low = Infinity;
  let high = -Infinity;
  for (const vector of vectors) {
    for (const value of vector) {
      if (!Number.isFinite(value) || (wanted && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return { low: NaN, high: NaN, log: false, place: () => NaN };
  const log = wanted;
  const span = log ? Math.log(high / low) : high - low;
  const place = (value) => {
    if (!Number.isFinite(value) || (log && value <= 0)) return NaN;
    return span > 0 ? (log ? Math.log(value / low) : value - low) / span : 0.5;
  };
  return { low, high, log, place };
}
