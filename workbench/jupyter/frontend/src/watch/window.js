// The stretch of x that all plots of a view show: zooming, panning, following the end. Pure.
// A window is [from, to] or null for everything; an extent is the first and last x that there is.

/** A stretch smaller than this share of the run is below one record of most. */
const SMALLEST = 1e-6;

/**
 * Zoomed about a place that stays where it is.
 * @param {number} factor 0.5 shows half as much
 * @param {number} at x that keeps its place on the screen
 */
export function zoomed(window, extent, factor, at) {
  if (!extent) return null;
  const [from, to] = window ?? extent;
  return limited([at - (at - from) * factor, at + (to - at) * factor], extent);
}

/** Moved by a share of its width; at either end it stops. */
export function panned(window, extent, share) {
  if (!extent || !window) return null;
  const width = window[1] - window[0];
  const by = share * width;
  const most = Math.max(extent[1] - window[1], 0);
  const least = Math.min(extent[0] - window[0], 0);
  const shift = Math.min(most, Math.max(least, by));
  return [window[0] + shift, window[1] + shift];
}

/** Within the extent, and no smaller than can be told apart; null when that is everything. */
export function limited(window, extent) {
  const [first, last] = extent;
  const whole = last - first;
  const [low, high] = window[0] <= window[1] ? window : [window[1], window[0]];
  const least = Math.max(whole * SMALLEST, Number.EPSILON * Math.abs(last));
  if (high - low < least) return [(low + high - least) / 2, (low + high + least) / 2];
  const [from, to] = [Math.max(first, low), Math.min(last, high)];
  if (!(to > from)) return null;
  return from <= first && to >= last ? null : [from, to];
}

/** A window that ended with the run goes on with it. */
export function followed(window, before, now) {
  if (!window || !before || !now || now[1] <= before[1]) return window;
  const touches = window[1] >= before[1] - (window[1] - window[0]) * 1e-3;
  return touches ? [window[0] + now[1] - before[1], window[1] + now[1] - before[1]] : window;
}

/** The same stretch on another axis, through what both have in common: the steps of a run. */
export function translated(window, clock, from, to) {
  if (!window || !clock?.has(from) || !clock.has(to)) return null;
  const [low, high] = clock.at(clock.stepsAt(Float64Array.from(window), from), to);
  return high > low ? [low, high] : null;
}
