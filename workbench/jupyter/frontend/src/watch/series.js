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

  /** Keep the values at these indices. */
  keep(indices) {
    const kept = new Column(Float64Array.from(indices, (i) => this.data[i]));
    this.data = kept.data;
    this.length = kept.length;
  }

  /** The values, without a copy; valid until the next append. */
  view() {
    return this.data.subarray(0, this.length);
  }

  get last() {
    return this.length ? this.data[this.length - 1] : undefined;
  }
}

/**
 * One scalar of one run: samples of the whole run, downsampled where it is long, and one stretch in detail where somebody
 * has zoomed in.
 */
export class Series {
  /** @param {boolean} downsampled whether more samples were recorded than these */
  constructor(steps = [], values = [], downsampled = false) {
    this.steps = new Column(steps);
    this.values = new Column(values);
    /** Up to this step there is more to know than is held; what was appended since is exact. */
    this.coarse = downsampled && steps.length ? steps[steps.length - 1] : -Infinity;
    this.patch = null;
    this.version = 0;
  }

  append(steps, values) {
    this.steps.append(steps);
    this.values.append(values);
    this.version += 1;
  }

  get length() {
    return this.steps.length;
  }

  /** Keep about `points` samples that draw the same line, so that a page open for days does not grow. */
  compact(points) {
    this.coarse = this.steps.last;
    const keep = extremes(this.steps.view(), this.values.view(), points);
    this.steps.keep(keep);
    this.values.keep(keep);
    this.version += 1;
  }

  /** @param {{from: number, to: number, exact: boolean, steps: ArrayLike<number>, values: ArrayLike<number>}} patch */
  detail(patch) {
    this.patch = patch;
    this.version += 1;
  }

  /** Steps and values of the whole run, in the finest form that is held of each stretch. */
  merged() {
    if (this.cache?.version === this.version) return this.cache;
    const [steps, values] = [this.steps.view(), this.values.view()];
    this.cache = { version: this.version, steps, values };
    if (this.patch) {
      const ends = [lowerBound(steps, this.patch.from), lowerBound(steps, this.patch.to + 0.5)];
      this.cache.steps = spliced(steps, ends, this.patch.steps);
      this.cache.values = spliced(values, ends, this.patch.values);
    }
    return this.cache;
  }

  /** Whether a stretch of steps could be drawn finer than with what is held, `points` of it being enough. */
  lacks(from, to, points) {
    if (from >= this.coarse) return false;
    const { patch } = this;
    const covered = patch && patch.from <= from && patch.to >= Math.min(to, this.coarse);
    if (covered) return !patch.exact && count(patch.steps, from, to) < points;
    return count(this.steps.view(), from, to) < points;
  }
}

/** When a run was where: steps, seconds, tokens and FLOPs of its records, downsampled where it is long. */
export class Clock {
  constructor() {
    for (const kind of Clock.KINDS) this[kind] = new Column();
    this.patch = null;
    this.version = 0;
  }

  append(columns) {
    for (const kind of Clock.KINDS) this[kind].append(columns[kind]);
    this.version += 1;
    // Between two records of a quarter of these, a pause could not be seen on a screen.
    if (this.step.length > Clock.MOST) this.#downsample();
  }

  detail(patch) {
    this.patch = patch;
    this.version += 1;
  }

  /** Whether the run has said where it was in this unit. */
  has(kind) {
    return Number.isFinite(this[kind]?.last);
  }

  /** First and last x, or null before the first record. */
  extent(kind) {
    return this.has(kind) ? [this[kind].data.find(Number.isFinite), this[kind].last] : null;
  }

  /** x of ascending steps. */
  at(steps, kind) {
    return kind === "step" ? steps : interpolate(steps, this.#knots("step"), this.#knots(kind));
  }

  /** Steps of ascending x. */
  stepsAt(xs, kind) {
    return kind === "step" ? xs : interpolate(xs, this.#knots(kind), this.#knots("step"));
  }

  #knots(kind) {
    if (!this.patch) return this[kind].view();
    if (this.cached !== this.version) {
      const ends = [lowerBound(this.step.view(), this.patch.from), lowerBound(this.step.view(), this.patch.to + 0.5)];
      this.merged = Object.fromEntries(Clock.KINDS.map((one) => [one, spliced(this[one].view(), ends, this.patch[one])]));
      this.cached = this.version;
    }
    return this.merged[kind];
  }

  #downsample() {
    const keep = [];
    for (let i = 0; i < this.step.length; i += 4) keep.push(i);
    if (keep.at(-1) !== this.step.length - 1) keep.push(this.step.length - 1);
    for (const kind of Clock.KINDS) this[kind].keep(keep);
  }
}
Clock.KINDS = ["step", "seconds", "tokens", "flops"];
Clock.MOST = 24000;

/** `base` with the elements from ends[0] to before ends[1] replaced by `inside`. */
function spliced(base, ends, inside) {
  const out = new Float64Array(ends[0] + inside.length + base.length - ends[1]);
  out.set(base.subarray(0, ends[0]));
  out.set(inside, ends[0]);
  out.set(base.subarray(ends[1]), ends[0] + inside.length);
  return out;
}

/** How many of ascending `xs` lie from `from` to `to`. */
function count(xs, from, to) {
  return lowerBound(xs, to) - lowerBound(xs, from);
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

/** `y` at every `x` by straight lines between (`knots`, `heights`), all ascending; held constant outside. */
export function interpolate(x, knots, heights) {
  const out = new Float64Array(x.length);
  const last = knots.length - 1;
  if (last < 0) return out.fill(NaN);
  let k = Math.max(0, lowerBound(knots, x[0]) - 1);
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
 * What is drawn of a line in a window: its extremes, and one sample beyond each edge, so that lines leave the picture
 * instead of ending before it.
 * @param {{x: Float64Array, y: Float64Array}} line
 * @param {[number, number] | null} window
 */
export function visible({ x, y }, window, points) {
  const from = window ? Math.max(0, lowerBound(x, window[0]) - 1) : 0;
  const to = window ? Math.min(x.length, lowerBound(x, window[1]) + 1) : x.length;
  const [xs, ys] = [x.subarray(from, to), y.subarray(from, to)];
  const keep = extremes(xs, ys, points);
  return { x: Float64Array.from(keep, (i) => xs[i]), y: Float64Array.from(keep, (i) => ys[i]) };
}

/**
 * Mean with weights that fall exponentially on both sides, so that the line does not lag behind a loss that falls; at
 * the end it looks back only, and at the beginning both sides count alike.
 * The weight falls with the distance in x, not per sample, so a decimated line is smoothed like the full one.
 * @param {number} width distance after which a sample counts 1/e
 */
export function smooth(xs, ys, width) {
  const count = ys.length;
  const [past, future] = [faded(xs, ys, width, 0, 1), faded(xs, ys, width, count - 1, -1)];
  const out = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const own = Number.isFinite(ys[i]) ? 1 : 0;
    const [before, after] = [past.weights[i] - own, future.weights[i] - own];
    const share = after > before ? before / after : 1;
    const weight = own + before + share * after;
    const sum = past.sums[i] + share * (future.sums[i] - (own ? ys[i] : 0));
    out[i] = weight > 0 ? sum / weight : NaN;
  }
  return out;
}

/** Sums of values and of weights over a sample and those before it (step 1) or after it (step -1). */
function faded(xs, ys, width, first, step) {
  const sums = new Float64Array(ys.length);
  const weights = new Float64Array(ys.length);
  let [sum, weight] = [0, 0];
  for (let n = 0, i = first; n < ys.length; n++, i += step) {
    const fade = n === 0 || width <= 0 ? 0 : Math.exp(-Math.abs(xs[i] - xs[i - step]) / width);
    const own = Number.isFinite(ys[i]) ? 1 : 0;
    sums[i] = sum = fade * sum + (own ? ys[i] : 0);
    weights[i] = weight = fade * weight + own;
  }
  return { sums, weights };
}

/**
 * Joins lines with different x into one table with ascending, distinct x.
 * @param {{x: ArrayLike<number>, y: ArrayLike<number>}[]} lines each with ascending x
 * @returns {Array} [x, y1, y2, ...]; undefined where a line has no sample (a plot draws through), null for NaN (a gap)
 */
export function join(lines) {
  // Sorted as one typed array: sets and maps of forty thousand numbers would cost a frame.
  const all = new Float64Array(lines.reduce((sum, { x }) => sum + x.length, 0));
  let end = 0;
  for (const { x } of lines) {
    all.set(x, end);
    end += x.length;
  }
  all.sort();
  const xs = all.filter((x, i) => i === 0 || x !== all[i - 1]);
  const table = [xs];
  for (const { x, y } of lines) {
    const column = new Array(xs.length).fill(undefined);
    let place = 0;
    for (let i = 0; i < x.length; i++) {
      while (xs[place] < x[i]) place++;
      column[place] = Number.isFinite(y[i]) ? y[i] : null;
    }
    table.push(column);
  }
  return table;
}

/**
 * The row of a joined table at which a line is told of at some row: its last sample up to there.
 * @param {Array} column of the table
 * @param {number | null} row
 * @returns {number | null} null before its first sample and after its last one
 */
export function rowOf(column, row) {
  if (row === null) return null;
  let [before, after] = [row, row];
  while (before >= 0 && column[before] === undefined) before--;
  while (after < column.length && column[after] === undefined) after++;
  return before < 0 || after === column.length ? null : before;
}
