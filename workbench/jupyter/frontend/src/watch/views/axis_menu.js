// The vertical axis of a plot: its range without single spikes or of all values, limits that are typed, a logarithm.

import { el, say } from "../../dom.js";
import { plainMinus, short } from "../../format.js";
import { Popover } from "../popover.js";

/** An axis as nobody has changed it. */
const AUTOMATIC = { log: false, all: false, low: null, high: null };

/** An axis as a layout has kept it; damaged parts as at first, and so a limit that a logarithm has not. */
export function axisOf({ log, all, low, high } = {}) {
  const limit = (value) => (Number.isFinite(value) && (value > 0 || log !== true) ? value : null);
  return { log: log === true, all: all === true, low: limit(low), high: limit(high) };
}

/** Why an axis with these limits cannot be logarithmic; empty where it can. */
export function whyNoLog({ low, high }) {
  const [name, limit] = low !== null && low <= 0 ? ["From", low] : ["To", high];
  return limit !== null && limit <= 0 ? `a logarithmic axis has numbers above 0 only: ${name} is ${limit}` : "";
}

/**
 * Takes what is typed into the boxes, as far as it is legal; a limit that the other one has refused is judged anew with it.
 * @param {{low: string, high: string}} typed
 * @param {object} axis as it is
 * @param {"low" | "high"} first the box that was typed into last
 * @returns {{axis: object, wrong: {low: string, high: string}}} `wrong`: why a box is refused, empty where it is taken
 */
export function limitsOf(typed, axis, first = "low") {
  const wrong = {};
  let found = axis;
  for (const end of first === "high" ? ["high", "low"] : ["low", "high"]) {
    const { value, why } = limitOf(typed[end], end, found);
    wrong[end] = why;
    if (!why) found = { ...found, [end]: value };
  }
  return { axis: found, wrong };
}

function limitOf(typed, end, axis) {
  const text = plainMinus(typed.trim().replace(",", "."));
  const value = text === "" ? null : Number(text);
  if (value === null) return { value, why: "" };
  if (Number.isNaN(value)) return { value, why: `"${text}" is no number; leave it empty for an automatic limit` };
  const other = axis[end === "low" ? "high" : "low"];
  if (other !== null && (end === "low" ? value >= other : value <= other)) return { value, why: "From must be below To" };
  return { value, why: axis.log && value <= 0 ? "a logarithmic axis has numbers above 0 only" : "" };
}

export class AxisMenu extends Popover {
  /**
   * @param {string} title of the plot
   * @param {() => object} read what the layout holds of the axis
   * @param {(axis: {log: boolean, all: boolean, low: number | null, high: number | null}) => void} change
   */
  constructor(title, read, change) {
    super({ text: "Axis", label: `Axis of ${title}` });
    Object.assign(this, { title, read, change });
    this.count = el("span", { class: "wb-outside", "aria-hidden": "true" });
    this.button.append(this.count);
    this.drawn = null;
  }

  get axis() {
    return axisOf(this.read() ?? {});
  }

  /** Range that is drawn, and how many samples lie outside of it. */
  tell(range, outside) {
    this.drawn = range;
    say(this.count, outside ? ` ▲${outside > 99 ? "99+" : outside}` : "");
    const changed = JSON.stringify(this.axis) !== JSON.stringify(AUTOMATIC);
    this.button.classList.toggle("wb-changed", changed);
    const words = `Axis of ${this.title}`;
    this.button.title = outside ? `${words}: ${outside} samples lie outside, marked at the edge` : words;
  }

  #set(changes) {
    this.change({ ...this.axis, ...changes });
  }

  content() {
    const { axis, title } = this;
    const choice = (all, text, help) => {
      const box = el("input", { type: "radio", name: `wb-range-${title}`, checked: axis.all === all, "aria-label": `${text}: ${title}`, on: { change: () => this.#set({ all }) } });
      return el("label", { title: help }, box, el("span", { text }));
    };
    const problem = el("p", { class: "wb-bad", role: "alert" });
    const boxes = { low: this.#box("low", () => settle("low")), high: this.#box("high", () => settle("high")) };
    const settle = (first) => {
      const { axis: found, wrong } = limitsOf({ low: boxes.low.value, high: boxes.high.value }, this.axis, first);
      for (const end of ["low", "high"]) boxes[end].setAttribute("aria-invalid", String(Boolean(wrong[end])));
      say(problem, wrong[first] || wrong.low || wrong.high);
      if (JSON.stringify(found) !== JSON.stringify(this.axis)) this.#set(found);
    };
    const logged = () => {
      const why = log.checked ? whyNoLog(this.axis) : "";
      if (why) log.checked = false;
      else this.#set({ log: log.checked });
      // What is refused beside it stays so, or is taken now.
      settle("low");
      if (why) say(problem, why);
    };
    const log = el("input", { type: "checkbox", checked: axis.log, "aria-label": `Logarithmic: ${title}`, on: { change: logged } });
    const limits = [["From", boxes.low], ["To", boxes.high]].map(([name, box]) => el("label", {}, el("span", { text: name }), box));
    const reset = () => (this.#set(AUTOMATIC), this.refresh());
    return [
      choice(false, "Leave out single spikes", "The range of nearly all values and of the latest ones; what lies outside is marked at the edge"),
      choice(true, "Fit all values", "From the lowest to the highest value"),
      el("div", { class: "wb-limits" }, ...limits),
      problem,
      el("label", {}, log, el("span", { text: "Logarithmic" })),
      el("button", { type: "button", text: "Reset", "aria-label": `Reset the axis of ${title}`, on: { click: reset } }),
    ];
  }

  #box(end, typed) {
    const name = { low: "From", high: "To" }[end];
    const [drawn, now] = [this.drawn?.[end === "low" ? 0 : 1], this.axis[end]];
    return el("input", { type: "text", inputmode: "decimal", class: "wb-value", value: now === null ? "" : String(now), placeholder: Number.isFinite(drawn) ? short(drawn) : "automatic", "aria-label": `${name}: ${this.title}`, on: { input: typed } });
  }
}
