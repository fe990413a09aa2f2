// The grid of runs. Only the rows in its window are in the page, so a thousand runs cost what thirty do.

import { el } from "../dom.js";
import { fill, newLine } from "./cells.js";
import { BY_KEY, COLUMNS } from "./columns.js";
import { between, scrollFor, visible } from "./rows.js";

export const ROW_HEIGHT = 28;
const KEYS = "Enter watches the run, Space selects, T edits its tags, N its note";

/** The grid; what happens in it is told to `on`: sort(key), select(ids), edit(id, what, text), key(name). */
export class Table {
  constructor(on) {
    this.on = on;
    this.rows = [];
    this.ids = [];
    this.selected = new Set();
    this.current = null;
    this.anchor = null;
    this.entries = new Map();
    this.height = null;
    this.head = el("tr", { role: "row", "aria-rowindex": "1" });
    this.columns = el("colgroup");
    this.above = spacer();
    this.below = spacer();
    this.body = el("tbody");
    this.grid = el(
      "table",
      { role: "grid", class: "lab-grid", "aria-label": "runs", "aria-multiselectable": "true", "aria-description": KEYS, tabindex: "-1" },
      this.columns, el("thead", {}, this.head), this.above, this.body, this.below,
    );
    this.node = el("div", { class: "lab-scroll" }, this.grid);
    this.node.addEventListener("scroll", () => this.#draw(), { passive: true });
    this.grid.addEventListener("click", (event) => this.#clicked(event));
    this.grid.addEventListener("dblclick", (event) => this.#edit(event.target));
    this.grid.addEventListener("keydown", (event) => this.#pressed(event));
    // Text between two shift-clicks would be marked.
    this.grid.addEventListener("mousedown", (event) => event.shiftKey && event.preventDefault());
    this.watcher = new ResizeObserver(() => {
      this.height = null;
      this.#draw();
    });
    this.watcher.observe(this.node);
    this.keys = [];
  }

  close() {
    this.watcher.disconnect();
  }

  /**
   * Shows rows.
   * @param {object[]} rows in the order of the table
   * @param {{keys: string[], sort: object | null, selected: Set<string>}} look
   */
  show(rows, { keys, sort, selected }) {
    this.rows = rows;
    this.ids = rows.map((row) => row.id);
    this.selected = selected;
    if (keys.join() !== this.keys.join()) this.#columns(keys);
    this.#sorted(sort);
    const all = rows.length > 0 && rows.every((row) => selected.has(row.id));
    this.all.checked = all;
    this.all.indeterminate = !all && rows.some((row) => selected.has(row.id));
    this.grid.setAttribute("aria-rowcount", String(rows.length + 1));
    this.#draw();
  }

  /** Puts the keyboard on a row, scrolled into the window. */
  focus(id) {
    const index = this.ids.indexOf(id);
    if (index < 0) return;
    this.current = id;
    const height = this.#height();
    const top = scrollFor(index, this.node.scrollTop, height, ROW_HEIGHT);
    if (top !== this.node.scrollTop) this.node.scrollTop = top;
    this.#draw();
    this.entries.get(id)?.line.focus({ preventScroll: true });
  }

  #columns(keys) {
    this.keys = keys;
    for (const entry of this.entries.values()) entry.line.remove();
    this.entries.clear();
    // The last free text takes what is left; without it, the name.
    const free = keys.includes("note") ? "note" : "name";
    const widths = keys.map((key) => BY_KEY.get(key).width);
    this.columns.replaceChildren(el("col", { style: "width:32px" }), ...keys.map((key, i) => el("col", key === free ? {} : { style: `width:${widths[i]}px` })));
    this.grid.style.minWidth = `${32 + widths.reduce((sum, width) => sum + width, 0)}px`;
    this.all = el("input", { type: "checkbox", class: "lab-check", "aria-label": "select all runs shown" });
    this.all.addEventListener("change", () => this.on.select(this.all.checked ? this.ids : []));
    this.head.replaceChildren(el("th", { role: "columnheader", scope: "col", class: "lab-pick" }, this.all), ...keys.map((key) => this.#header(BY_KEY.get(key))));
  }

  #header({ key, title, number }) {
    const button = el("button", { type: "button", class: "lab-sort", text: title, on: { click: () => this.on.sort(key) } });
    return el("th", { role: "columnheader", scope: "col", "data-key": key, class: `lab-${key}${number ? " lab-number" : ""}` }, button);
  }

  #sorted(sort) {
    for (const header of this.head.children) {
      const mine = sort && header.dataset.key === sort.key;
      if (mine) header.setAttribute("aria-sort", sort.direction > 0 ? "ascending" : "descending");
      else header.removeAttribute("aria-sort");
    }
  }

  #height() {
    // Kept: asked for in every frame of scrolling it would make the browser lay out the page once more.
    this.height ??= Math.max(ROW_HEIGHT, this.node.clientHeight - ROW_HEIGHT);
    return this.height;
  }

  #draw() {
    const { rows, entries } = this;
    const { first, last } = visible(this.node.scrollTop, this.#height(), ROW_HEIGHT, rows.length);
    const wanted = new Set(this.ids.slice(first, last));
    const free = [];
    for (const [id, entry] of entries) {
      if (wanted.has(id)) continue;
      // The keyboard stays in the table when its row leaves the window.
      if (entry.line.contains(document.activeElement)) this.grid.focus({ preventScroll: true });
      // Taken out first: rows that stay must not be moved, or they would lose the focus.
      entry.line.remove();
      entries.delete(id);
      free.push(entry);
    }
    this.above.style.height = `${first * ROW_HEIGHT}px`;
    this.below.style.height = `${(rows.length - last) * ROW_HEIGHT}px`;
    // Where the keyboard enters: the row it was on, else the first one that is seen.
    const entered = wanted.has(this.current) ? this.current : this.ids[Math.min(rows.length - 1, Math.ceil(this.node.scrollTop / ROW_HEIGHT))];
    const now = Date.now();
    let at = this.body.firstChild;
    for (let index = first; index < last; index++) {
      const row = rows[index];
      const entry = entries.get(row.id) ?? free.pop() ?? newLine(this.keys);
      entries.set(row.id, entry);
      fill(entry, row, { selected: this.selected.has(row.id), current: row.id === entered, index, now });
      if (entry.line === at) at = at.nextSibling;
      else this.body.insertBefore(entry.line, at);
    }
  }

  #clicked(event) {
    const pencil = event.target.closest("[data-edit]");
    const id = event.target.closest("tr[data-run]")?.dataset.run;
    if (!id || event.target.closest(".lab-typing")) return;
    if (pencil) return this.#open(id, pencil.dataset.edit);
    const box = event.target.closest(".lab-pick");
    if (event.shiftKey) this.#range(id);
    else if (box || event.ctrlKey || event.metaKey) this.#toggle(id);
    else if (!getSelection()?.toString()) this.#only(id);
    this.focus(id);
  }

  #edit(target) {
    const id = target.closest("tr[data-run]")?.dataset.run;
    if (!id) return;
    if (target.closest(".lab-tags")) this.#open(id, "tags");
    else if (target.closest(".lab-note")) this.#open(id, "note");
  }

  #only(id) {
    this.anchor = id;
    this.on.select([id]);
  }

  #toggle(id) {
    const next = new Set(this.selected);
    if (!next.delete(id)) next.add(id);
    this.anchor = id;
    this.on.select([...next]);
  }

  #range(id) {
    this.on.select([...new Set([...this.selected, ...between(this.ids, this.anchor ?? id, id)])]);
  }

  #pressed(event) {
    if (event.target.closest(".lab-typing, .lab-sort, thead") || event.altKey) return;
    const { key, shiftKey } = event;
    const here = Math.max(0, this.ids.indexOf(event.target.closest("tr[data-run]")?.dataset.run ?? this.current));
    const id = this.ids[here];
    const page = Math.max(1, Math.floor(this.#height() / ROW_HEIGHT) - 1);
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[key];
    if (!id) return;
    if (move !== undefined) {
      const to = this.ids[Math.min(this.ids.length - 1, Math.max(0, here + move))];
      this.anchor ??= id;
      if (shiftKey) this.on.select([...new Set([...this.selected, ...between(this.ids, this.anchor, to)])]);
      this.focus(to);
    } else if (key === " ") shiftKey ? this.#range(id) : this.#toggle(id);
    else if (key === "Enter") this.#only(id);
    else if (key === "a" && (event.ctrlKey || event.metaKey)) this.on.select(this.ids);
    else if (event.ctrlKey || event.metaKey) return;
    else if (key === "Escape" && this.selected.size) this.on.select([]);
    else if (key === "Delete") this.on.key("delete");
    else if (key.toLowerCase() === "t") this.#open(id, "tags");
    else if (key.toLowerCase() === "n") this.#open(id, "note");
    else return;
    event.preventDefault();
    // A space would also scroll the notebook, an arrow select another cell.
    event.stopPropagation();
  }

  /** A box in the place of the cell; Enter and leaving it keep what was typed, Escape does not. */
  #open(id, what) {
    const cell = this.entries.get(id)?.cells.get(what);
    const row = this.rows[this.ids.indexOf(id)];
    // Neither a column that is hidden nor a row of the trash can be edited here.
    if (!cell || !this.on.editable()) return this.on.key(what, id);
    this.current = id;
    const before = what === "tags" ? row.tags.join(" ") : row.notes;
    const label = what === "tags" ? `tags of ${row.name}, separated by spaces` : `note on ${row.name}`;
    const box = el("input", { class: "lab-typing", type: "text", "aria-label": label, placeholder: what === "tags" ? "baseline good" : "what you saw" });
    box.value = before;
    let open = true;
    const finish = (keep) => {
      if (!open) return;
      open = false;
      box.remove();
      cell.classList.remove("lab-typed-in");
      if (keep && box.value.trim() !== before) this.on.edit(id, what, box.value.trim());
    };
    box.addEventListener("blur", () => finish(true));
    box.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      finish(event.key === "Enter");
      this.focus(id);
    });
    cell.classList.add("lab-typed-in");
    cell.append(box);
    box.focus();
    box.select();
  }
}

function spacer() {
  return el("tbody", { "aria-hidden": "true", class: "lab-spacer" });
}

/** The columns that fit where the user has chosen none. */
export function fitting(width) {
  if (width < 560) return ["name", "state", "progress", "loss"];
  if (width < 860) return ["name", "state", "progress", "step", "loss", "heldout", "started", "tags"];
  return COLUMNS.map(({ key }) => key).filter((key) => width >= 1180 || !["owner", "device"].includes(key));
}

/** What a column's box in the chooser says; the name is always there. */
export function chooser(keys, choose) {
  const boxes = COLUMNS.map(({ key, fixed }) => {
    const box = el("input", { type: "checkbox", checked: keys.includes(key), disabled: Boolean(fixed), "data-key": key });
    box.addEventListener("change", () => choose(COLUMNS.map((column) => column.key).filter((other) => boxOf.get(other).checked)));
    return [key, box];
  });
  const boxOf = new Map(boxes);
  const labels = COLUMNS.map(({ key, title }) => el("label", {}, boxOf.get(key), title));
  const update = (shown) => {
    for (const [key, box] of boxOf) box.checked = shown.includes(key);
  };
  return { node: el("fieldset", { class: "lab-chooser" }, el("legend", { text: "columns" }), ...labels), update };
}

/** Says how many runs are shown, and of how many. */
export function countText(shown, rows, hidden) {
  const all = rows.toLocaleString("en");
  const older = hidden ? ` · ${hidden.toLocaleString("en")} older not shown` : "";
  return (shown === rows ? `${all} run${rows === 1 ? "" : "s"}` : `${shown.toLocaleString("en")} of ${all}`) + older;
}
