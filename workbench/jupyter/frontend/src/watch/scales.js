// Ticks and ranges of axes. Pure.

import { lowerBound } from "./series.js";

/** Lines within this share of the values' span are shown with them; as workbench/plots/levels.py has it. */
const NEAR = 0.35;

/** Plots narrower than this keep no more room beside them than their numbers take. */
const NARROW = 340;

/** Lower than this, titles of axes would take the room of the curves. */
const TITLED = 170;

/** Whether a plot of this height has titles at its axes; of one without, the unit stands beside its name. */
export function isTitled(height) {
  return height >= TITLED;
}

/**
 * Pixels for the numbers of a vertical axis.
 * @param {number} width of the whole plot
 * @param {number} usual pixels in a plot with room
 * @param {number} text pixels of the widest number
 * @param {number} gap between the numbers and the plot
 */
export function axisSize(width, usual, text, gap) {
  return width < NARROW ? Math.min(usual, Math.ceil(text) + gap + 4) : usual;
}

/** At most about `count` round numbers within [low, high]. */
export function niceTicks(low, high, count) {
  if (!(high > low)) return Number.isFinite(low) ? [low] : [];
  const raw = (high - low) / Math.max(1, count);
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * ([1, 2, 5, 10].find((m) => m * size >= raw * 0.999) ?? 10);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Seconds axis: steps that clocks have (1, 2, 5, 10, 15, 30 s, 1, 2, 5, ... min, hours, days). */
export function timeTicks(low, high, count) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const raw = (high - low) / Math.max(1, count);
  if (raw < 1) return niceTicks(low, high, count);
  const step = steps.find((s) => s >= raw) ?? Math.ceil(raw / 86400) * 86400;
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high; t += step) ticks.push(t);
  return ticks;
}

/** Range that shows low..high with some air; on a log scale the air is a factor. */
export function padded(low, high, log) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return log ? [1, 10] : [0, 1];
  if (log && low > 0) {
    const air = (high / low) ** 0.06 || 1.05;
    return [low / Math.max(air, 1.02), high * Math.max(air, 1.02)];
  }
  const air = (high - low) * 0.06 || Math.abs(high) * 0.05 || 0.5;
  return [low - air, high + air];
}

/** Ticks of a logarithmic axis: decades where there are several, else 1-2-5 or whatever is round. */
export function logTicks(low, high, count) {
  if (!(low > 0) || !(high > low)) return niceTicks(low, high, count);
  const decades = Math.log10(high / low);
  // A loss between 5 and 10 would be left without any number by decades alone.
  if (decades < 0.8) return niceTicks(low, high, count);
  const every = Math.max(1, Math.ceil(decades / Math.max(1, count)));
  const parts = decades < count / 3 ? [1, 2, 5] : decades < count / 1.5 ? [1, 3] : [1];
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); 10 ** e <= high; e++) {
    if (e % every === 0) for (const part of parts) ticks.push(Number((part * 10 ** e).toPrecision(3)));
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}

/** Ticks of the horizontal axis about 80 pixels apart. */
export function xTicks(kind, low, high, pixels) {
  return (kind === "seconds" ? timeTicks : niceTicks)(low, high, Math.max(2, pixels / 80));
}

/** Ticks of a vertical axis {log, ticks}. */
export function yTicks(axis, low, high) {
  return (axis.log ? logTicks : niceTicks)(low, high, axis.ticks ?? 5);
}

/** Stretch of x that a picture shows. */
export function xRange({ window, extent }) {
  const [low, high] = window ?? extent ?? [0, 1];
  return high > low ? [low, high] : [low, low + 1];
}

/** Fewer values than this are all shown; as workbench/plots/levels.py has it, with the five numbers below. */
const TOO_FEW = 5;
/** Of fewer values than this one is left out only where it is far out. */
const FEW = 8;
/** Share of the values at either end that the range does not depend on. */
const TRIMMED = 0.02;
/** Values beyond it are shown for as long as they are within so many spans of the range. */
const FENCE = 1.5;
const FAR_OUT = 3;
/** So many latest values are in sight, or at least their median. */
const RECENT = 5;
/** Sorting them all for every frame would take longer than drawing them. */
const SAMPLED = 2000;

/**
 * Range of nearly all values: single spikes, which would squeeze the rest, are left out, the present is not.
 * @param {ArrayLike<number>} values in their order
 * @param {boolean} log on a logarithmic axis
 * @returns {[number, number] | null} null without values
 */
export function robustRange(values, log = false) {
  const shown = Float64Array.from(values).filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (!shown.length) return null;
  const scaled = log ? shown.map(Math.log) : shown;
  const back = log ? Math.exp : Number;
  if (scaled.length < TOO_FEW) return [back(least(scaled)), back(most(scaled))];
  const stride = Math.ceil(scaled.length / SAMPLED);
  const sorted = scaled.filter((_, i) => i % stride === 0).sort();
  const trimmed = Math.max(1, Math.floor(TRIMMED * sorted.length));
  const [low, high] = [sorted[trimmed], sorted[sorted.length - 1 - trimmed]];
  const reach = (scaled.length < FEW ? FAR_OUT : FENCE) * (high - low);
  const near = scaled.filter((value) => value >= low - reach && value <= high + reach);
  const recent = scaled.slice(-RECENT).sort()[RECENT >> 1];
  return [back(Math.min(least(near), recent)), back(Math.max(most(near), recent))];
}

function least(values) {
  return values.reduce((low, value) => Math.min(low, value), Infinity);
}

function most(values) {
  return values.reduce((high, value) => Math.max(high, value), -Infinity);
}

/**
 * Range of the vertical axis of what is in sight.
 * @param {{x: ArrayLike<number>, y: ArrayLike<number>, scale?: string}[]} lines
 * @param {"y" | "right"} scale
 * @param {{log?: boolean, all?: boolean, low?: number | null, high?: number | null, zero?: boolean, headroom?: number}} axis
 *   all: to the last spike; low, high: limits that somebody has typed
 * @param {{y: number, always?: boolean}[]} levels lines that are to be seen, too; see yRange
 * @param {[number, number] | null} window of x
 */
export function axisRange(lines, scale, axis, levels = [], window = null) {
  const ranges = lines
    // Of what was measured: a smoothed line spreads a spike over its neighbours. Where it stands alone, it counts.
    .filter((line) => (line.scale ?? "y") === scale && !(line.smooth && lines.some((other) => !other.smooth && other.x === line.x)))
    .map((line) => (axis.all ? rangeOfAll : robustRange)(inWindow(line, window), axis.log))
    .filter(Boolean);
  const found = yRange(Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high)), axis, levels);
  const [low, high] = [axis.low ?? found[0], axis.high ?? found[1]];
  // Of two limits that cross, as when one was typed for other data, the automatic one gives way.
  if (low < high) return [low, high];
  return axis.low !== null && axis.low !== undefined ? [low, low + (Math.abs(low) || 1)] : [high - (Math.abs(high) || 1), high];
}

function rangeOfAll(values, log) {
  const [low, high] = spread([{ y: values }], "y", log);
  return Number.isFinite(low) ? [low, high] : null;
}

/** Values of a line within a window of x. */
export function inWindow({ x, y }, window) {
  if (!window) return y;
  const end = lowerBound(x, window[1]);
  return y.subarray(lowerBound(x, window[0]), x[end] === window[1] ? end + 1 : end);
}

/**
 * Samples that lie above or below a range.
 * @returns {{x: number, above: boolean}[]}
 */
export function outside({ x, y }, [low, high], window = null) {
  const found = [];
  for (let i = 0; i < y.length; i++) {
    if ((y[i] < low || y[i] > high) && (!window || (x[i] >= window[0] && x[i] <= window[1]))) found.push({ x: x[i], above: y[i] > high });
  }
  return found;
}

/**
 * Range of a vertical axis.
 * @param {number} low of the values in sight, or NaN
 * @param {{log?: boolean, zero?: boolean, headroom?: number}} axis
 * @param {{y: number, always?: boolean}[]} levels lines that are to be seen, too, as long as nobody has zoomed in; one
 *   that is far from the values would squeeze them, and stays out of sight unless it is `always` to be seen
 */
export function yRange(low, high, axis, levels = []) {
  let [from, to] = low <= high ? [low, high] : [NaN, NaN];
  if (Number.isFinite(from)) {
    const place = axis.log && from > 0 ? Math.log : Number;
    const reach = NEAR * (place(to) - place(from));
    const [least, most] = [place(from) - reach, place(to) + reach];
    for (const { y, always } of levels) {
      if (always || (place(y) >= least && place(y) <= most)) [from, to] = [Math.min(from, y), Math.max(to, y)];
    }
  }
  if (axis.zero) return Number.isFinite(to) && to > 0 ? [0, to * (axis.headroom ?? 1.12)] : [0, 1];
  return padded(from, to, axis.log && from > 0);
}

/** Least and greatest of what is drawn on one axis; on a logarithmic one of what it can show. */
export function spread(lines, scale, log = false) {
  let [low, high] = [Infinity, -Infinity];
  for (const line of lines) {
    if ((line.scale ?? "y") !== scale) continue;
    for (const value of line.y) {
      if (!Number.isFinite(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low > high ? [NaN, NaN] : [low, high];
}
