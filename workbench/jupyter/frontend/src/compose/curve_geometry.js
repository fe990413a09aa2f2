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

// The largest of 1, 2, 5, 10, ... (times a power of ten) that is at most `size`.
function roundStep(size) {
  const power = 10 ** Math.floor(Math.log10(size) + 1e-9);
  return tidy(power * ([5, 2, 1].find((m) => m * power <= size * (1 + 1e-9)) ?? 1));
}

/** Without the digits that only floating point has: 0.1 + 0.2 is 0.3. */
function tidy(value) {
  return Number(value.toPrecision(12));
}

export function clamp(value, [low, high]) {
  return Math.min(Math.max(value, low), Math.max(low, high));
}

/** Round numbers within an axis, at most about `count`; powers of ten on a logarithmic one. */
export function ticks(axis, count) {
  const { low, high, log } = axis;
  if (!(high > low)) return [low];
  if (log) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, count)));
    const found = [];
    for (let power = first; power <= last; power += every) found.push(tidy(10 ** power));
    return found;
  }
  let step = roundStep((high - low) / Math.max(1, count));
  while (Math.floor((high - low) / step) > count) step = tidy(step * (String(step).match(/[1-9]/)[0] === "2" ? 2.5 : 2));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(tidy(i * step));
  return found;
}

/** How far one key press goes on an axis; a hand stops twice as finely. */
function keyStep({ low, high, whole }) {
  const step = roundStep((high - low) / 100);
  return whole ? Math.max(1, step) : step;
}

/** A round value near `value`, within `reach`; two digits on a logarithmic axis, whose even steps mean nothing. */
export function snapped(value, axis, reach = [axis.low, axis.high]) {
  const step = axis.whole ? keyStep(axis) : keyStep(axis) / 2;
  const near = axis.log ? Number(value.toPrecision(2)) : tidy(Math.round(value / step) * step);
  return clamp(axis.whole ? Math.round(near) : near, reach);
}

/** How far the point at `index` may go, across and up: between its neighbours, within the axes. */
export function reaches(points, index, { x, y }) {
  return [[points[index - 1]?.[0] ?? x.low, points[index + 1]?.[0] ?? x.high], [y.least, y.high]];
}

/** Where an arrow key moves the point at `index` (ten steps with shift); null when the key means nothing. */
export function keyed(points, index, picture, key, coarse) {
  const [[x, y], [across, up]] = [points[index], reaches(points, index, picture)];
  const steps = coarse ? 10 : 1;
  const [right, higher] = [{ ArrowLeft: -steps, ArrowRight: steps }[key], { ArrowUp: steps, ArrowDown: -steps }[key]];
  const stepped = (value, by, axis, reach) => clamp(tidy((Math.round(value / keyStep(axis)) + by) * keyStep(axis)), reach);
  if (right) return [stepped(x, right, picture.x, across), y];
  if (!higher) return null;
  return [x, picture.y.log ? snapped(y * 1.1 ** higher, picture.y, up) : stepped(y, higher, picture.y, up)];
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
