// A border between two parts that moves by pointer and by keys, as ARIA describes a window splitter.

import { el } from "./dom.js";

/**
 * @param {object} border
 * @param {string} border.label what it changes
 * @param {boolean} border.vertical a vertical line, which moves sideways
 * @param {number} border.least
 * @param {number} border.most
 * @param {number} border.step of one arrow key
 * @param {() => number} border.value where it is now
 * @param {(event: PointerEvent) => number} border.at the value under the pointer
 * @param {(value: number) => void} border.move
 * @param {() => void} border.reset back to where it was at first
 */
export function separator({ label, vertical, least, most, step, value, at, move, reset, ...properties }) {
  const tell = () => node.setAttribute("aria-valuenow", String(Math.round(value())));
  const to = (wanted) => {
    move(Math.min(most, Math.max(least, wanted)));
    tell();
  };
  const drag = (event) => to(at(event));
  const pointerdown = (event) => {
    event.preventDefault();
    event.stopPropagation();
    node.focus();
    node.setPointerCapture(event.pointerId);
    node.addEventListener("pointermove", drag);
    node.addEventListener("lostpointercapture", () => node.removeEventListener("pointermove", drag), { once: true });
  };
  const keydown = (event) => {
    const by = vertical ? { ArrowLeft: -step, ArrowRight: step } : { ArrowUp: -step, ArrowDown: step };
    const wanted = { Home: least, End: most }[event.key] ?? value() + (by[event.key] ?? NaN);
    if (!Number.isFinite(wanted)) return;
    event.preventDefault();
    event.stopPropagation();
    to(wanted);
  };
  const dblclick = (event) => {
    event.stopPropagation();
    reset();
    tell();
  };
  const fixed = { role: "separator", tabindex: "0", title: `${label}: drag, or arrow keys; double-click for the first size`, "aria-label": label, "aria-valuemin": String(least), "aria-valuemax": String(most), "aria-orientation": vertical ? "vertical" : "horizontal" };
  const node = el("div", { ...fixed, ...properties, on: { pointerdown, keydown, dblclick, focus: tell } });
  tell();
  return node;
}
