// What a plot says where the pointer is: one row per run, in a box that stays inside the plot and off its lines.

import { el } from "../dom.js";
import { xValue } from "../format.js";
import { nameNode } from "../run_name.js";
import { lineSample } from "./samples.js";
import { lowerBound } from "./series.js";

// Between the pointer and the box.
const GAP = 14;
const EDGE = 4;
// This close, in pixels, a level or an event is meant.
const NEAR_PX = 5;
const APART_PX = 4;

export class Readout {
  constructor(host) {
    this.host = host;
    this.root = el("div", { class: "wb-readout", hidden: true });
  }

  hide() {
    this.root.hidden = true;
  }

  /**
   * Says what stands at a row of the plot's table.
   * @param {uPlot} u
   * @param {number} row of its table
   * @param {number} left pixels from the left of the plot
   * @param {object} picture as Curves.draw takes it
   * @param {boolean} here the pointer is in this plot, not in another one
   */
  show(u, row, left, picture, here) {
    const rows = readings(picture.lines, u.data[0][row], picture.x).map(({ line, values }) => {
      const name = nameNode(line.of === undefined ? line.name : line.run, line.name);
      return el("div", {}, lineSample({ ...line, ring: line.points }), name, ...values.map((text) => el("b", { text })));
    });
    this.root.hidden = !rows.length;
    if (!rows.length) return;
    // Where the pointer is, the reading says at which x; elsewhere the line in the plot does.
    if (here) {
      rows.unshift(el("div", { class: "wb-readout-x", text: xValue(u.data[0][row], picture.x) }));
      const near = (picture.marks ?? []).filter((mark) => Math.abs(u.valToPos(mark.x, "x") - left) < NEAR_PX).map(({ run, text }) => [run, text].filter(Boolean).join(" · "));
      const { top } = u.cursor;
      const levels = (picture.levels ?? []).filter(({ y }) => Math.abs(u.valToPos(y, "y") - top) < NEAR_PX).map(({ text, help }) => [text, help].filter(Boolean).join(": "));
      rows.push(...[...near, ...levels].map((text) => el("div", { class: "wb-readout-mark", text })));
    }
    this.root.replaceChildren(...rows);
    this.#place(u, left);
  }

  /** Beside the pointer, at the side and the height where it covers least of the lines. */
  #place(u, left) {
    const { offsetLeft, offsetTop, clientHeight } = u.over;
    const [width, height] = [this.root.offsetWidth, this.root.offsetHeight];
    const at = offsetLeft + left;
    const room = this.host.clientWidth;
    const sides = [at + GAP, at - GAP - width].filter((x) => x >= EDGE && x + width <= room - EDGE);
    if (!sides.length) sides.push(Math.min(room - width - EDGE, Math.max(EDGE, at + GAP)));
    const lowest = Math.max(EDGE, offsetTop + clientHeight - height - EDGE);
    const heights = [offsetTop + EDGE, (offsetTop + lowest) / 2, lowest];
    const points = pointsOf(u);
    let best = null;
    for (const x of sides) {
      const inside = points.filter(([px]) => px + offsetLeft >= x - EDGE && px + offsetLeft <= x + width + EDGE);
      for (const y of heights) {
        const covered = inside.reduce((sum, [, py]) => sum + Number(py + offsetTop >= y - EDGE && py + offsetTop <= y + height + EDGE), 0);
        if (!best || covered < best.covered) best = { x, y, covered };
      }
    }
    this.root.style.left = `${best.x}px`;
    this.root.style.top = `${best.y}px`;
  }
}

/** Puts a box beside a place of a plot, inside of it. */
export function placeBeside(box, host, x, y) {
  const [width, height] = [box.offsetWidth, box.offsetHeight];
  const left = x + GAP + width <= host.clientWidth - EDGE ? x + GAP : x - GAP - width;
  box.style.left = `${Math.max(EDGE, left)}px`;
  box.style.top = `${Math.max(EDGE, Math.min(y + GAP, host.clientHeight - height - EDGE))}px`;
}

/** Where the lines are, in pixels of the plot, a few pixels apart. */
function pointsOf(u) {
  const found = [];
  const { min, max } = u.scales.x;
  for (let s = 1; s < u.data.length; s++) {
    let last = -Infinity;
    for (let i = 0; i < u.data[0].length; i++) {
      const px = ((u.data[0][i] - min) / (max - min)) * u.over.clientWidth;
      if (px - last < APART_PX || !Number.isFinite(u.data[s][i])) continue;
      last = px;
      found.push([px, u.valToPos(u.data[s][i], u.series[s].scale)]);
    }
  }
  return found;
}

/**
 * What the lines of a plot say at an x: one reading per run, with the values of all its lines; of a line without a run one
 * of its own. A line says nothing where it has no samples, and of a score that was measured before, at which step.
 * @param {object[]} lines as Curves.draw takes them
 * @param {string} kind of x
 * @returns {{line: object, values: string[]}[]}
 */
export function readings(lines, x, kind) {
  const groups = new Map();
  lines.forEach((line, i) => {
    const k = line.quiet ? -1 : sampleAt(line, x, lines);
    if (k < 0) return;
    const key = line.of ?? i;
    if (!groups.has(key)) groups.set(key, { line, values: [] });
    const { values } = groups.get(key);
    const earlier = line.points && xValue(line.x[k], kind) !== xValue(x, kind);
    // Of parts that stand on each other, each tells its own.
    values.push([line.of === undefined ? "" : line.what, line.format((line.own ?? line.y)[k]), earlier ? `(${xValue(line.steps[k], "step")})` : ""].filter(Boolean).join(" "));
  });
  return [...groups.values()];
}

/** Index of the sample of a line that holds at an x: the last one up to there; -1 before the first and after the end. */
function sampleAt(line, x, lines) {
  // A score holds for as long as its run goes on; any other line ends with its last sample.
  const ends = line.points ? lines.filter(({ of }) => of === line.of) : [line];
  if (!ends.some((one) => one.x[lastNumber(one, one.x.length - 1)] >= x)) return -1;
  const k = lowerBound(line.x, x);
  return lastNumber(line, line.x[k] === x ? k : k - 1);
}

/** Index of the last number up to an index, or -1. */
function lastNumber({ y, own = y }, k) {
  let at = k;
  while (at >= 0 && !Number.isFinite(own[at])) at--;
  return at;
}
