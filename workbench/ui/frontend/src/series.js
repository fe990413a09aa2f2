// Columns of numbers that grow, and what is drawn of them. Pure: no page, no clock.

/** A column that grows by doubling. */
export class Column {
  constructor(values = []) {
    this.data = new Float64Array(Math.max(64, values.length));
    this.length = 0;
    this.append(values);
  }

  append(values) {
    const need = this.length + values.length;
    if (need > this.data.length) {
      const grown = new Float64Array(Math.max(need, 2 * this.data.length));
      grown.set(this.view());
      this.data = grown;
    }
    this.data.set(values, this.length);
    this.length = need;
  }

  /** The values, without a copy; valid until the next append. */
  view() {
    return this.data.subarray(0, this.length);
  }

  get last() {
    return this.length ? this.data[this.length - 1] : undefined;
  }
}

/** One scalar of one run: steps ascending, a value each. */
export class Series {
  constructor(steps = [], values = []) {
    this.steps = new Column(steps);
    this.values = new Column(values);
  }

  append(steps, values) {
    this.steps.append(steps);
    this.values.append(values);
  }

  get length() {
    return this.steps.length;
  }

  /** Keep about `points` samples that draw the same line, so that a page open for days does not grow. */
  compact(points) {
    const keep = extremes(this.steps.view(), this.values.view(), points);
    this.steps = new Column(Float64Array.from(keep, (i) => this.steps.data[i]));
    this.values = new Column(Float64Array.from(keep, (i) => this.values.data[i]));
  }
}

/**
 * Index of the first element that is not below `x` in ascending `xs`.
 */
export function lowerBound(xs, x) {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `y` at every `x` by straight lines between (`knots`, `heights`), both ascending; held constant outside. */
export function interpolate(x, knots, heights) {
  const out = new Float64Array(x.length);
  const last = knots.length - 1;
  if (last < 0) return out.fill(NaN);
  let k = 0;
  for (let i = 0; i < x.length; i++) {
    while (k < last && knots[k + 1] <= x[i]) k++;
    if (k >= last) out[i] = heights[last];
    else if (x[i] <= knots[k]) out[i] = heights[k];
    else {
      const share = (x[i] - knots[k]) / (knots[k + 1] - knots[k]);
      out[i] = heights[k] + share * (heights[k + 1] - heights[k]);
    }
  }
  return out;
}

/**
 * Indices of at most `points` samples that draw the same line: the lowest and highest of every bucket of x, and both
 * ends. NaN is left out.
 */
export function extremes(xs, ys, points) {
  const present = [];
  for (let i = 0; i < xs.length; i++) if (!Number.isNaN(ys[i])) present.push(i);
  if (present.length <= points) return present;
  const first = present[0];
  const last = present[present.length - 1];
  const buckets = Math.max(1, (points - 2) >> 1);
  const scale = buckets / Math.max(xs[last] - xs[first], 1e-12);
  const keep = [first];
  let bucket = -1;
  let low = first;
  let high = first;
  const close = () => {
    for (const i of low < high ? [low, high] : [high, low]) if (i > keep[keep.length - 1]) keep.push(i);
  };
  for (const i of present) {
    const here = Math.min(buckets - 1, Math.floor((xs[i] - xs[first]) * scale));
    if (here !== bucket) {
      if (bucket >= 0) close();
      bucket = here;
      low = high = i;
    } else {
      if (ys[i] < ys[low]) low = i;
      if (ys[i] > ys[high]) high = i;
    }
  }
  close();
  if (keep[keep.length - 1] !== last) keep.push(last);
  return keep;
}

/**
 * Exponential moving average over x, without the usual pull towards the first value.
 * The weight falls with the distance in x, not per sample, so a decimated line is smoothed like the full one.
 * @param {number} width distance after which a sample counts 1/e
 */
export function smooth(xs, ys, width) {
  const out = new Float64Array(ys.length);
  let sum = 0;
  let weight = 0;
  let before = NaN;
  for (let i = 0; i < ys.length; i++) {
    if (!Number.isFinite(ys[i])) {
      out[i] = weight ? sum / weight : NaN;
      continue;
    }
    const fade = Number.isNaN(before) || width <= 0 ? 0 : Math.exp(-(xs[i] - before) / width);
    sum = fade * sum + ys[i];
    weight = fade * weight + 1;
    out[i] = sum / weight;
    before = xs[i];
  }
  return out;
}

/**
 * Joins lines with different x into one table with ascending, distinct x.
 * @param {{x: ArrayLike<number>, y: ArrayLike<number>}[]} lines
 * @returns {Array} [x, y1, y2, ...]; undefined where a line has no sample (a plot draws through), null for NaN (a gap)
 */
export function join(lines) {
  const all = new Set();
  for (const { x } of lines) for (let i = 0; i < x.length; i++) all.add(x[i]);
  const xs = Float64Array.from(all).sort();
  const place = new Map();
  xs.forEach((x, i) => place.set(x, i));
  const table = [xs];
  for (const { x, y } of lines) {
    const column = new Array(xs.length).fill(undefined);
    for (let i = 0; i < x.length; i++) column[place.get(x[i])] = Number.isFinite(y[i]) ? y[i] : null;
    table.push(column);
  }
  return table;
}
