// The board: runs by owner, answers in lessons side by side, leaderboards. Its numbers come from the kernel as they change.

import { dropdown, el, say } from "../dom.js";

const LOOK_MS = 3000;
const DASH = "–";

const fixed = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : DASH);
const percent = (share) => `${Math.floor(100 * (share ?? 0))}%`;

/** An owner's runs in words. */
export function countsText({ train, wait, ended, lost }) {
  const words = [[train, "training"], [wait, "waiting"], [ended, "ended"]].filter(([number]) => number).map(([number, word]) => `${number} ${word}`);
  return words.join(", ") + (lost ? ` (${lost} failed)` : "");
}

/** The whole room in a line. */
export function roomText(owners) {
  const sum = (key) => owners.reduce((total, each) => total + each[key], 0);
  const people = `${owners.length} ${owners.length === 1 ? "owner" : "owners"}`;
  return owners.length ? `${people}: ${countsText({ train: sum("train"), wait: sum("wait"), ended: sum("ended"), lost: sum("lost") })}` : "";
}

const valueText = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value));

/** A learner's answer: its words, and `good`, `bad` or nothing. */
export function answerText(cell, unit) {
  if (!cell) return ["", ""];
  if ("tries" in cell) return cell.right ? [`right at try ${cell.tries}`, "good"] : [`not right yet, after ${cell.tries} ${cell.tries === 1 ? "answer" : "answers"}`, "bad"];
  const said = `${valueText(cell.value)}${unit ? ` ${unit}` : ""}`;
  if (cell.outcome === null) return [said, ""];
  const came = `${said} → ${valueText(cell.outcome)}`;
  if (cell.error === null) return cell.right ? [`${came}, right`, "good"] : [`${came}, wrong`, "bad"];
  const off = cell.error === 0 ? "exact" : `${Number(Math.abs(cell.error).toPrecision(3))} too ${cell.error > 0 ? "high" : "low"}`;
  return [`${came}, ${off}`, ""];
}

function table(label, heads, rows) {
  const head = el("tr", {}, ...heads.map(([text, kind]) => el("th", { scope: "col", class: kind ?? "", text })));
  const cell = (value, i) => {
    const kind = heads[i][1] ?? "";
    const inside = value instanceof Node ? value : document.createTextNode(value);
    return i === 0 ? el("th", { scope: "row", class: kind }, inside) : el("td", { class: kind }, inside);
  };
  const body = rows.map((row) => el("tr", {}, ...row.map(cell)));
  return el("div", { class: "wb-board-scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}

function section(title, note, ...inside) {
  return el("section", { "aria-label": title }, el("h4", { text: title }), note ? el("p", { class: "wb-board-quiet", text: note }) : null, ...inside);
}

function stateOf({ status, queue_position: place }) {
  const words = status === "queued" ? `waiting${place ? `, place ${place}` : ""}` : status;
  return el("span", { class: "wb-board-state", "data-status": status, text: words });
}

function bar(share) {
  const text = percent(share);
  return el("span", { class: "wb-board-done" }, el("span", { class: "wb-board-bar", "aria-hidden": "true" }, el("span", { style: `width: ${text}` })), el("span", { text }));
}

const runCells = (run) => [run.name, stateOf(run), bar(run.progress), fixed(run.heldout_loss, 3)];

/** Runs that have ended well and have no entry in a task, as [id, words]. */
export function enterable(owners, task) {
  const entered = new Set(task.entries.map(({ run }) => run));
  const ended = owners.flatMap(({ owner, runs }) => runs.filter(({ id, status }) => (status === "finished" || status === "stopped") && !entered.has(id)).map((run) => ({ owner, ...run })));
  return ended.map(({ owner, id, name, heldout_loss: loss }) => [id, `${owner}: ${name}, ${Number.isFinite(loss) ? loss.toFixed(3) : "not scored"} (${id.slice(4, 6)}-${id.slice(6, 8)} ${id.slice(9, 11)}:${id.slice(11, 13)})`]);
}

/** What stands above the runs to enter. The board is sent the newest of each owner; an older one has its command. */
export function invitation(owners, runs) {
  const older = owners.some((each) => each.train + each.wait + each.ended > each.runs.length);
  return (runs.length ? "a run that has ended" : "no run has ended yet") + (older ? "; older ones: workbench enter" : "") + (runs.length ? "…" : "");
}

function lessonTable({ lesson, columns, learners }) {
  const rows = learners.map(({ learner, cells }) => [
    learner,
    ...cells.map((cell, i) => {
      const [text, kind] = answerText(cell, columns[i].unit);
      return el("span", { class: kind ? `wb-board-${kind}` : "", text });
    }),
  ]);
  return section(`Lesson: ${lesson.replaceAll("_", " ")}`, "prediction → outcome", table(`lesson ${lesson}`, [["learner"], ...columns.map(({ question }) => [question])], rows));
}

/** The board within a host: `ask` sends a message to the kernel, `canPut` says whether there is a form. */
export class BoardPanel {
  constructor(ask, canPut) {
    Object.assign(this, { ask, canPut, parts: {}, unfolded: new Set(), runsOf: [], forms: new Map() });
    this.room = el("p", { class: "wb-board-room", role: "status" });
    this.said = el("p", { class: "wb-board-said", role: "status" });
    this.notes = el("div", {});
    this.owners = el("div", {});
    this.lessons = el("div", {});
    this.tasks = el("div", {});
    this.node = el("div", { class: "wb-board wb-theme" }, this.room, this.notes, this.owners, this.said, this.tasks, this.lessons);
    this.timer = setInterval(() => this.open && this.node.offsetParent && this.ask({ board: "look" }), LOOK_MS);
  }

  /** Shown or put aside; the first time asks for everything. */
  show(open) {
    if (open && !this.open) this.ask({ board: "open" });
    this.open = open;
  }

  hear({ board, found, text, error }) {
    if (board === "said") {
      this.#say(text, Boolean(error));
    }
    if (board !== "shown") return;
    say(this.room, roomText(found.owners));
    this.#part("notes", found.notes, (notes) => notes.map((note) => el("p", { class: "wb-board-note", text: note })));
    this.runsOf = found.owners;
    this.#part("owners", found.owners, (owners) => this.#owners(owners));
    this.#part("tasks", found.tasks, (tasks) => tasks.map((task) => this.#task(task)));
    for (const form of this.forms.values()) form.look();
    this.#part("lessons", found.lessons, (lessons) => lessons.map(lessonTable));
  }

  /** Only what has changed is drawn anew, so that focus and selections stay. */
  #part(name, value, draw) {
    const key = JSON.stringify(value);
    if (this.parts[name] === key) return;
    this.parts[name] = key;
    const held = this[name].contains(document.activeElement) ? document.activeElement.dataset.entry : "";
    // A table keeps the place to which somebody has scrolled it.
    const at = new Map([...this[name].querySelectorAll(".wb-board-scroll")].map((each) => [each.getAttribute("aria-label"), each.scrollTop]));
    this[name].replaceChildren(...draw(value));
    for (const each of this[name].querySelectorAll(".wb-board-scroll")) each.scrollTop = at.get(each.getAttribute("aria-label")) ?? 0;
    if (held) [...this[name].querySelectorAll("[data-entry]")].find((each) => each.dataset.entry === held)?.focus({ preventScroll: true });
  }

  /** A row for each owner; those of its other runs are unfolded by its name. */
  #owners(owners) {
    const rows = owners.flatMap((each) => {
      const [first, ...others] = each.runs;
      const open = this.unfolded.has(each.owner);
      const more = each.train + each.wait + each.ended - each.runs.length;
      const head = [others.length ? this.#unfold(each.owner, open) : each.owner, ...runCells(first), fixed(each.best, 3), countsText(each)];
      if (!open) return [head];
      return [head, ...others.map((run) => ["", ...runCells(run), "", ""]), ...(more ? [["", `${more} more in the list of runs`, "", "", "", "", ""]] : [])];
    });
    if (!rows.length) return [];
    const shown = table("owners and their runs", [["owner"], ["run"], ["state"], ["done"], ["held-out loss", "num"], ["best", "num"], ["all runs"]], rows);
    return [section("Runs by owner", "the run under way, else the newest; a name with a mark unfolds all; losses in nats per token", shown)];
  }

  #unfold(owner, open) {
    const toggle = () => {
      this.unfolded[open ? "delete" : "add"](owner);
      delete this.parts.owners;
      this.#part("owners", this.runsOf, (owners) => this.#owners(owners));
    };
    return el("button", { type: "button", class: "wb-board-owner", text: owner, title: open ? "Show the first run alone" : "Show all runs", "aria-expanded": String(open), "data-entry": `owner ${owner}`, on: { click: toggle } });
  }

  #task(task) {
    const press = (verb, text, entry, title) =>
      el("button", { type: "button", text, title, "aria-label": `${text}: ${entry.name} of ${entry.owner}`, "data-entry": `${verb} ${task.name} ${entry.recipe_hash}`, on: { click: () => this.#reproduce(verb, task, entry) } });
    const rows = task.entries.map((entry, i) => [
      String(i + 1), entry.owner, entry.name, fixed(entry.bits_per_byte, 4), fixed(entry.loss, 4), fixed(entry.floor, 3),
      el("span", { class: "wb-board-press" }, this.canPut ? press("put", "Open recipe", entry, "Put its recipe into the form") : null, press("launch", "Launch again", entry, "Train its recipe once more, as a run of yours")),
    ]);
    const note = [`${task.budget}, ${task.objective}; the lowest bits per byte on text that nobody trained on`, task.rules].filter(Boolean).join(". ");
    const inside = rows.length ? table(`task ${task.name}`, [["place"], ["owner"], ["run"], ["bits per byte", "num"], ["nats", "num"], ["word frequencies", "num"], [""]], rows) : el("p", { text: "no entries yet" });
    return section(`Task: ${task.title}`, note, inside, this.#form(task));
  }

  /** The choice of a run to enter; it stays as it is while somebody has it open. */
  #form(task) {
    const form = this.forms.get(task.name) ?? this.#newForm(task.name);
    form.task = task;
    return form.node;
  }

  #newForm(name) {
    let chosen = "";
    const choice = dropdown(`run to enter in ${name}`, (value) => {
      chosen = value;
      form.look();
    });
    const enter = () => {
      this.#say("scoring the run…");
      this.ask({ board: "enter", task: name, run: chosen });
    };
    const button = el("button", { type: "button", text: "Enter run", title: "Score it on the text of the task and put it on the leaderboard", on: { click: enter } });
    choice.node.addEventListener("blur", () => form.look());
    choice.node.dataset.entry = `enter ${name}`;
    const form = { node: el("p", { class: "wb-board-enter" }, choice.node, button) };
    form.look = () => {
      const runs = enterable(this.runsOf, form.task);
      if (!runs.some(([id]) => id === chosen)) chosen = "";
      button.disabled = !chosen;
      if (document.activeElement !== choice.node) choice.set([["", invitation(this.runsOf, runs)], ...runs], chosen);
    };
    this.forms.set(name, form);
    return form;
  }

  #say(text, error = false) {
    say(this.said, text);
    this.said.classList.toggle("wb-board-bad", error);
  }

  #reproduce(verb, task, entry) {
    this.#say(verb === "put" ? "opening…" : "launching…");
    this.ask({ board: verb, task: task.name, recipe: entry.recipe_hash });
  }

  end() {
    clearInterval(this.timer);
  }
}
