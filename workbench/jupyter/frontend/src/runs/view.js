// One view of the table of runs: head with filter, toolbar, one line for what was said, and the grid.

import { el, say } from "../dom.js";
import { watchedRuns } from "../palette.js";
import { roving } from "../roving.js";
import { ACTIONS, EDITED, TRASH_ACTIONS } from "./actions.js";
import { Bar } from "./bar.js";
import { Chooser, Grouping } from "./chooser.js";
import { columnOf, fitting, nextSort, pathOf, scoreNames, sorted } from "./columns.js";
import { asksForKnobs, EXAMPLE, filterOf, HELP } from "./filter.js";
import { experimentName, experimentOf, FLAT, groupsOf, widened, withExperiments } from "./groups.js";
import { gaveWay } from "./outcome.js";
import { newcomers } from "./rows.js";
import { Said } from "./said.js";
import { seenOf } from "./seen.js";
import { drawSheet } from "./sheet.js";
import { Table, countText } from "./table.js";

const SAVED_AFTER_MS = 120;

/** Everything that is shown of a session; `look`, `selected` and `watched` are read from and written to the model. */
export class View {
  constructor(root, model, session) {
    Object.assign(this, { root, model, session });
    this.inTrash = false;
    this.picked = new Set();
    this.closed = new Set();
    this.met = new Set();
    this.trashFilter = "";
    this.width = 1200;
    this.grouped = false;
    this.drawnSheet = null;
    this.shown = [];
    this.known = null;
    this.unsaved = new Map();
    this.problem = "";
    this.table = new Table({
      sort: (column) => this.#look({ sort: nextSort(this.look.sort ?? null, column) }),
      select: (ids) => this.select(ids),
      watch: (id) => this.#watch(id),
      fold: (id) => this.#fold(id),
      open: (id) => this.#open(experimentName(id)),
      edit: (id, what, text) => this.#edited(id, what, text),
      editable: () => !this.inTrash,
      key: (verb, id) => this.#key(verb, id),
    });
    this.#build();
    this.heard = () => {
      this.#keep();
      this.draw();
    };
    this.lines = watchedRuns();
    for (const listeners of [session.listeners, this.lines.listeners]) listeners.add(this.heard);
    for (const name of SYNCED) model.on(`change:${name}`, this.heard);
    this.watcher = new ResizeObserver(([{ contentRect }]) => {
      if (Math.abs(contentRect.width - this.width) < 1) return;
      this.width = contentRect.width;
      this.draw();
    });
    this.watcher.observe(root);
    this.pressed = (event) => this.#pressed(event);
    document.addEventListener("keydown", this.pressed);
    // Days turn into dates without any message.
    this.clock = setInterval(() => this.draw(), 60000);
    this.draw();
  }

  close() {
    for (const listeners of [this.session.listeners, this.lines.listeners]) listeners.delete(this.heard);
    for (const name of SYNCED) this.model.off(`change:${name}`, this.heard);
    document.removeEventListener("keydown", this.pressed);
    this.watcher.disconnect();
    this.table.close();
    this.place.firstChild?.release?.();
    clearInterval(this.clock);
  }

  get look() {
    return this.model.get("look") ?? {};
  }

  get actions() {
    const verbs = this.model.get("verbs");
    const waits = this.session.rows.all.some(({ status }) => status === "queued");
    return this.inTrash ? TRASH_ACTIONS : ACTIONS.filter(({ verb }) => verbs.includes(verb) && (verb !== "next" || waits));
  }

  /** The trash has a filter of its own: what was looked for among the runs would hide what was just deleted. */
  get filterText() {
    return this.inTrash ? this.trashFilter : (this.look.filter ?? "");
  }

  get keys() {
    return (this.look.columns ?? fitting(this.width, this.session.rows.all, this.grouped ? widened : undefined)).filter((key) => columnOf(key, null));
  }

  get watched() {
    return this.model.get("watched") ?? [];
  }

  /** Selects runs; in the trash the selection is of this view alone, since nobody watches what is deleted. */
  select(ids) {
    if (this.inTrash) this.picked = new Set(ids);
    else {
      const chosen = new Set(ids);
      this.#set("selected", this.session.rows.order.filter((id) => chosen.has(id)));
    }
    this.draw();
  }

  /**
   * Watches and selects a run, the oldest of the watched giving way.
   * @param {string} name "<place>/<run id>", as kernels name it
   * @returns {boolean} false where this table does not know it, or draws nothing
   */
  open(name) {
    const [place, id] = [this.model.get("place"), name.slice(name.indexOf("/") + 1)];
    const [most, { rows }] = [this.model.get("most_watched"), this.session];
    // Before the first rows are there, the kernel knows: it drops what it does not have.
    if (!most || name !== `${place}/${id}` || !(rows.seq < 0 || rows.byId.has(id))) return false;
    if (this.inTrash) this.#toggleTrash();
    if (!this.watched.includes(id)) this.#watchToo(id, most);
    const row = rows.byId.get(id);
    if (row) this.met.add(experimentOf(row)) && this.closed.delete(experimentOf(row));
    this.select([id]);
    this.table.focus(id);
    return true;
  }

  draw() {
    const { session } = this;
    const all = this.inTrash ? (session.trash ?? []) : session.rows.all;
    const asked = this.inTrash ? FLAT : (this.look.group ?? null);
    const by = asked === FLAT ? null : asked;
    const sort = this.look.sort ?? null;
    if (!this.inTrash && (by || asksForKnobs(this.filterText) || this.keys.some(pathOf) || pathOf(sort?.key ?? ""))) session.wantKnobs();
    const { test, problem } = filterOf(this.filterText, this.#knobs);
    const rows = sorted(all.filter(test), sort, this.#knobs);
    const groups = by && session.knobs ? groupsOf(rows, by, session.knobs, sort) : null;
    this.grouped = groups !== null;
    // Who looks for something wants to see the runs, not how many of a race fit.
    const whole = asked === null && !this.filterText.trim();
    const lines = groups ? groups.map((group) => ({ id: group.id, group })) : whole ? this.#folded(withExperiments(rows, this.session.briefs)) : rows.map((row) => ({ id: row.id, row, inside: false }));
    const items = lines.flatMap((line) => (line.group ? [line, ...this.#inside(line.group)] : [line]));
    this.shown = items.flatMap(({ row }) => row ?? []);
    const selected = this.inTrash ? this.picked : new Set(this.model.get("selected"));
    const watched = new Set(this.watched);
    const marks = !this.inTrash && this.model.get("most_watched") > 0;
    const markOf = marks ? (id) => this.lines.markOf(id, this.watched) : () => null;
    this.table.show(items, { columns: this.#columns(), sort, selected, watched: (id) => watched.has(id), markOf, closed: this.closed, opened: `experiment:${this.model.get("experiment")}`, marks });
    this.#reveal();
    this.#head(rows.length, all.length, problem);
    this.bar.show(this.actions, { ...seenOf(selected, all, items, this.closed), trashed: session.rows.trashed });
    this.#tell(problem);
    this.#sheet();
    this.#empty(rows.length, all.length);
  }

  /** What the kernel has begun to show, a run just launched or a race, is scrolled to: sorted by loss it stands last. */
  #reveal() {
    const { rows } = this.session;
    if (this.inTrash || rows.seq < 0) return;
    const shown = [...this.watched, `experiment:${this.model.get("experiment")}`].filter((id) => rows.byId.has(id) || this.table.ids.includes(id));
    const [id] = newcomers(shown, this.known);
    this.known = shown;
    const line = id && this.table.items.find((item) => item.id === id || item.group?.rows.some((row) => row.id === id));
    if (line) this.table.reveal(this.table.ids.includes(id) ? id : line.id);
  }

  /** Races and sweeps are closed until somebody opens them. */
  #folded(lines) {
    for (const { id, group } of lines) if (group && !this.met.has(id)) this.met.add(id) && this.closed.add(id);
    return lines;
  }

  #inside(group) {
    return this.closed.has(group.id) ? [] : group.rows.map((row) => ({ id: row.id, row, inside: true }));
  }

  /** Of the runs that are shown; null while they are not there yet. */
  get #knobs() {
    return this.inTrash ? this.session.trashKnobs : this.session.knobs;
  }

  /** A new list only where one of the columns is, or shows, something else. */
  #columns() {
    const knobs = this.#knobs;
    const key = `${this.grouped} ${this.keys}`;
    if (this.columnsKey !== key || (this.columnsOf !== knobs && this.keys.some(pathOf))) {
      const columns = this.keys.map((each) => columnOf(each, knobs));
      this.columns = this.grouped ? columns.map(widened) : columns;
    }
    Object.assign(this, { columnsKey: key, columnsOf: knobs });
    return this.columns;
  }

  #build() {
    this.filter = el("input", { type: "search", class: "lab-filter", "aria-label": "filter runs", "aria-keyshortcuts": "/", placeholder: `search (/)   ${EXAMPLE}`, title: HELP, spellcheck: "false" });
    this.filter.addEventListener("input", () => this.#filtered(this.filter.value));
    this.filter.addEventListener("keydown", (event) => this.#leaveFilter(event));
    this.count = el("span", { class: "lab-count", "aria-live": "polite" });
    this.chooser = new Chooser((columns) => this.#look({ columns }));
    this.chooser.node.addEventListener("keydown", (event) => this.#leaveColumns(event));
    this.grouping = new Grouping((group) => this.#look({ group }));
    // What there is to group by is known when the recipes are.
    for (const kind of ["pointerdown", "focus"]) this.grouping.node.addEventListener(kind, () => this.session.wantKnobs());
    this.columnsButton = el("button", { type: "button", text: "Columns", "aria-expanded": "false", "aria-controls": this.chooser.id, on: { click: () => this.#toggleColumns() } });
    this.trashButton = el("button", { type: "button", "aria-pressed": "false", on: { click: () => this.#toggleTrash() } });
    this.title = el("h3", { text: "Runs" });
    const tools = el("div", { class: "lab-view", role: "toolbar", "aria-label": "what the table shows" }, this.grouping.node, this.columnsButton, this.trashButton);
    this.settleTools = roving(tools, () => [...tools.children].filter((each) => !each.disabled));
    const head = el("div", { class: "lab-runs-head" }, this.title, this.count, this.filter, tools, this.chooser.node);
    this.bar = new Bar({ ask: (verb, ids, rest) => this.#ask(verb, ids, rest), refuse: (why) => this.session.note(why, true), back: () => this.table.focus(this.table.current ?? this.shown[0]?.id) });
    this.said = new Said(this.bar.picked, (verb, ids, rest) => this.session.ask(verb, ids, rest), () => this.session.note(""));
    this.place = el("div", { class: "lab-over-place" });
    this.note = el("p", { class: "lab-note" });
    this.root.append(head, this.bar.node, this.said.node, this.place, this.table.node, this.note);
  }

  #look(change) {
    this.#set("look", { ...this.look, ...change });
    this.draw();
  }

  #filtered(text) {
    if (!this.inTrash) return this.#look({ filter: text });
    this.trashFilter = text;
    this.draw();
  }

  /** Saved a little later: with every arrow key and letter typed, the kernel would make another view or keep another filter. */
  #set(name, value) {
    this.unsaved.set(name, value);
    // Who has clicked a line sees it.
    if (name === "watched") this.known = this.known && [...this.known, ...value];
    this.model.set(name, value);
    clearTimeout(this.saving);
    this.saving = setTimeout(() => {
      this.unsaved.clear();
      this.model.save_changes();
    }, SAVED_AFTER_MS);
  }

  /** The kernel's echo of what was saved before must not undo what was chosen since. */
  #keep() {
    for (const [name, value] of this.unsaved) if (this.model.get(name) !== value) this.model.set(name, value);
  }

  #head(shown, all, problem) {
    if (document.activeElement !== this.filter && this.filter.value !== this.filterText) this.filter.value = this.filterText;
    say(this.title, this.inTrash ? "Trash" : "Runs");
    say(this.count, countText(shown, all, this.inTrash ? 0 : this.session.rows.hidden));
    this.filter.setAttribute("aria-invalid", String(Boolean(problem)));
    const { trashed } = this.session.rows;
    say(this.trashButton, this.inTrash ? "Back to runs" : `Trash${trashed ? ` (${trashed})` : ""}`);
    this.trashButton.setAttribute("aria-pressed", String(this.inTrash));
    this.trashButton.disabled = !this.inTrash && !trashed;
    this.grouping.node.disabled = this.inTrash;
    this.grouping.show(this.look.group ?? null, this.session.knobs);
    this.chooser.show(this.keys, this.session.knobs, scoreNames(this.session.rows.all));
    this.settleTools();
  }

  /** What is wrong with the filter stands where words of actions do, until there are newer ones: over the toolbar it hid buttons. */
  #tell(problem) {
    const { said } = this.session;
    if (problem !== this.problem) Object.assign(this, { problem, saidBefore: said });
    this.said.draw(problem && said === this.saidBefore ? { text: problem, error: true, passing: true } : said);
  }

  #ask(verb, ids, rest) {
    // Drawn in the colours that these runs have in the page.
    if (verb === "report") return this.session.ask(verb, ids, { places: Object.fromEntries(ids.map((id) => [id, this.lines.placeOf(id)]).filter(([, place]) => place !== undefined)) });
    if (verb !== "watch") return this.session.ask(verb, ids, rest);
    const most = this.model.get("most_watched");
    if (ids.length > most) return this.session.note(`watch: select at most ${most} runs; more lines nobody tells apart`, true);
    this.#set("watched", ids);
    return this.draw();
  }

  /** Draws the curves of a run beside those that are drawn, or takes them away. */
  #watch(id) {
    const { watched } = this;
    const most = this.model.get("most_watched");
    if (this.inTrash || !most) return this.select([id]);
    if (!watched.includes(id) && watched.length >= most) return this.session.note(`${most} runs are watched: take one away first, more lines nobody tells apart`, true);
    this.#set("watched", watched.includes(id) ? watched.filter((other) => other !== id) : [...watched, id]);
    return this.draw();
  }

  /** Draws the curves of a run; the oldest of those that are drawn gives way to it, which is said. */
  #watchToo(id, most) {
    const wanted = [...this.watched, id];
    this.#set("watched", wanted.slice(-most));
    const gone = gaveWay(wanted.slice(0, -most).map((each) => this.session.rows.byId.get(each)?.name ?? each), most);
    if (gone) this.session.note(gone);
  }

  /** Shows a race or a sweep where plots stand, or takes it away. */
  #open(name) {
    this.#set("experiment", this.model.get("experiment") === name ? "" : name);
    this.draw();
  }

  #fold(id) {
    if (!this.closed.delete(id)) this.closed.add(id);
    this.draw();
  }

  /** Keys of a row that need more than the row: a question comes first, or its column is hidden. */
  #key(verb, id) {
    const row = this.session.rows.byId.get(id);
    if (verb !== "note") this.bar.act(this.actions.find((action) => action.verb === (EDITED[verb]?.verb ?? verb)));
    else if (row && !this.inTrash) this.bar.askNote(row);
  }

  #edited(id, what, text) {
    const row = this.session.rows.byId.get(id);
    if (row) this.session.ask("label", [id], EDITED[what].change(text, row));
  }

  #sheet() {
    const { sheet } = this.session;
    if (sheet === this.drawnSheet) return;
    this.drawnSheet = sheet;
    // A report may have been asked for in the panel of a race.
    this.opener = this.root.contains(document.activeElement) ? null : document.activeElement;
    this.place.firstChild?.release?.();
    this.place.replaceChildren(...(sheet ? [drawSheet(sheet, () => this.#closeSheet())] : []));
    this.place.firstChild?.showModal();
  }

  #closeSheet() {
    const { opener } = this;
    this.session.closeSheet();
    if (opener?.isConnected && opener !== document.body) opener.focus();
    else this.table.focus(this.table.current ?? this.shown[0]?.id);
  }

  #empty(shown, all) {
    const complaint = this.model.get("complaint");
    const waiting = this.session.rows.seq < 0 ? "reading the runs folder…" : "";
    const none = this.inTrash ? "the trash is empty" : "no runs yet: launch one";
    say(this.note, complaint || waiting || (all === 0 ? none : shown === 0 ? "no run fits this filter" : ""));
    this.note.hidden = this.note.textContent === "";
    this.table.node.hidden = shown === 0;
  }

  /** "/" anywhere in the Lab and S anywhere in the table, but where something is typed. */
  #pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.matches?.(TYPED_IN)) return;
    const lab = this.root.closest(".lab-whole") ?? this.root;
    if (event.key === "/" && lab.contains(event.target)) {
      this.filter.focus();
      this.filter.select();
    } else if (event.key.toLowerCase() === "s" && this.root.contains(event.target)) {
      this.bar.act(this.actions.find(({ verb }) => verb === "stop"));
    } else return;
    event.preventDefault();
  }

  /** Enter and the arrow down go to what was found, Escape empties the box. */
  #leaveFilter(event) {
    if (event.key === "Enter" || event.key === "ArrowDown") this.table.focus(this.table.ids[0]);
    else if (event.key === "Escape" && this.filter.value) this.#filtered((this.filter.value = ""));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #toggleColumns() {
    const { node } = this.chooser;
    node.hidden = !node.hidden;
    this.columnsButton.setAttribute("aria-expanded", String(!node.hidden));
    if (node.hidden) return;
    this.session.wantKnobs();
    this.chooser.show(this.keys, this.session.knobs, scoreNames(this.session.rows.all));
    node.querySelector("input:enabled").focus();
  }

  #leaveColumns(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    this.#toggleColumns();
    this.columnsButton.focus();
  }

  #toggleTrash() {
    this.inTrash = !this.inTrash;
    this.trashFilter = "";
    this.picked = new Set();
    this.bar.question.close();
    if (this.inTrash) this.session.send({ type: "trash" });
    this.draw();
  }
}

const TYPED_IN = "input:not([type=checkbox], [type=range]), textarea, select, [contenteditable=true]";
const SYNCED = ["selected", "watched", "experiment", "look", "complaint", "place", "most_watched"];
