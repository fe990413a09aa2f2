// Places on a small plot of a schedule: scales, steps, snapping, words. Pure; tested by Node.

/** A number line of an axis: `to` gives 0..1 for a value, `from` the value for 0..1. */
export function line({ low, high, log = false }) {
  const [a, b] = log ? [Math.log(low), Math.log(high)] : [low, high];
  const span = b - a || 1;
  return {
    to: (value) => ((log ? Math.log(Math.max(value, Number.MIN_VALUE)) : value) - a) / span,
    from: (share) => (log ? Math.exp(a + share * span) : a + share * span),
  };
}

/** The largest of 1, 2, 5, 10, ... (times a power of ten) that is at most `size`. */
export function roundStep(size) {
  const power = 10 ** Math.floor(Math.log10(size) + 1e-9);
  return tidy(power * ([5, 2, 1].find((m) => m * power <= size * (1 + 1e-9)) ?? 1));
}

/** Without the digits that only floating point has: 0.1 + 0.2 is 0.3. */
export function tidy(value) {
  return Number(value.toPrecision(12));
}

export function clamp(value, [low, high]) {
  return Math.min(Math.max(value, low), Math.max(low, high));
}

/** Round numbers within an axis, at most about `count`; powers of ten or two on a logarithmic one. */
export function ticks(axis, count) {
  const { low, high, log } = axis;
  if (!(high > low)) return [low];
  if (log) {
    const base = axis.grid === "sizes" ? 2 : 10;
    const [first, last] = [Math.ceil(Math.log(low) / Math.log(base) - 1e-9), Math.floor(Math.log(high) / Math.log(base) + 1e-9)];
    const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, count)));
    const found = [];
    for (let power = first; power <= last; power += every) found.push(tidy(base ** power));
    return found;
  }
  let step = roundStep((high - low) / Math.max(1, count));
  while (Math.floor((high - low) / step) > count) step = tidy(step * (String(step).match(/[1-9]/)[0] === "2" ? 2.5 : 2));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(tidy(i * step));
  return found;
}

// 1, 2, 3, 4, 6, 8, 12, 16, 24, ...: whole numbers in powers of two and one and a half times as many.
function sizeAt(index) {
  return index <= 0 ? 1 : index % 2 ? 2 ** ((index + 1) / 2) : 3 * 2 ** (index / 2 - 1);
}

function sizeIndex(value) {
  let best = 0;
  for (let index = 1; sizeAt(index) <= 2 * value; index++) {
    if (Math.abs(Math.log(sizeAt(index) / value)) < Math.abs(Math.log(sizeAt(best) / value))) best = index;
  }
  return best;
}

/** How far one key press goes on an axis; snapping is twice as fine. */
export function keyStep({ low, high, grid = "any" }) {
  const step = roundStep((high - low) / 100);
  return grid === "any" ? step : Math.max(1, step);
}

/** A value where a hand stops: a multiple of half a key step, or a size; within `reach`. */
export function snapped(value, axis, reach) {
  const step = axis.grid === "whole" ? keyStep(axis) : keyStep(axis) / 2;
  let near = axis.grid === "sizes" ? sizeAt(sizeIndex(Math.max(1, value))) : tidy(Math.round(value / step) * step);
  // On a logarithmic axis an even step is coarse at the bottom and meaningless at the top: two digits instead.
  if (axis.log && axis.grid === "any") near = Number(value.toPrecision(2));
  return clamp(near, reach);
}

/** The value `steps` key presses further; a value between two steps first goes to the next one. */
export function nudged(value, steps, axis, reach) {
  if (axis.grid === "sizes") return clamp(sizeAt(sizeIndex(Math.max(1, value)) + steps), reach);
  if (axis.log) return clamp(Number((value * 1.05 ** steps).toPrecision(2)), reach);
  const step = keyStep(axis);
  return clamp(tidy((Math.round(value / step) + steps) * step), reach);
}

/**
 * Where a handle goes with a key; null when the key means nothing to it.
 * @param {object} handle as in the picture
 * @param {object} x the axes of the picture
 * @param {object} y
 * @param {string} key of the keyboard event
 * @param {boolean} coarse shift is held
 */
export function keyed(handle, x, y, key, coarse) {
  const [steps, most] = [coarse ? 10 : 1, { Home: 0, End: 1 }[key]];
  const sideways = { ArrowLeft: -1, ArrowRight: 1 }[key];
  const upwards = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[key];
  const place = { x: handle.x, y: handle.y };
  if (most !== undefined && handle.x_reach) return { ...place, x: handle.x_reach[most] };
  if (most !== undefined && handle.y_reach) return { ...place, y: handle.y_reach[most] };
  if (sideways && handle.x_reach) return { ...place, x: nudged(handle.x, sideways * steps, x, handle.x_reach) };
  if (upwards && handle.y_reach) {
    const far = Math.abs(upwards) === 10 ? upwards : upwards * steps;
    // Ten sizes would be a factor of 32; two double it.
    return { ...place, y: nudged(handle.y, y.grid === "sizes" && Math.abs(far) === 10 ? far / 5 : far, y, handle.y_reach) };
  }
  return null;
}

/** Where a handle goes that a hand holds at (x, y): what cannot move stays. */
export function held(handle, axes, x, y) {
  return {
    x: handle.x_reach ? snapped(x, axes.x, handle.x_reach) : handle.x,
    y: handle.y_reach ? snapped(y, axes.y, handle.y_reach) : handle.y,
  };
}

/**
 * Pixel places at which handles are drawn: those that would cover each other stand side by side.
 * @param {{x: number, y: number}[]} places in pixels
 * @param {number} gap least distance between two
 * @param {number} right the plot's right edge
 */
export function spread(places, gap, right) {
  const shown = places.map((place) => ({ ...place }));
  const near = (a, b) => Math.abs(a.x - b.x) < gap && Math.abs(a.y - b.y) < gap;
  for (let i = 1; i < shown.length; i++) {
    for (let j = 0; j < i; j++) if (near(shown[i], shown[j])) shown[i].x = shown[j].x + gap;
  }
  // What was pushed over the edge pushes back.
  for (let i = shown.length - 1; i >= 0; i--) {
    if (shown[i].x > right && shown[i].x !== places[i].x) shown[i].x = right;
    for (let j = i + 1; j < shown.length; j++) if (near(shown[i], shown[j])) shown[i].x = shown[j].x - gap;
  }
  return shown;
}

/** The curve's y at x, along straight lines between its samples. */
export function heightAt(samples, x) {
  let before = samples[0];
  for (const sample of samples) {
    if (sample[0] > x) return before[0] === sample[0] ? sample[1] : before[1] + ((sample[1] - before[1]) * Math.max(0, x - before[0])) / (sample[0] - before[0]);
    before = sample;
  }
  return before[1];
}

/** A number as people write it: 0.15, 1e-5, 12,000. */
export function numeral(value) {
  const size = Math.abs(value);
  if (size && (size < 1e-3 || size >= 1e7)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  return size >= 1000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));
}

/** Large numbers short: 12k, 1.5M. */
export function brief(value) {
  for (const [size, letter] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return `${numeral(Number((value / size).toPrecision(3)))}${letter}`;
  }
  return numeral(value);
}

/** A place of the x axis in words: "10% of the budget, 20 of 200 steps". */
export function placeWords(value, { over, end, budget }) {
  if (over !== "budget") return `${brief(value)} ${over}${end ? `, ${numeral((100 * value) / end)}% of the budget` : ""}`;
  const share = `${numeral(100 * value)}% of the budget`;
  return budget ? `${share}, ${brief(value * budget[0])} of ${brief(budget[0])} ${budget[1]}` : share;
}

/** A value of the knob in words: "128 tokens". */
export function valueWords(value, { unit }) {
  return unit ? `${numeral(value)} ${unit}` : numeral(value);
}
