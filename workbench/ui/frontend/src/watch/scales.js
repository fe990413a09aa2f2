// Ticks and ranges of axes. Pure.

/** Lines within this share of the values' span are shown with them; as workbench/plots/levels.py has it. */
const NEAR = 0.35;

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

/**
 * Range of a vertical axis.
 * @param {number} low of the values in sight, or NaN
 * @param {{log?: boolean, zero?: boolean, headroom?: number}} axis
 * @param {{y: number, always?: boolean}[]} levels lines that are to be seen, too, as long as nobody has zoomed in; one
 *   that is far from the values would squeeze them, and stays out of sight unless it is `always` to be seen
 */
export function yRange(low, high, axis, levels = []) {
  let [from, to] = [low ?? NaN, high ?? NaN];
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
