// Signs on small buttons, drawn: characters would come from whatever font has them, in colour in some.

const SHAPES = {
  shown: "M1 8s2.6-4.6 7-4.6S15 8 15 8s-2.6 4.6-7 4.6S1 8 1 8zM8 5.8a2.2 2.2 0 1 0 0 4.4 2.2 2.2 0 0 0 0-4.4z",
  hidden: "M1 8s2.6-4.6 7-4.6S15 8 15 8s-2.6 4.6-7 4.6S1 8 1 8zM2.5 14 13.5 2",
  pause: "M5.2 3.2v9.6M10.8 3.2v9.6",
  resume: "M4.5 2.8v10.4L13 8z",
  stop: "M3.6 3.6h8.8v8.8H3.6z",
  steer: "M2 4.6h12M2 11.4h12M5.6 2.6v4M10.4 9.4v4",
  larger: "M9.6 2.4h4v4M6.4 13.6h-4v-4M13.6 2.4 9.2 6.8M2.4 13.6l4.4-4.4",
  smaller: "M13.6 6.8H9.2V2.4M2.4 9.2h4.4v4.4M9.2 6.8l4.4-4.4M6.8 9.2l-4.4 4.4",
  close: "M3.6 3.6l8.8 8.8M12.4 3.6l-8.8 8.8",
};
const SVG = "http://www.w3.org/2000/svg";

/** A sign of 16 by 16 in the colour of its text. */
export function icon(name) {
  const [root, path] = ["svg", "path"].map((tag) => document.createElementNS(SVG, tag));
  const look = { class: "wb-icon", width: 14, height: 14, viewBox: "0 0 16 16", fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linejoin": "round", "stroke-linecap": "round", "aria-hidden": "true" };
  for (const [key, value] of Object.entries(look)) root.setAttribute(key, value);
  path.setAttribute("d", SHAPES[name]);
  root.append(path);
  return root;
}
