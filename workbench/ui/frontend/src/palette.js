// Colours and dashes. Runs differ in hue, lightness and dash, so no pair depends on red against green.

const RUNS_LIGHT = ["#0a62b5", "#bf4a00", "#007a5e", "#93338c", "#4d5259", "#8a6400", "#0e7c93", "#b3264a"];
const RUNS_DARK = ["#62acf8", "#ff9a57", "#3fcea4", "#dd90d6", "#c3c8cf", "#e6c35c", "#5cd0e6", "#ff8fa8"];
const DASHES = [[], [9, 4], [3, 3], [11, 3, 3, 3], [6, 2], [2, 5], [14, 4], [8, 3, 2, 3, 2, 3]];

// What a layer does, in the order of the codes on the wire: words, colour on light and dark alike, and a shape, the ink
// of its row from bottom to top. The more ink the more work. As in workbench/plots/palette.py, and JSON but for the last
// commas, so that a test can compare the two.
export const LAYER_STATES = [
  {
    "name": "running",
    "words": "runs and trains",
    "sentence": "runs and trains",
    "colour": "#0072B2",
    "shape": "########.",
    "mark": "█",
    "opacity": 1,
  },
  {
    "name": "dropped",
    "words": "skipped this time",
    "sentence": "is skipped this time, its input passes unchanged",
    "colour": "#D55E00",
    "shape": "...##....",
    "mark": "━",
    "opacity": 1,
  },
  {
    "name": "frozen",
    "words": "runs, but is not trained (frozen)",
    "sentence": "runs, but is not trained (frozen)",
    "colour": "#56B4E9",
    "shape": "####.....",
    "mark": "▄",
    "opacity": 1,
  },
  {
    "name": "absent",
    "words": "does not exist yet",
    "sentence": "does not exist yet",
    "colour": "#8A9099",
    "shape": "########.",
    "mark": "□",
    "opacity": 0.16,
  },
  {
    "name": "grown",
    "words": "new: trained from fresh weights",
    "sentence": "new, trained from fresh weights",
    "colour": "#009E73",
    "shape": "###..###.",
    "mark": "=",
    "opacity": 1,
  },
  {
    "name": "copied",
    "words": "new: started as a copy",
    "sentence": "started as a copy of a lower layer",
    "colour": "#CC79A7",
    "shape": "##.##.##.",
    "mark": "≡",
    "opacity": 1,
  },
];

export const WORK_PARTS = [
  {
    "done": "computed forward",
    "words": "forward only",
    "colour": "#56B4E9",
  },
  {
    "done": "computed backward",
    "words": "forward and backward",
    "colour": "#0072B2",
  },
];

/** Parts of a step in the order in which they happen; as in workbench/plots/palette.py. */
export const STEP_PARTS = [
  { "name": "data", "colour": "#E69F00" },
  { "name": "forward", "colour": "#56B4E9" },
  { "name": "backward", "colour": "#0072B2" },
  { "name": "optimizer", "colour": "#009E73" },
  { "name": "telemetry", "colour": "#CC79A7" },
];

// Dark to light with one direction of hue, readable in grey; made for this page.
const RAMP = ["#14213f", "#1d4b86", "#23789a", "#3da58f", "#98c66c", "#f3e379"];

/** Colours of one theme. */
export function palette(dark) {
  const runs = dark ? RUNS_DARK : RUNS_LIGHT;
  return {
    dark,
    run: (i) => runs[i % runs.length],
    dash: (i) => DASHES[i % DASHES.length],
  };
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
  const at = Math.min(1, Math.max(0, place)) * (RAMP.length - 1);
  const i = Math.min(RAMP.length - 2, Math.floor(at));
  const a = rgb(RAMP[i]);
  const b = rgb(RAMP[i + 1]);
  return a.map((value, k) => Math.round(value + (at - i) * (b[k] - value)));
}

/** The ramp from low to high. */
export const RAMP_COLOURS = RAMP;
