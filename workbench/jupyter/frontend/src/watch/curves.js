// Curves with uPlot: lines of several runs, levels, event marks, a readout under the cursor that all plots share.

import uPlot from "uplot";

import { boundaryLabels, inkOf, inSight, markPlace, withLines } from "./activity.js";
import { el } from "../dom.js";
import { duration, short } from "../format.js";
import { Gestures } from "./gestures.js";
import { X_TITLES } from "../palette.js";
import { Readout } from "./readout.js";
import { join, rowOf, visible } from "./series.js";
import { axisRange, axisSize, isTitled, outside, xRange, xTicks, yTicks } from "./scales.js";

export const LEFT_AXIS = 54;
const RIGHT_PAD = 16;
/** At the right of the loss and of the layer map, whose columns stand under it and which has a strip of its own there. */
export const MAIN_RIGHT = 84;
const RIGHT_AXIS = 54;
const TOP_PAD = 10;
// Between the numbers of an axis and the plot.
const GAP = 8;
const MARKS_PAD = 20;
const TITLE_SIZE = 15;
// Of the signs at the edge for samples beyond it: half their width, and how close two of them may stand.
const STRAY = 4;
// Lowest and highest of each pixel; on a screen of many pixels no more than uPlot draws within a frame.
const MOST_POINTS = 4000;

export class Curves {
  /**
   * @param {HTMLElement} host where to draw
   * @param {object} options
   * @param {string} options.name of the plot in the layout
   * @param {[number, number]} options.heights least and most pixels; between them a share of the width
   * @param {number} [options.right] pixels at the right of a plot without a second axis
   * @param {object} options.monitor the view that this is a part of: its window, its hovered x
   */
  constructor(host, options) {
    this.options = options;
    this.monitor = options.monitor;
    this.right = options.right ?? RIGHT_PAD;
    this.host = host;
    this.area = el("div", { class: "wb-area", tabindex: "0", role: "img", on: { keydown: (e) => this.#key(e) } });
    this.readout = new Readout(host);
    this.empty = el("p", { class: "wb-empty" });
    host.append(this.area, this.readout.root, this.empty);
    this.gestures = new Gestures(host, () => this.#geometry(), this.monitor);
    this.inside = false;
    this.area.addEventListener("blur", () => this.#leave());
  }

  /**
   * Draws a picture; uPlot is rebuilt only when more than the numbers changed.
   * @param {object} picture {lines, x, left, right, levels, marks, window, extent, theme, label, nothing}; a line is
   *   {name, of, x, y, stroke, dash, width, points, whole, fill, own, steps, scale, format, quiet, edge}; `whole`: points of all
   *   held-out tokens, filled
   */
  draw(picture) {
    const width = Math.floor(this.host.clientWidth);
    this.area.setAttribute("aria-label", picture.label);
    const nothing = picture.lines.every((line) => line.x.length === 0);
    this.empty.hidden = !nothing;
    this.empty.textContent = nothing ? picture.nothing : "";
    if (width < 80) return;
    this.picture = picture;
    const height = this.#height(width);
    this.area.style.height = `${height}px`;
    // Without numbers there is no axis either: one from 0 to 1 would be invented.
    if (nothing) return this.close();
    this.#measure(picture);
    this.titled = isTitled(height);
    const key = JSON.stringify([
      picture.lines.map((l) => [l.name, l.stroke, l.dash, l.width, l.points, l.whole, l.scale, l.fill]),
      [picture.x, picture.left.log, Boolean(picture.right), picture.theme, Boolean(picture.marks?.length), this.titled],
    ]);
    if (key !== this.key) {
      this.key = key;
      this.plot?.destroy();
      this.plot = new uPlot(this.#uplotOptions(width, height, picture), this.#table(picture, width), this.area);
      // For tests and measurements: what is drawn, as uPlot has it.
      this.area.plot = this.plot;
    } else {
      if (width !== this.plot.width || height !== this.plot.height) this.plot.setSize({ width, height });
      this.plot.setData(this.#table(picture, width));
    }
  }

  /** Range of the left axis, and how many samples of the lines lie outside of it. */
  get drawn() {
    return this.plot ? { range: this.ranges.y, outside: this.strays.length } : { range: null, outside: 0 };
  }

  /** Another plot's pointer is at this x (null: nowhere any more). */
  point(x) {
    if (this.inside || !this.plot) return;
    const left = x === null ? -10 : this.plot.valToPos(x, "x");
    const within = x !== null && left >= 0 && left <= this.plot.over.clientWidth;
    this.remote = within;
    this.plot.setCursor({ left: within ? left : -10, top: 10 });
    if (!within) this.readout.hide();
  }

  close() {
    this.plot?.destroy();
    this.plot = this.area.plot = null;
    this.key = null;
    this.readout.hide();
  }

  #height(width) {
    const [least, most] = this.options.heights;
    const usual = Math.round(Math.min(most, Math.max(least, width * 0.36)));
    return this.monitor.heightOf(this.options.name, this.host, usual);
  }

  #measure({ lines, left, right, levels, window }) {
    this.ranges = { y: axisRange(lines, "y", left, window ? [] : levels, window) };
    if (right) this.ranges.right = axisRange(lines, "right", right, [], window);
    this.strays = lines.flatMap((line) => {
      // Of an area only the top is a value, and a smoothed line strays where the measured one does.
      if (line.fill || line.smooth) return [];
      const stroke = line.edge ?? line.stroke;
      return outside(line, this.ranges[line.scale ?? "y"], window).map((stray) => ({ ...stray, stroke }));
    });
  }

  #geometry() {
    if (!this.plot || !this.picture) return null;
    const [from, to] = xRange(this.picture);
    const { over } = this.plot;
    return { left: over.offsetLeft, width: over.clientWidth, from, to, extent: this.picture.extent };
  }

  #table({ lines, window }, width) {
    const points = Math.min(MOST_POINTS, Math.max(800, 2 * width));
    return join(lines.map((line) => visible(line, window, points)));
  }

  #uplotOptions(width, height, picture) {
    const { theme } = picture;
    const line = (spec) => ({
      label: spec.name,
      scale: spec.scale ?? "y",
      stroke: spec.stroke,
      width: spec.width ?? 2,
      dash: spec.dash,
      fill: spec.fill,
      spanGaps: false,
      points: spec.points
        ? { show: true, size: 7, width: 1.8, stroke: spec.stroke, fill: spec.whole ? spec.stroke : theme.ground }
        : { show: false },
    });
    return {
      width,
      height,
      padding: [picture.marks?.length || this.titled ? MARKS_PAD : TOP_PAD, picture.right ? 4 : this.right, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: false, y: false },
        points: { size: 6, width: 1.5 },
        // By itself it puts the dot of a line that begins later on its beginning.
        dataIdx: (u, s, row) => (s ? rowOf(u.data[s], row) : row),
        bind: { dblclick: () => null },
      },
      scales: {
        x: { time: false, range: () => xRange(this.picture) },
        y: { distr: picture.left.log ? 3 : 1, range: () => this.ranges.y },
        right: { range: () => this.ranges.right ?? [0, 1] },
      },
      series: [{ label: "x" }, ...picture.lines.map(line)],
      axes: this.#axes(picture),
      hooks: {
        // Behind lines, but not behind areas, which would hide them.
        drawClear: [(u) => this.#filled || this.#marks(u)],
        draw: [(u) => this.#filled && this.#marks(u), (u) => this.#levels(u), (u) => this.#markNames(u), (u) => this.#yTitle(u), (u) => this.#strayMarks(u)],
        setCursor: [(u) => this.#moved(u)],
        ready: [(u) => this.#watchPointer(u)],
      },
    };
  }

  #axes({ x, left, right, theme }) {
    const look = { stroke: theme.muted, font: theme.font, labelFont: theme.font, labelGap: 0 };
    const grid = { stroke: theme.grid, width: 1 };
    const values = (format) => (_, ticks) => ticks.map((tick) => (tick === null ? "" : format(tick)));
    const ticks = { show: false };
    const sized = (usual) => (u, texts) => axisSize(this.host.clientWidth, usual, widest(u.ctx, theme.font, texts ?? []), GAP);
    const axes = [
      {
        ...look,
        size: 26,
        gap: 6,
        ticks,
        grid: { show: false },
        splits: (_, __, low, high) => xTicks(x, low, high, this.plotWidth),
        values: values(x === "seconds" ? duration : short),
        ...(this.titled && { label: X_TITLES[x], labelSize: TITLE_SIZE }),
      },
      {
        ...look,
        scale: "y",
        size: sized(LEFT_AXIS),
        gap: GAP,
        ticks,
        grid,
        splits: (_, __, low, high) => yTicks(left, low, high),
        filter: (_, splits) => splits,
        values: values(left.format),
      },
    ];
    if (right) {
      axes.push({
        ...look,
        scale: "right",
        side: 1,
        size: sized(RIGHT_AXIS),
        gap: GAP,
        ticks,
        grid: { show: false },
        splits: (_, __, low, high) => yTicks(right, low, high),
        values: values(right.format),
      });
    }
    return axes;
  }

  get #filled() {
    return this.picture.lines.some((line) => line.fill);
  }

  get plotWidth() {
    // Of the host: while uPlot builds a new plot, the old one has no width any more.
    return this.host.clientWidth - LEFT_AXIS - this.right;
  }

  #levels(u) {
    const { left, top, width, height } = u.bbox;
    for (const level of this.picture.levels ?? []) {
      const y = u.valToPos(level.y, "y", true);
      if (y >= top && y <= top + height) dashed(u.ctx, [left, y], [left + width, y], level.dash, { strokeStyle: level.stroke ?? this.picture.theme.muted });
    }
  }

  #marks(u) {
    const { left, top, width, height } = u.bbox;
    const placeOf = ({ x, stage }) => markPlace(u.valToPos(x, "x", true), left, stage || this.picture.window);
    for (const { place, stage, stroke } of withLines(this.picture.marks ?? [], placeOf)) {
      const x = Math.round(place) + 0.5;
      const look = { strokeStyle: stroke, globalAlpha: stage ? 0.9 : 0.65, lineWidth: stage ? 1.5 : 1 };
      if (x >= left && x <= left + width) dashed(u.ctx, [x, top], [x, top + height], stage ? [5, 3] : [2, 3], look);
    }
  }

  #markNames(u) {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = this.picture.theme.font.replace(/^\d+/, (size) => size * ratio);
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const placeOf = (x) => markPlace(u.valToPos(x, "x", true), bbox.left, this.picture.window);
    const inside = inSight(this.picture.marks ?? [], placeOf, bbox.left, bbox.left + bbox.width);
    // The last one has room up to the edge of the canvas, not of the plot.
    const texts = boundaryLabels(inside, (text) => ctx.measureText(text).width, u.ctx.canvas.width);
    for (const { text, place, stroke } of texts) {
      ctx.fillStyle = inkOf(text, stroke, this.picture.theme);
      ctx.fillText(text, place + 2 * ratio, bbox.top - 5 * ratio);
    }
    ctx.restore();
  }

  /** The title of the left axis, above its numbers; a long one reaches over the plot, where no name of a mark may stand. */
  #yTitle(u) {
    const { left, marks, theme } = this.picture;
    if (!this.titled || !left.title) return;
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = theme.font.replace(/^\d+/, (size) => size * ratio);
    ctx.fillStyle = theme.muted;
    ctx.textBaseline = "alphabetic";
    const edge = bbox.left - GAP * ratio;
    const fits = ctx.measureText(left.title).width <= edge;
    ctx.textAlign = fits ? "right" : "left";
    if (fits || !marks?.length) ctx.fillText(left.title, fits ? edge : 0, bbox.top - 8 * ratio);
    ctx.restore();
  }

  /** A small sign at the edge where a sample lies beyond it. */
  #strayMarks(u) {
    const { ctx, bbox } = u;
    const size = STRAY * devicePixelRatio;
    const seen = new Set();
    ctx.save();
    for (const { x: value, above, stroke } of this.strays) {
      const x = u.valToPos(value, "x", true);
      const place = `${Math.round(x / size)} ${above} ${stroke}`;
      if (x < bbox.left || x > bbox.left + bbox.width || seen.has(place)) continue;
      seen.add(place);
      const [tip, base] = above ? [bbox.top, bbox.top + 1.6 * size] : [bbox.top + bbox.height, bbox.top + bbox.height - 1.6 * size];
      ctx.fillStyle = stroke;
      ctx.beginPath();
      ctx.moveTo(x, tip);
      ctx.lineTo(x - size, base);
      ctx.lineTo(x + size, base);
      ctx.fill();
    }
    ctx.restore();
  }

  #watchPointer(u) {
    u.over.addEventListener("pointerenter", () => (this.inside = true));
    u.over.addEventListener("pointerleave", () => this.#leave());
  }

  #leave() {
    this.inside = false;
    this.readout.hide();
    this.monitor.point(null, this);
  }

  #moved(u) {
    const { idx, left } = u.cursor;
    const somewhere = (this.inside || this.remote) && idx !== null && idx !== undefined && left >= 0;
    if (!somewhere) return this.readout.hide();
    this.readout.show(u, idx, left, this.picture, this.inside);
    if (this.inside) this.monitor.point(u.posToVal(left, "x"), this);
    return undefined;
  }

  #key(event) {
    const at = this.inside && this.plot?.cursor.left >= 0 ? this.plot.posToVal(this.plot.cursor.left, "x") : undefined;
    if (this.gestures.key(event, at)) return;
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined || !this.plot) return;
    event.preventDefault();
    const xs = this.plot.data[0];
    if (!xs.length) return;
    const step = Number.isFinite(move) ? move * Math.max(1, Math.round(xs.length / 100)) : move;
    const from = this.plot.cursor.idx ?? (move > 0 ? 0 : xs.length - 1);
    const idx = Math.min(xs.length - 1, Math.max(0, from + step));
    this.inside = true;
    this.plot.setCursor({ left: this.plot.valToPos(xs[idx], "x"), top: 20 });
    this.monitor.tell(this.readout.root);
  }
}

/** Pixels of the page that the longest of some texts takes. */
function widest(ctx, font, texts) {
  ctx.save();
  ctx.font = font;
  const width = texts.reduce((most, text) => Math.max(most, ctx.measureText(text).width), 0);
  ctx.restore();
  return width;
}

/** A straight line on a canvas; widths and dashes in pixels of the page. */
function dashed(ctx, from, to, dash, { lineWidth = 1, ...look }) {
  ctx.save();
  Object.assign(ctx, { ...look, lineWidth: lineWidth * devicePixelRatio });
  ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
  ctx.restore();
}
