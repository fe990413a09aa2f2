// A plot as SVG text, with title, legend and axes: what is downloaded, and what a PNG is made of. Pure.

import { boundaryLabels, inkOf, inSight, markPlace, withLines } from "./activity.js";
import { duration, short } from "../format.js";
import { X_TITLES } from "../palette.js";
import { escaped, sample, sampleWidth, tag } from "./samples.js";
import { axisRange, outside, xRange, xTicks, yTicks } from "./scales.js";
import { visible } from "./series.js";

const FONT = 12;
// Average of proportional digits and letters at this size: text cannot be measured without a page.
const LETTER = 6.6;
const MARGIN = { left: 62, right: 20, top: 22, bottom: 40 };
const RIGHT_AXIS = 54;
const TITLE = 30;
const ROW = 20;
const FAMILY = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";

/**
 * The whole picture.
 * @param {object} sheet
 * @param {string} sheet.title
 * @param {{line?: object, ink?: object, ramp?: string[]}[]} sheet.legend samples with their `text`
 * @param {number} sheet.width
 * @param {number} sheet.height of the plot alone
 * @param {{ink: string, muted: string, ground: string, grid: string}} sheet.theme
 * @param {(top: number) => string} sheet.body draws the plot below `top`
 */
export function sheetSvg({ title, legend, width, height, theme, body }) {
  const rows = wrapped(legend, width - 2 * 16);
  const top = TITLE + rows.length * ROW;
  const full = top + height;
  const parts = [
    tag("rect", { width, height: full, fill: theme.ground }),
    tag("text", { x: 16, y: 21, fill: theme.ink, "font-size": 15, "font-weight": 600 }, escaped(title)),
    ...rows.flatMap((row, r) => row.map((item) => entry(item, TITLE + r * ROW + ROW / 2, theme))),
    body(top),
  ];
  const root = { xmlns: "http://www.w3.org/2000/svg", width, height: full, viewBox: `0 0 ${width} ${full}`, "font-family": FAMILY, "font-size": FONT };
  return tag("svg", root, parts.join(""));
}

/** Legend entries with their places, row by row. */
function wrapped(legend, room) {
  const rows = [];
  let x = Infinity;
  for (const item of legend) {
    const takes = sampleWidth(item) + 6 + LETTER * item.text.length + 18;
    if (x + takes > room) {
      rows.push([]);
      x = 0;
    }
    rows.at(-1).push({ ...item, x: 16 + x });
    x += takes;
  }
  return rows;
}

function entry(item, y, theme) {
  const text = tag("text", { x: item.x + sampleWidth(item) + 6, y: y + 4, fill: theme.muted }, escaped(item.text));
  return sample(item, y) + text;
}

/**
 * Axes and lines of a picture as curves.js draws it.
 * @param {object} picture see Curves.draw
 */
export function curvesSvg(picture, width, height, top) {
  const box = {
    left: MARGIN.left,
    right: width - (picture.right ? RIGHT_AXIS : MARGIN.right),
    top: top + MARGIN.top,
    bottom: top + height - MARGIN.bottom,
  };
  const lines = picture.lines.map((line) => ({ ...line, ...visible(line, picture.window, 1600) }));
  const place = { x: linear(xRange(picture), [box.left, box.right]), ...scalesOf(picture, box) };
  const clip = `wb-clip-${Math.round(top)}`;
  const clipped = [...(picture.levels ?? []).map((level) => levelLine(level, box, place.y, picture.theme)), ...lines.map((line) => curve(line, place, box))];
  return [
    gridLines(picture, place, box),
    tag("clipPath", { id: clip }, tag("rect", { x: box.left, y: box.top - 1, width: box.right - box.left, height: box.bottom - box.top + 2 })),
    eventMarks(picture, place.x, box, width),
    tag("g", { "clip-path": `url(#${clip})` }, clipped.join("")),
    // Not clipped: one at the edge, as the last score is, would be cut in half.
    ...lines.map((line) => rings(line, place, box, picture.theme)),
    strayMarks(picture, place, box),
    tag("text", { x: (box.left + box.right) / 2, y: box.bottom + 34, fill: picture.theme.muted, "text-anchor": "middle" }, X_TITLES[picture.x]),
  ].join("");
}

/** A picture that a canvas has drawn, axes included. */
export function canvasSvg(href, x, y, width, height) {
  return tag("image", { href, x, y, width, height });
}

function scalesOf(picture, box) {
  const made = {};
  for (const [scale, axis] of [["y", picture.left], ["right", picture.right]]) {
    if (!axis) continue;
    const range = axisRange(picture.lines, scale, axis, scale === "y" && !picture.window ? picture.levels : [], picture.window);
    made[scale] = axis.log && range[0] > 0 ? logarithmic(range, [box.bottom, box.top]) : linear(range, [box.bottom, box.top]);
    made[scale].range = range;
  }
  return made;
}

function linear([from, to], [a, b]) {
  const place = (value) => a + ((value - from) / (to - from)) * (b - a);
  place.range = [from, to];
  return place;
}

function logarithmic([from, to], ends) {
  const place = linear([Math.log(from), Math.log(to)], ends);
  return (value) => place(Math.log(value));
}

function gridLines(picture, place, box) {
  const { theme } = picture;
  const out = [];
  for (const tick of yTicks(picture.left, ...place.y.range)) {
    const y = place.y(tick);
    out.push(tag("line", { x1: box.left, x2: box.right, y1: y, y2: y, stroke: theme.grid }));
    out.push(tag("text", { x: box.left - 8, y: y + 4, fill: theme.muted, "text-anchor": "end" }, escaped(picture.left.format(tick))));
  }
  if (picture.right) {
    for (const tick of yTicks(picture.right, ...place.right.range)) {
      out.push(tag("text", { x: box.right + 8, y: place.right(tick) + 4, fill: theme.muted }, escaped(picture.right.format(tick))));
    }
  }
  for (const tick of xTicks(picture.x, ...place.x.range, box.right - box.left)) {
    const text = picture.x === "seconds" ? duration(tick) : short(tick);
    out.push(tag("text", { x: place.x(tick), y: box.bottom + 17, fill: theme.muted, "text-anchor": "middle" }, escaped(text)));
  }
  return out.join("");
}

function levelLine(level, box, place, theme) {
  const y = place(level.y);
  return tag("line", { x1: box.left, x2: box.right, y1: y, y2: y, stroke: level.stroke ?? theme.muted, "stroke-dasharray": level.dash.join(" ") });
}

function eventMarks(picture, place, box, width) {
  const out = [];
  const placeOf = ({ x, stage }) => markPlace(place(x), box.left, stage || picture.window);
  for (const mark of withLines(picture.marks ?? [], placeOf)) {
    if (mark.place < box.left || mark.place > box.right) continue;
    out.push(tag("line", { x1: mark.place, x2: mark.place, y1: box.top, y2: box.bottom, stroke: mark.stroke, "stroke-dasharray": mark.stage ? "5 3" : "2 3", opacity: mark.stage ? 0.9 : 0.6 }));
  }
  const words = inSight(picture.marks ?? [], (x) => markPlace(place(x), box.left, picture.window), box.left, box.right);
  for (const { text, x, stroke } of labelsWithin(words, width)) out.push(tag("text", { x, y: box.top - 6, fill: inkOf(text, stroke, picture.theme), "font-size": 11 }, escaped(text)));
  return out.join("");
}

/** Labels with their places; the last one stands a little before its mark where it would be cut, or is its sign alone. */
function labelsWithin(words, width) {
  const takes = (text) => LETTER * text.length;
  const placed = (labels) => labels.map(({ text, place, stroke }) => ({ text, stroke, x: Math.min(place + 2, width - takes(text)) }));
  const whole = placed(boundaryLabels(words, takes));
  const [before, last] = whole.slice(-2);
  return last && before.x + takes(before.text) > last.x ? placed(boundaryLabels(words, takes, width)) : whole;
}

/** As the page marks them: a small sign at the edge where a sample lies beyond it. */
function strayMarks({ lines, window }, place, box) {
  const marks = lines.flatMap((line) => {
    if (line.fill || line.smooth) return [];
    const fill = line.edge ?? line.stroke;
    return outside(line, place[line.scale ?? "y"].range, window).map(({ x, above }) => {
      const [at, tip, base] = [place.x(x), above ? box.top : box.bottom, above ? box.top + 6 : box.bottom - 6].map((value) => value.toFixed(2));
      return tag("path", { d: `M${at} ${tip}L${Number(at) - 4} ${base}L${Number(at) + 4} ${base}Z`, fill });
    });
  });
  return [...new Set(marks)].join("");
}

function curve(line, place, box) {
  const y = place[line.scale ?? "y"];
  const points = Array.from(line.x, (x, i) => [place.x(x), y(line.y[i])]);
  const strokes = { stroke: line.stroke, "stroke-width": line.width ?? 2, "stroke-dasharray": (line.dash ?? []).join(" "), "stroke-linejoin": "round" };
  const path = tag("path", { d: pathOf(points), ...strokes, fill: "none" });
  if (line.fill && points.length) {
    const [first, last] = [points[0][0], points.at(-1)[0]];
    const base = box.bottom.toFixed(2);
    const area = `${pathOf(points)}L${last.toFixed(2)} ${base}L${first.toFixed(2)} ${base}Z`;
    return tag("path", { d: area, fill: line.fill, stroke: "none" }) + path;
  }
  return path;
}

/** The samples of a line of few, where they lie within the picture. */
function rings(line, place, box, theme) {
  if (!line.points) return "";
  const y = place[line.scale ?? "y"];
  const inside = ([cx, cy]) => cx >= box.left - 0.5 && cx <= box.right + 0.5 && cy >= box.top - 0.5 && cy <= box.bottom + 0.5;
  const points = Array.from(line.x, (x, i) => [place.x(x), y(line.y[i])]).filter(inside);
  return points.map(([cx, cy]) => tag("circle", { cx, cy, r: 3.2, fill: line.whole ? line.stroke : theme.ground, stroke: line.stroke, "stroke-width": 1.8 })).join("");
}

/** A path that ends where there is no number and begins anew behind. */
function pathOf(points) {
  let drawing = false;
  return points
    .map(([x, y]) => {
      const command = Number.isFinite(y) ? (drawing ? "L" : "M") : "";
      drawing = Number.isFinite(y);
      return command && `${command}${x.toFixed(2)} ${y.toFixed(2)}`;
    })
    .join("");
}
