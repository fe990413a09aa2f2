// The grid of runs. Only the lines in its window are in the page, so a thousand runs cost what thirty do.

import { el } from "../dom.js";
import { roving } from "../roving.js";
import { EDITED } from "./actions.js";
import { fill, fillGroup, newGroupLine, newLine } from "./cells.js";
import { lineWidth, PICK_WIDTH } from "./columns.js";
import { isExperiment } from "./groups.js";
import { between, scrollFor, visible } from "./rows.js";
import { many } from "./states.js";

const ROW_HEIGHT = 28;
// The widest bar that scrolls the lines: the free column gives it room, or a second bar would come with it.
const SCROLLBAR_WIDTH = 20;
const KEYS = "Enter draws the run's curves or the picture of a race or takes them away, arrow right and left open and close a group, Space selects, S stops, F2 renames it, T edits its tags, N its note, Delete moves it to the trash";

/**
 * The grid; what happens in it is told to `on`: sort(column), select(ids), watch(id), edit(id, what, text), fold(id),
 * open(id) of a race or sweep, key(name, id), and editable() is asked.
 */
export class Table {
  constructor(on) {
    this.on = on;
    this.items = [];
    this.ids = [];
    this.look = { columns: [], selected: new Set(), watched: () => false, markOf: () => null, closed: new Set() };
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
    this.grid.addEventListener("dblclick", (event) => this.#twice(event.target));
    this.body.addEventListener("keydown", (event) => this.#pressed(event));
    // Text between two shift-clicks would be marked.
    this.grid.addEventListener("mousedown", (event) => event.shiftKey && event.preventDefault());
    this.settleHead = roving(this.head, () => [...this.head.querySelectorAll("input, button")]);
    this.watcher = new ResizeObserver(() => {
      this.height = null;
      this.#draw();
    });
    this.watcher.observe(this.node);
  }

  close() {
    this.watcher.disconnect();
  }

  /**
   * Shows lines.
   * @param {({id: string, row: object, inside: boolean} | {id: string, group: object})[]} items in the order of the table
   * @param {object} look
   * @param {object[]} look.columns a new list only where something of them has changed
   * @param {object | null} look.sort
   * @param {Set<string>} look.selected
   * @param {(id: string) => boolean} look.watched, look.markOf its curve is wanted; how it is drawn, or null
   * @param {Set<string>} look.closed groups; look.opened the race or sweep that is shown
   * @param {boolean} look.marks whether runs can be watched here
   */
  show(items, look) {
    const before = this.look.columns;
    Object.assign(this, { items, look });
    this.ids = items.map(({ id }) => id);
    this.rows = items.flatMap(({ row, group }) => (row ? [row] : look.closed.has(group.id) ? group.rows : []));
    if (look.columns !== before) this.#columns(before);
    this.#sorted(look.sort);
    // Lines that open and close make it a tree for screen readers.
    this.grid.setAttribute("role", items.some(({ group }) => group) ? "treegrid" : "grid");
    this.grid.classList.toggle("lab-unmarked", !look.marks);
    const chosen = this.rows.filter((row) => look.selected.has(row.id)).length;
    this.all.checked = chosen > 0 && chosen === this.rows.length;
    this.all.indeterminate = chosen > 0 && !this.all.checked;
    this.grid.setAttribute("aria-rowcount", String(items.length + 1));
    this.#draw();
  }

  /** Puts the keyboard on a line, scrolled into the window. */
  focus(id) {
    const index = this.ids.indexOf(id);
    if (index < 0) return;
    this.current = id;
    this.reveal(id);
    this.#draw();
    this.entries.get(id)?.line.focus({ preventScroll: true });
  }

  /** Scrolls a line into the window; the keyboard stays where it is. */
  reveal(id) {
    const top = scrollFor(this.ids.indexOf(id) * ROW_HEIGHT, ROW_HEIGHT, this.node.scrollTop, this.#height());
    if (top !== this.node.scrollTop) this.node.scrollTop = top;
  }

  #columns(before) {
    const { columns } = this.look;
    // The same columns with other values (of knobs, once they are there) keep their lines.
    const shape = (all) => all.map(({ key, width }) => `${key} ${width}`).join();
    if (shape(columns) === shape(before)) return;
    for (const entry of this.entries.values()) entry.line.remove();
    this.entries.clear();
    // The last free text takes what is left; without it, the name.
    const free = columns.some(({ key }) => key === "note") ? "note" : "name";
    this.columns.replaceChildren(el("col", { style: `width:${PICK_WIDTH}px` }), ...columns.map(({ key, width }) => el("col", key === free ? {} : { style: `width:${width}px` })));
    this.grid.style.minWidth = `${lineWidth(columns) - SCROLLBAR_WIDTH}px`;
    this.all = el("input", { type: "checkbox", class: "lab-check", "aria-label": "select all runs shown" });
    this.all.addEventListener("change", () => this.on.select(this.all.checked ? this.rows.map(({ id }) => id) : []));
    this.head.replaceChildren(el("th", { role: "columnheader", scope: "col", class: "lab-pick" }, this.all), ...columns.map((column) => this.#header(column)));
    this.settleHead();
  }

  #header(column) {
    const { key, title, number, hint } = column;
    const button = el("button", { type: "button", class: "lab-sort", title: `${hint ?? title}: sort`, on: { click: () => this.on.sort(column) } }, el("span", { text: title }));
    return el("th", { role: "columnheader", scope: "col", "data-key": key, class: `lab-${key.replace(/\W/g, "-")}${number ? " lab-number" : ""}` }, button);
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
    const { items, entries } = this;
    const { first, last } = visible(this.node.scrollTop, this.#height(), ROW_HEIGHT, items.length);
    const wanted = new Set(this.ids.slice(first, last));
    const free = [];
    for (const [id, entry] of entries) {
      if (wanted.has(id)) continue;
      // The keyboard stays in the table when its line leaves the window.
      if (entry.line.contains(document.activeElement)) this.grid.focus({ preventScroll: true });
      // Taken out first: lines that stay must not be moved, or they would lose the focus.
      entry.line.remove();
      entries.delete(id);
      if (entry.mark) free.push(entry);
    }
    this.above.style.height = `${first * ROW_HEIGHT}px`;
    this.below.style.height = `${(items.length - last) * ROW_HEIGHT}px`;
    // Where the keyboard enters: the line it was on, else the first one that is seen.
    const entered = wanted.has(this.current) ? this.current : this.ids[Math.min(items.length - 1, Math.ceil(this.node.scrollTop / ROW_HEIGHT))];
    const now = Date.now();
    let at = this.body.firstChild;
    for (let index = first; index < last; index++) {
      const entry = this.#entry(items[index], free, { current: items[index].id === entered, index, now });
      if (entry.line === at) at = at.nextSibling;
      else this.body.insertBefore(entry.line, at);
    }
  }

  #entry({ id, row, group, inside }, free, at) {
    const { columns, selected, watched, markOf, closed, opened } = this.look;
    const entry = this.entries.get(id) ?? (row && free.pop()) ?? (row ? newLine(columns) : newGroupLine(columns));
    this.entries.set(id, entry);
    if (row) fill(entry, row, { ...at, inside, columns, selected: selected.has(id), mark: markOf(id), watched: watched(id) });
    else {
      const chosen = group.rows.filter((each) => selected.has(each.id)).length;
      fillGroup(entry, group, { ...at, columns, selected: chosen === group.rows.length, some: chosen > 0, closed: closed.has(id), opened: opened === id });
    }
    return entry;
  }

  #item(id) {
    return this.items[this.ids.indexOf(id)];
  }

  #clicked(event) {
    const pencil = event.target.closest("[data-edit]");
    const id = event.target.closest("tr[data-run]")?.dataset.run;
    if (!id || event.target.closest(".lab-typing")) return;
    if (pencil) return this.#open(id, pencil.dataset.edit);
    if (event.target.closest(".lab-mark")) {
      // Both clicks of a double click would watch it and take it away again.
      if (event.detail < 2) this.#item(id)?.group ? this.on.open(id) : this.on.watch(id);
      return this.focus(id);
    }
    const box = event.target.closest(".lab-pick");
    if (this.#item(id)?.group && !box) this.on.fold(id);
    else if (event.shiftKey) this.#range(id);
    else if (box || event.ctrlKey || event.metaKey) this.#toggle(id);
    else if (!getSelection()?.toString()) this.#only(id);
    this.focus(id);
  }

  #twice(target) {
    const id = target.closest("tr.lab-line")?.dataset.run;
    if (!id || target.closest(".lab-pick")) return;
    const what = ["name", "tags", "note"].find((key) => target.closest(`td.lab-${key}`));
    if (what) this.#open(id, what);
  }

  /** The runs that a line stands for. */
  #runs(id) {
    const item = this.#item(id);
    return item?.group ? item.group.rows.map((row) => row.id) : item ? [id] : [];
  }

  #only(id) {
    this.anchor = id;
    this.on.select(this.#runs(id));
  }

  #toggle(id) {
    const runs = this.#runs(id);
    const next = new Set(this.look.selected);
    const whole = runs.every((each) => next.has(each));
    for (const each of runs) whole ? next.delete(each) : next.add(each);
    this.anchor = id;
    this.on.select([...next]);
  }

  #range(id, from = this.anchor ?? id) {
    const runs = between(this.ids, from, id).flatMap((each) => (this.#item(each).group ? [] : [each]));
    this.on.select([...new Set([...this.look.selected, ...runs])]);
  }

  #pressed(event) {
    if (event.target.closest(".lab-typing") || event.altKey) return;
    const { key, shiftKey } = event;
    const here = Math.max(0, this.ids.indexOf(event.target.closest("tr[data-run]")?.dataset.run ?? this.current));
    const id = this.ids[here];
    if (!id) return;
    if (this.#moved(key, here, shiftKey)) {
      // Done.
    } else if (key === " ") shiftKey ? this.#range(id) : this.#toggle(id);
    else if (key === "Enter" && isExperiment(id) && this.look.marks) event.repeat || this.#openExperiment(id);
    else if (key === "Enter" && this.#item(id).group) this.on.fold(id);
    else if ((key === "ArrowRight" || key === "ArrowLeft") && this.#item(id).group) this.look.closed.has(id) === (key === "ArrowRight") && this.on.fold(id);
    else if (key === "Enter") event.repeat || this.on.watch(id);
    else if (key === "a" && (event.ctrlKey || event.metaKey)) this.on.select(this.rows.map((row) => row.id));
    else if (event.ctrlKey || event.metaKey) return;
    else if (key === "Escape" && this.look.selected.size) this.on.select([]);
    else if (key === "Delete") this.#act("delete", id);
    else if (key.toLowerCase() === "s") this.#act("stop", id);
    else if (key === "F2") this.#open(id, "name");
    else if (key.toLowerCase() === "t") this.#open(id, "tags");
    else if (key.toLowerCase() === "n") this.#open(id, "note");
    else return;
    event.preventDefault();
    // A space would also scroll the notebook, an arrow select another cell.
    event.stopPropagation();
  }

  #moved(key, here, shiftKey) {
    const page = Math.max(1, Math.floor(this.#height() / ROW_HEIGHT) - 1);
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[key];
    if (move === undefined) return false;
    const to = this.ids[Math.min(this.ids.length - 1, Math.max(0, here + move))];
    this.anchor ??= this.ids[here];
    if (shiftKey) this.#range(to);
    this.focus(to);
    return true;
  }

  /** A key acts on what is selected; on a line outside of it, on that line alone. */
  #act(verb, id) {
    this.current = id;
    if (!this.#runs(id).some((each) => this.look.selected.has(each))) this.#only(id);
    this.on.key(verb, id);
  }

  /** The keyboard comes back to its line. */
  #openExperiment(id) {
    this.current = id;
    this.on.open(id);
  }

  /** A box in the place of the cell; Enter and leaving it keep what was typed, Escape does not. */
  #open(id, what) {
    const { row } = this.#item(id) ?? {};
    const cell = this.entries.get(id)?.cells.get(what);
    // Neither a group, nor a column that is hidden, nor a row of the trash can be edited here.
    if (!row) return;
    if (!cell || !this.on.editable()) return this.#act(what, id);
    this.current = id;
    const { label, hint, text } = EDITED[what];
    const before = text(row);
    const box = el("input", { class: "lab-typing", type: "text", "aria-label": label(row), placeholder: hint });
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

/** Says how many runs are shown, and of how many. */
export function countText(shown, rows, hidden) {
  const older = hidden ? ` · ${hidden.toLocaleString("en")} older not shown` : "";
  return (shown === rows ? many(rows, "run") : `${shown.toLocaleString("en")} of ${rows.toLocaleString("en")}`) + older;
}
