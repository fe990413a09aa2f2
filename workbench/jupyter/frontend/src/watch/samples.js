// What an entry of a legend looks like, on the page and in a saved picture: a piece of a line as it is drawn, the shape
// of a layer's state, or a ramp of colours.

import { el } from "../dom.js";

/** Text for XML. */
export function escaped(text) {
  return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** An element as markup; attributes without a value are left out. */
export function tag(name, attributes, inside = "") {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([key, value]) => ` ${key}="${escaped(typeof value === "number" ? Number(value.toFixed(2)) : value)}"`);
  return `<${name}${written.join("")}>${inside}</${name}>`;
}

/** Pixels that a sample takes; words alone have none. */
export function sampleWidth({ ramp, line, ink }) {
  if (ramp) return 96;
  return line || ink ? 24 : 0;
}

/** Markup of what an entry of a legend looks like, from `x` on and about the height `y`. */
export function sample({ x, line, ink, ramp }, y) {
  if (ramp) {
    const size = 96 / ramp.length;
    return ramp.map((fill, i) => tag("rect", { x: x + i * size, y: y - 5, width: size + 0.5, height: 10, fill })).join("");
  }
  if (ink) {
    const slice = 14 / ink.shape.length;
    return [...ink.shape.matchAll(/#+/g)]
      .map(({ index, 0: run }) =>
        tag("rect", { x: x + 3, y: y + 7 - (index + run.length) * slice, width: 18, height: run.length * slice, fill: ink.colour, opacity: ink.opacity }),
      )
      .join("");
  }
  if (!line) return "";
  if (line.ring) return tag("circle", { cx: x + 12, cy: y, r: 3.4, fill: line.whole ? line.stroke : "none", stroke: line.stroke, "stroke-width": 1.8 });
  if (line.fill) return tag("rect", { x: x + 3, y: y - 5, width: 18, height: 10, fill: line.fill });
  return tag("line", { x1: x, x2: x + 24, y1: y, y2: y, stroke: line.stroke, "stroke-width": line.width ?? 2, "stroke-dasharray": (line.dash ?? []).join(" ") });
}

/** The sample of a line as an element: {stroke, dash, width, ring: for points, whole: filled ones, fill: for an area}. */
export function lineSample(line) {
  return sampleOf({ line });
}

/** A sample as an element. */
export function sampleOf(item) {
  if (item.ramp) return el("span", { class: "wb-ramp", style: `background-image: linear-gradient(90deg, ${item.ramp.join(", ")})` });
  const [left, width, height] = item.ink ? [3, 18, 14] : [0, sampleWidth(item), 10];
  const look = { xmlns: "http://www.w3.org/2000/svg", class: "wb-sample", width, height, viewBox: `${left} 0 ${width} ${height}`, "aria-hidden": "true" };
  const markup = tag("svg", look, sample({ x: 0, ...item }, height / 2));
  return document.importNode(new DOMParser().parseFromString(markup, "image/svg+xml").documentElement, true);
}
