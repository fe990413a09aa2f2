// Colours, dashes and names of what is drawn: as workbench/telemetry/quantities.py declares them. quantities.js is written by
// `python -m workbench.telemetry.quantities`, and a test compares the two.

import { axes as AXES, parts, ramp as RAMP_COLOURS, runColours as RUNS, runDashes as DASHES, scalars as SCALARS } from "./quantities.js";

export { learnedBriefly as LEARNED_BRIEFLY, layerStates as LAYER_STATES, levelDashes as LEVEL_DASHES, levelHelp as LEVEL_HELP, perLayer as PER_LAYER, smoothing as SMOOTHING, speedSeconds as SPEED_SECONDS, workParts as WORK_PARTS } from "./quantities.js";
export { AXES, RAMP_COLOURS };

/** What is written under a horizontal axis, by its name. */
export const X_TITLES = Object.fromEntries(AXES.map(({ name, title }) => [name, title]));

/** Parts of a step in the order in which they happen. */
export const STEP_PARTS = Object.entries(parts).map(([name, colour]) => ({ name, colour }));

/** What pictures call a scalar; a scheduled knob goes by its path in the recipe. */
export function labelOf(name) {
  return SCALARS[name]?.label ?? name;
}

/** The unit of a scalar, else what it is called: the title of its axis, whose numbers have their % with them. */
export function axisTitle(name) {
  const { title = name, unit } = SCALARS[name] ?? {};
  return unit && unit !== "%" ? unit : title;
}

/** Whether a scalar is a share, which is drawn in hundredths. */
export function isShare(name) {
  return SCALARS[name]?.unit === "%";
}

/** What a scalar is, in a sentence. */
export function helpOf(name) {
  return SCALARS[name]?.help ?? "a knob of the recipe that changes while the run trains";
}

/** Colours and dashes of runs by their place among the watched: one list, which both themes can show; a run watched alone needs no dash. */
export function palette(dark, alone = false) {
  return { dark, alone, run: (place) => markOf(place).stroke, dash: (place) => (alone ? [] : markOf(place).dash) };
}

/** The line of a run: {stroke, dash}, as run_colour and run_dash in workbench/telemetry/quantities.py have it. */
export function markOf(place) {
  // Shifted by one whenever the colours repeat.
  return { stroke: RUNS[place % RUNS.length], dash: DASHES[(Math.floor(place / RUNS.length) + place) % DASHES.length] };
}

/**
 * Places of watched runs: each takes the lowest one that is free and keeps it; as places in workbench/plots/palette.py.
 * @param {string[]} ids
 * @param {Record<string, number>} held places of before
 * @returns {Record<string, number>}
 */
export function placesOf(ids, held = {}) {
  const places = Object.fromEntries(ids.filter((id) => id in held).map((id) => [id, held[id]]));
  const taken = new Set(Object.values(places));
  for (const id of ids) {
    if (id in places) continue;
    let free = 0;
    while (taken.has(free)) free++;
    places[id] = free;
    taken.add(free);
  }
  return places;
}

/** Which runs the views of this page draw, and as which lines. */
class WatchedRuns {
  constructor() {
    this.views = new Map();
    this.listeners = new Set();
  }

  /** A view shows these runs (id -> place); null: it is gone. */
  tell(view, places) {
    if (places) this.views.set(view, places);
    else this.views.delete(view);
    for (const listener of this.listeners) listener();
  }

  /** Place of a run that is drawn somewhere, else undefined. */
  placeOf(id) {
    return [...this.views.values()].findLast((places) => id in places)?.[id];
  }

  /**
   * {stroke, dash} of a run that one Lab draws, else null.
   * @param {string} id of the run
   * @param {string[]} together what that Lab draws: another one of the page has colours of its own
   */
  markOf(id, together) {
    if (!together.includes(id)) return null;
    const views = [...this.views.values()].filter((places) => id in places);
    const own = views.findLast((places) => Object.keys(places).length === together.length && together.every((each) => each in places));
    const place = (own ?? views.at(-1))?.[id];
    return place === undefined ? null : markOf(place);
  }
}

const OF_PAGE = Symbol.for("workbench.watched");

/** The one list of watched runs of a page: its widgets come in bundles of their own, and share it. */
export function watchedRuns(page = globalThis) {
  return (page[OF_PAGE] ??= new WatchedRuns());
}

/** Opacity of what was measured, behind its smoothed line: many such lines cover each other. On either ground with the same contrast, or there smoothed lines would not stand out. */
export function faint(runs, dark) {
  if (dark) return runs > 3 ? 0.28 : 0.36;
  return runs > 3 ? 0.2 : 0.32;
}

/** `colour` (#rrggbb) with an opacity. */
export function faded(colour, opacity) {
  const [r, g, b] = rgb(colour);
  return `rgba(${r}, ${g}, ${b}, ${opacity})`;
}

/** [r, g, b] of #rrggbb. */
export function rgb(colour) {
  const value = parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

const SHADES = 256;
let table = null;

/** The ramp in 256 shades, packed as a canvas has its pixels: a picture of a hundred thousand is drawn per frame. */
export function shades() {
  table ??= Uint32Array.from({ length: SHADES }, (_, i) => {
    const [r, g, b] = ramp(i / (SHADES - 1));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
  return table;
}

/** Colour of a place 0..1 on the ramp, as [r, g, b]. */
export function ramp(place) {
  const at = Math.min(1, Math.max(0, place)) * (RAMP_COLOURS.length - 1);
  const i = Math.min(RAMP_COLOURS.length - 2, Math.floor(at));
  const a = rgb(RAMP_COLOURS[i]);
  const b = rgb(RAMP_COLOURS[i + 1]);
  return a.map((value, k) => Math.round(value + (at - i) * (b[k] - value)));
}
