// One view of the table of runs: head with filter, actions, questions, sheet, grid.

import { el, say } from "../dom.js";
import { ACTIONS, TRASH_ACTIONS, possible, selectionText, tagChanges, tagsAs } from "./actions.js";
import { nextSort, sorted } from "./columns.js";
import { asksForKnobs, filterOf } from "./filter.js";
import { Question } from "./question.js";
import { drawSheet } from "./sheet.js";
import { Table, chooser, countText, fitting } from "./table.js";

const SAVED_AFTER_MS = 120;
const HINT = "bert state:running tag:good lr>1e-3 -old";

/** Everything that is shown of a session; `look` and `selected` are read from and written to the model. */
export class View {
  constructor(root, model, session) {
    Object.assign(this, { root, model, session });
    this.inTrash = false;
    this.picked = new Set();
    this.trashFilter = "";
    this.width = 1200;
    this.drawnSheet = null;
    this.table = new Table({
      sort: (key) => this.#look({ sort: nextSort(this.look.sort ?? null, key) }),
      select: (ids) => this.select(ids),
      edit: (id, what, text) => this.#edited(id, what, text),
      editable: () => !this.inTrash,
      key: (name, id) => this.#key(name, id),
    });
    this.question = new Question(() => this.table.focus(this.table.current));
    this.#build();
    this.unsaved = new Map();
    this.heard = () => {
      this.#keep();
      this.draw();
    };
    session.listeners.add(this.heard);
    model.on("change:selected", this.heard);
    model.on("change:look", this.heard);
    model.on("change:complaint", this.heard);
    this.watcher = new ResizeObserver(([{ contentRect }]) => {
      if (Math.abs(contentRect.width - this.width) < 1) return;
      this.width = contentRect.width;
      this.draw();
    });
    this.watcher.observe(root);
    // Days turn into dates without any message.
    this.clock = setInterval(() => this.draw(), 60000);
    this.draw();
  }

  close() {
    this.session.listeners.delete(this.heard);
    for (const name of ["selected", "look", "complaint"]) this.model.off(`change:${name}`, this.heard);
    this.watcher.disconnect();
    this.table.close();
    clearInterval(this.clock);
  }

  get look() {
    return this.model.get("look") ?? {};
  }

  get actions() {
    const verbs = this.model.get("verbs");
    return this.inTrash ? TRASH_ACTIONS : ACTIONS.filter(({ verb }) => verbs.includes(verb));
  }

  /** The trash has a filter of its own: what was looked for among the runs would hide what was just deleted. */
  get filterText() {
    return this.inTrash ? this.trashFilter : (this.look.filter ?? "");
  }

  get columns() {
    return this.look.columns ?? fitting(this.width);
  }

  /** Selects runs; in the trash the selection is of this view alone, since nobody watches what is deleted. */
  select(ids) {
    if (this.inTrash) this.picked = new Set(ids);
    else {
      const chosen = new Set(ids);
      // In the order of the list: it decides the colours of the curves.
      this.#set("selected", this.session.rows.order.filter((id) => chosen.has(id)));
    }
    this.draw();
  }

  draw() {
    const { session } = this;
    const all = this.inTrash ? (session.trash ?? []) : session.rows.all;
    if (asksForKnobs(this.filterText) && !this.inTrash) session.wantKnobs();
    const { test, problem } = filterOf(this.filterText, session.knobs);
    const rows = sorted(all.filter(test), this.look.sort ?? null);
    const selected = this.inTrash ? this.picked : new Set(this.model.get("selected"));
    const known = new Map(all.map((row) => [row.id, row]));
    this.chosen = [...selected].map((id) => known.get(id)).filter(Boolean);
    this.table.show(rows, { keys: this.columns, sort: this.look.sort ?? null, selected });
    this.#head(rows.length, all.length, problem);
    this.#bar();
    this.#said();
    this.#sheet();
    this.#empty(rows.length, all.length);
  }

  #build() {
    this.filter = el("input", { type: "search", class: "lab-filter", "aria-label": "filter runs", placeholder: HINT, spellcheck: "false" });
    this.filter.addEventListener("input", () => this.#filtered(this.filter.value));
    this.problem = el("span", { class: "lab-problem", role: "status" });
    this.count = el("span", { class: "lab-count", "aria-live": "polite" });
    this.chooser = chooser(this.columns, (columns) => this.#look({ columns }));
    this.chooser.node.hidden = true;
    this.columnsButton = el("button", { type: "button", text: "Columns", "aria-expanded": "false", on: { click: () => this.#toggleColumns() } });
    this.trashButton = el("button", { type: "button", "aria-pressed": "false", on: { click: () => this.#toggleTrash() } });
    const title = el("h3", { text: "Runs" });
    this.title = title;
    const head = el("div", { class: "lab-runs-head" }, title, this.count, this.filter, this.problem, this.columnsButton, this.trashButton);
    this.bar = el("div", { class: "lab-actions", role: "toolbar", "aria-label": "actions on the selected runs" });
    this.bar.addEventListener("keydown", (event) => this.#alongBar(event));
    this.said = el("div", { class: "lab-said" });
    this.saidText = el("span", { role: "status" });
    this.said.append(this.saidText);
    this.place = el("div", { class: "lab-over-place" });
    this.note = el("p", { class: "lab-note" });
    this.root.append(head, this.chooser.node, this.bar, this.question.node, this.said, this.place, this.table.node, this.note);
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
    say(this.problem, problem);
    this.filter.setAttribute("aria-invalid", String(Boolean(problem)));
    const { trashed } = this.session.rows;
    say(this.trashButton, this.inTrash ? "Back to runs" : `Trash${trashed ? ` (${trashed})` : ""}`);
    this.trashButton.setAttribute("aria-pressed", String(this.inTrash));
    this.trashButton.disabled = !this.inTrash && !trashed;
    this.chooser.update(this.columns);
  }

  /** The buttons are kept: one that was just pressed must not lose the focus. */
  #bar() {
    const { actions } = this;
    const key = actions.map(({ verb }) => verb).join();
    if (this.bar.dataset.key !== key) {
      this.bar.dataset.key = key;
      const buttons = actions.map((action, i) => {
        const apart = i > 0 && action.group !== actions[i - 1].group ? "lab-apart" : "";
        return el("button", { type: "button", class: apart, text: action.title, "data-verb": action.verb, tabindex: i ? "-1" : "0", on: { click: () => this.#act(action) } });
      });
      this.picking = el("span", { class: "lab-count" });
      this.bar.replaceChildren(...buttons, this.picking);
    }
    for (const action of actions) {
      const button = this.bar.querySelector(`[data-verb="${action.verb}"]`);
      const { why } = possible(action, this.chosen);
      // Still to be reached and pressed: then it says why it cannot.
      button.setAttribute("aria-disabled", String(Boolean(why)));
      button.title = why ? `${action.title}: ${why}` : action.says;
    }
    say(this.picking, selectionText(this.chosen));
  }

  // A toolbar is one stop of the tabulator; arrows go along it.
  #alongBar(event) {
    const buttons = [...this.bar.querySelectorAll("button")];
    const here = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || here < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = buttons[(to + buttons.length) % buttons.length];
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  }

  #act(action) {
    if (!action) return;
    const { ids, why } = possible(action, this.chosen);
    const { session, question } = this;
    const many = ids.length === 1 ? this.chosen.find(({ id }) => id === ids[0]).name : `${ids.length} runs`;
    if (why) session.note(`${action.title.replace("…", "")}: ${why}`, true);
    else if (action.verb === "delete") question.ask({ text: `Move ${many} to the trash?`, yes: "Move to trash" }, () => session.ask("delete", ids));
    else if (action.verb === "empty") question.ask({ text: `Remove all ${this.session.rows.trashed} deleted runs for good? They cannot come back.`, yes: "Remove for good" }, () => session.ask("empty", []));
    else if (action.verb === "tag") {
      question.ask({ text: `Tags of ${many}`, yes: "Change tags", label: "tags to add, and -tags to remove", value: "", hint: "good -old" }, (text) => session.ask("label", ids, tagChanges(text)));
    } else if (action.verb === "export") {
      question.ask({ text: `Export the model of ${many}`, yes: "Export", label: "new folder", value: `exports/${ids[0]}` }, (target) => session.ask("export", ids, { target }));
    } else session.ask(action.verb, ids);
  }

  /** Keys of a row that need more than the row: its column is hidden, or a question comes first. */
  #key(name, id) {
    if (name !== "note") return this.#act(this.actions.find(({ verb }) => verb === name || (verb === "tag" && name === "tags")));
    const row = this.session.rows.byId.get(id);
    if (!row || this.inTrash) return;
    const what = { text: `Note on ${row.name}`, yes: "Keep", label: "note", value: row.notes, optional: true };
    this.question.ask(what, (text) => this.session.ask("label", [id], { notes: text }));
  }

  #edited(id, what, text) {
    const row = this.session.rows.byId.get(id);
    if (row) this.session.ask("label", [id], what === "tags" ? tagsAs(text, row.tags) : { notes: text });
  }

  #said() {
    const { text, error, undo, take_over: over } = this.session.said;
    this.said.hidden = !text;
    say(this.saidText, text);
    this.saidText.setAttribute("role", error ? "alert" : "status");
    this.said.classList.toggle("lab-bad", Boolean(error));
    const key = JSON.stringify([text, undo, over]);
    if (this.said.dataset.key === key) return;
    this.said.dataset.key = key;
    this.said.replaceChildren(this.saidText);
    if (undo?.length) this.said.append(el("button", { type: "button", text: "Undo", on: { click: () => this.session.ask("restore", undo) } }));
    if (over) this.said.append(el("button", { type: "button", text: "Take over", title: "end the lease of whoever steers it, and ask again", on: { click: () => this.session.ask(over.verb, over.runs, { take_over: true }) } }));
    if (error) this.said.append(el("button", { type: "button", text: "✕", "aria-label": "dismiss", on: { click: () => this.session.note("") } }));
  }

  #sheet() {
    const { sheet } = this.session;
    if (sheet === this.drawnSheet) return;
    this.drawnSheet = sheet;
    this.place.firstChild?.release?.();
    this.place.replaceChildren(...(sheet ? [drawSheet(sheet, () => this.#closeSheet())] : []));
    this.place.firstChild?.showModal();
  }

  #closeSheet() {
    this.session.closeSheet();
    this.table.focus(this.table.current ?? this.chosen[0]?.id);
  }

  #empty(shown, all) {
    const complaint = this.model.get("complaint");
    const waiting = this.session.rows.seq < 0 ? "reading the runs folder…" : "";
    const none = this.inTrash ? "the trash is empty" : "no runs yet: launch one";
    say(this.note, complaint || waiting || (all === 0 ? none : shown === 0 ? "no run fits this filter" : ""));
    this.note.hidden = this.note.textContent === "";
    this.table.node.hidden = shown === 0;
  }

  #toggleColumns() {
    const { node } = this.chooser;
    node.hidden = !node.hidden;
    this.columnsButton.setAttribute("aria-expanded", String(!node.hidden));
    if (!node.hidden) node.querySelector("input:enabled").focus();
  }

  #toggleTrash() {
    this.inTrash = !this.inTrash;
    this.trashFilter = "";
    this.picked = new Set();
    this.question.close();
    if (this.inTrash) this.session.send({ type: "trash" });
    this.draw();
  }
}
