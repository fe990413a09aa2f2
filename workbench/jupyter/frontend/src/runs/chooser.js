// What the head of the table offers: columns of our own and of any knob of the recipes, and what to group by.

import { dropdown, el } from "../dom.js";
import { AMOUNT, COLUMNS, knobKey, pathOf, scoreKey, UNIT } from "./columns.js";
import { BY_RECIPE, FLAT } from "./groups.js";

// Of knobs that differ, those that are offered without being asked for by name.
const OFFERED = 24;
// They are offered in this order, and any other after them.
const AXES = ["optimizer", "optimizer.schedule", "architecture", "depth", "objective", "data", "budget", "seed", "execution"];
// Of knobs that hold a word that was typed.
const TOLD = 6;
let choosers = 0;

/** The columns of the table: a box for each, and a field that adds a knob's. */
export class Chooser {
  /** @param {(keys: string[]) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.id = `lab-chooser-${(choosers += 1)}`;
    this.boxes = el("div", { class: "lab-boxes" });
    this.names = el("datalist", { id: `${this.id}-knobs` });
    this.field = el("input", { type: "text", list: `${this.id}-knobs`, "aria-label": "knob to add as a column", placeholder: "a knob: lr, depth.theta …", autocomplete: "off", spellcheck: "false" });
    this.problem = el("span", { class: "lab-unknown", role: "status" });
    const add = el("button", { type: "button", text: "Add column" });
    this.add = el("div", { class: "lab-add" }, this.field, add, this.names, this.problem);
    // Not a form: with a list of suggestions, browsers do not agree on whether Enter sends one.
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.#add(this.field.value.trim());
    });
    add.addEventListener("click", () => this.#add(this.field.value.trim()));
    this.node = el("fieldset", { class: "lab-chooser", id: this.id, "aria-label": "columns" }, this.boxes, this.add);
    this.node.hidden = true;
  }

  /** @param {string[]} keys shown. @param {import("./filter.js").Knobs | null} knobs. @param {string[]} scores that runs have */
  show(keys, knobs, scores) {
    this.keys = keys;
    const drawn = [...keys, ...scores].join();
    if (this.node.hidden || (knobs === this.knobs && drawn === this.drawn)) return;
    Object.assign(this, { knobs, drawn });
    const held = document.activeElement?.dataset?.key;
    const { paths: offered, more } = offeredOf(knobs);
    const paths = [...new Set([...keys.map(pathOf).filter(Boolean), ...offered])];
    const all = [...COLUMNS.map(({ key, title, fixed }) => ({ key, title, fixed })), ...scores.map((name) => ({ key: scoreKey(name), title: name })), ...paths.map((path) => ({ key: knobKey(path), title: path === AMOUNT ? "budget" : path }))];
    this.order = all.map(({ key }) => key);
    const rest = more ? [el("span", { class: "lab-unknown", text: `and ${more} more that differ: name one below` })] : [];
    this.boxes.replaceChildren(...all.map((each) => this.#box(each, keys.includes(each.key))), ...rest);
    this.names.replaceChildren(...(knobs?.all ?? []).map((path) => el("option", { value: path, label: knobs.texts[path] })));
    if (held) this.boxes.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus();
    if (knobs && this.wanted) this.#add(this.wanted);
  }

  #box({ key, title, fixed }, checked) {
    const box = el("input", { type: "checkbox", checked, disabled: Boolean(fixed), "data-key": key });
    box.addEventListener("change", () => this.#choose(box.checked ? [...this.keys, key] : this.keys.filter((other) => other !== key)));
    return el("label", {}, box, title);
  }

  #choose(keys) {
    const order = this.order.filter((key) => keys.includes(key));
    // A note takes what is left of the width, so it stands last.
    this.choose([...order.filter((key) => key !== "note"), ...order.filter((key) => key === "note")]);
  }

  #add(text) {
    // The recipes are read when the columns are opened; whoever is faster need not type it again.
    this.wanted = this.knobs ? "" : text;
    const { paths, problem } = this.knobs ? sought(text, this.knobs) : { paths: [], problem: "reading the recipes" };
    this.problem.textContent = text && problem;
    if (!text || !paths.length) return this.field.focus();
    this.field.value = "";
    const key = knobKey(paths[0]);
    this.order = [...new Set([...this.order, key])];
    return this.#choose([...this.keys, key]);
  }
}

/** Knobs that differ: those that are offered, and how many more there are. The unit of a budget stands with its amount. */
export function offeredOf(knobs) {
  const paths = differingOf(knobs);
  return { paths: paths.slice(0, OFFERED), more: Math.max(0, paths.length - OFFERED) };
}

function differingOf(knobs) {
  const asked = (knobs?.asked ?? []).map((path) => (path === UNIT ? AMOUNT : path));
  return compared([...new Set(asked)].filter((path) => path !== "name" && path !== "notes"));
}

/** Paths in the order in which people compare runs by them: what was chosen, then its own knobs, then those of parts of it. */
function compared(paths) {
  const ranked = paths.map((path) => {
    const axis = AXES.findLastIndex((one) => `${path}.`.startsWith(`${one}.`));
    const rest = path.slice(axis < 0 ? 0 : AXES[axis].length + 1);
    return { path, rank: [rest.includes("."), !rest.endsWith("kind"), axis < 0 ? AXES.length : axis].map(Number) };
  });
  const order = (a, b) => a.map((part, i) => part - b[i]).find(Boolean) ?? 0;
  return ranked.sort((a, b) => order(a.rank, b.rank) || a.path.localeCompare(b.path, "en", { numeric: true })).map(({ path }) => path);
}

/**
 * The knob that is meant: by its name, or by words of its path and of what it is for.
 * @param {string} text
 * @param {import("./filter.js").Knobs} knobs
 * @returns {{paths: string[], problem: string}} no paths where several are meant, or none: the problem then names the nearest
 */
export function sought(text, knobs) {
  const paths = knobs.paths(text.toLowerCase());
  if (paths.length) return { paths, problem: "" };
  const about = knobs.about(text);
  if (about.length === 1) return { paths: about, problem: "" };
  const near = knobs.nearest(text.toLowerCase());
  const told = about.slice(0, TOLD).map((path) => (knobs.texts[path] ? `${path} (${knobs.texts[path]})` : path));
  if (told.length) return { paths: [], problem: `'${text}' is in ${about.length} knobs: ${told.join(", ")}${about.length > told.length ? " …" : ""}; name one` };
  return { paths: [], problem: `no knob '${text}'${near ? `; did you mean ${near}?` : ""}` };
}

/** What the runs are grouped by. */
export class Grouping {
  /** @param {(by: string | null) => void} choose */
  constructor(choose) {
    this.list = dropdown("group runs by", (value) => choose(value || null));
    this.list.node.className = "lab-grouping";
    this.list.node.title = "put runs together: mean and spread over what is repeated";
    this.node = this.list.node;
  }

  /** @param {string | null} by. @param {import("./filter.js").Knobs | null} knobs */
  show(by, knobs) {
    const paths = [...new Set([...(by && pathOf(by) ? [pathOf(by)] : []), ...differingOf(knobs)])];
    this.list.set([["", "by experiment"], [FLAT, "not grouped"], [BY_RECIPE, "by recipe, seeds together"], ...paths.map((path) => [knobKey(path), `by ${path === AMOUNT ? "budget" : path}`])], by ?? "");
  }
}
