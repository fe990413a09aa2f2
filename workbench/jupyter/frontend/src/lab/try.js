// Try it, beside Watch: words at a [MASK] or how a text goes on, two runs side by side, pinned sentences over the checkpoints.
// And Data, the rows that the watched runs read (data.js).

import "./try.css";

import { BoardPanel } from "../board/panel.js";
import { dropdown, el, say } from "../dom.js";
import { whole } from "../format.js";
import { roving } from "../roving.js";
import { baseOf, Server } from "../server.js";
import { DataPanel } from "./data.js";

const MASK = "[MASK]";
const MOST_PINNED = 3;
const WORKING = "asking… the first question loads the model, which takes seconds";
/** Of a continuation: name, label, what stands there at first, attributes. */
const KNOBS = [
  ["tokens", "tokens", 40, { min: "1", step: "1" }],
  ["temperature", "temperature", 0.8, { min: "0", step: "0.1" }],
  ["top_k", "top-k", 40, { min: "0", step: "1" }],
  ["seed", "seed", 0, { min: "0", step: "1" }],
];
const HINTS = { temperature: "0 takes the likeliest token, 1 draws as the model says", top_k: "draw among so many tokens; 0 for all", seed: "the same seed gives the same text", tokens: "of the continuation, at most" };
const CHANGES = ["recipe", "runs", "chosen", "shown", "pinned", "over"].map((name) => `change:${name}`).join(" ");

/** A probability in words. */
export function percent(chance) {
  return chance >= 0.001 ? `${(100 * chance).toFixed(1)}%` : "< 0.1%";
}

/** One of the two runs that are asked: which, at which checkpoint, and what it says. */
class Place {
  constructor(view, at) {
    Object.assign(this, { view, at, steps: [], run: "" });
    const which = at ? "run beside it" : "run to ask";
    this.picker = dropdown(which, (id) => view.choose(at, id));
    this.slider = el("input", { type: "range", min: "0", max: "0", step: "1", "aria-label": `checkpoint of the ${which}`, on: { input: () => this.told(), change: () => view.askAgain() } });
    this.step = el("span", { class: "lab-try-step" });
    this.answer = el("div", { class: "lab-try-answer", role: "status" });
    this.node = el("div", { class: "lab-try-run" }, this.picker.node, el("label", {}, this.slider, this.step), this.answer);
  }

  /** @param {object[]} runs that can be asked. @param {string} id of the chosen one; empty for none */
  draw(runs, id) {
    const others = this.at ? [["", "none beside it"]] : [];
    this.picker.set([...others, ...runs.map((run) => [run.id, run.name])], id);
    const steps = runs.find((run) => run.id === id)?.steps ?? [];
    const newest = this.run !== id || this.newest;
    const before = this.steps[this.slider.value];
    if (this.run !== id) this.answer.replaceChildren();
    Object.assign(this, { run: id, steps });
    this.slider.max = String(Math.max(0, steps.length - 1));
    const kept = steps.indexOf(before);
    this.slider.value = String(newest || kept < 0 ? steps.length - 1 : kept);
    this.slider.disabled = steps.length < 2;
    this.slider.parentElement.hidden = this.answer.hidden = !id;
    this.told();
  }

  told() {
    const step = this.steps[this.slider.value];
    this.newest = !(Number(this.slider.value) < this.steps.length - 1);
    const text = step === undefined ? "no checkpoint yet" : `step ${whole(step)}${this.newest ? " (newest)" : ""}`;
    say(this.step, text);
    this.slider.setAttribute("aria-valuetext", text);
  }

  /** What is asked of it: its newest checkpoint also while more come. */
  get asked() {
    return [this.run, this.newest ? null : this.steps[this.slider.value]];
  }

  show({ step, words, text, steps = [] }, prompt) {
    const head = el("p", { class: "lab-try-step", text: `at step ${whole(step)}` });
    if (words) return this.answer.replaceChildren(head, wordTable(words));
    const shown = el("p", { class: "lab-try-text" }, prompt, el("strong", { text }));
    const order = steps.length ? el("details", {}, el("summary", { text: "unmasked step by step" }), el("ol", {}, ...steps.map((each) => el("li", { text: each })))) : null;
    return this.answer.replaceChildren(...[head, shown, order].filter(Boolean));
  }
}

function bar(chance) {
  return el("td", { class: "lab-try-bar", "aria-hidden": "true" }, el("span", { style: `width: ${(100 * chance).toFixed(2)}%` }));
}

function wordTable(words) {
  const row = ([word, chance]) => el("tr", {}, el("th", { scope: "row", text: word }), bar(chance), el("td", { class: "lab-try-number", text: percent(chance) }));
  return el("table", { class: "lab-try-words", "aria-label": "likeliest words" }, el("tbody", {}, ...words.map(row)));
}

function overTable({ rows, error }, name) {
  const cells = (row) => [whole(row[0]), row[1], row[2] === null ? "" : percent(row[2])].map((text, i) => el("td", { class: i === 1 ? "" : "lab-try-number", text }));
  // A word's probability as a bar, so that the column is a picture of how it is learned; a continuation has none.
  const drawn = rows.some((row) => row[2] !== null);
  const heads = ["step", "answer", "probability"].map((text, i) => el("th", { scope: "col", class: i === 1 ? "" : "lab-try-number", text }));
  const body = error ? el("p", { class: "lab-try-bad", text: error }) : el("table", {}, el("thead", {}, el("tr", {}, ...heads, ...(drawn ? [el("td", { class: "lab-try-bar" })] : []))), el("tbody", {}, ...rows.map((row) => el("tr", {}, ...cells(row), ...(drawn ? [bar(row[2] ?? 0)] : [])))));
  return el("div", { class: "lab-try-run" }, el("h5", { text: name }), !error && !rows.length ? el("p", { text: "asking its checkpoints…" }) : body);
}

class Try {
  constructor(model, host) {
    // Another page of the same Lab counts its own questions.
    Object.assign(this, { model, host, asked: Math.floor(2 ** 30 * Math.random()), wanted: null });
    const tab = (text, title) => el("button", { type: "button", role: "tab", text, title, on: { click: () => this.open(text) } });
    this.tabs = [tab("Watch", "curves of the watched runs"), tab("Try", "ask the watched models"), tab("Data", "rows as the watched models, and the one that is composed, see them"), tab("Board", "everybody's runs, answers in lessons, leaderboards")];
    const list = el("div", { class: "lab-tabs", role: "tablist", "aria-label": "curves or questions" }, ...this.tabs);
    this.settle = roving(list, () => this.tabs.filter(({ hidden }) => !hidden));
    this.field = el("input", { type: "text", class: "lab-try-field", "aria-label": "sentence", placeholder: `The ${MASK} sat on the mat.`, autocomplete: "off", spellcheck: "false", on: { input: () => this.typed() } });
    const mask = el("button", { type: "button", text: MASK, title: "Put a [MASK] where the cursor stands: the model fills it", on: { click: () => this.insert() } });
    this.knobs = KNOBS.map(([name, label, value, more]) => [name, el("input", { type: "number", value: String(value), "aria-label": label, title: HINTS[name], ...more })]);
    this.going = el("div", { class: "lab-try-knobs", role: "group", "aria-label": "how it continues", hidden: true }, ...this.knobs.map(([, input], i) => el("label", {}, KNOBS[i][1], input)));
    this.pin = el("button", { type: "button", text: "Pin", on: { click: () => this.pinned() } });
    const ask = el("button", { type: "button", class: "lab-try-ask", text: "Ask", on: { click: () => this.ask() } });
    const line = el("div", { class: "lab-try-line" }, this.field, mask, ask, this.pin);
    this.said = el("p", { class: "lab-try-said", role: "status" });
    this.places = [0, 1].map((at) => new Place(this, at));
    this.over = el("div", { class: "lab-try-over" });
    const id = `lab-try-${Math.random().toString(36).slice(2)}`;
    this.panel = el("div", { id, class: "lab-try-panel", role: "tabpanel", "aria-label": "Try" }, line, this.going, this.said, el("div", { class: "lab-try-runs" }, ...this.places.map(({ node }) => node)), this.over);
    this.server = new Server(baseOf(document), { cookies: () => document.cookie });
    this.answers = new Map();
    this.data = new DataPanel((run, what, query) => this.read(run, what, query));
    this.data.node.id = `${id}-data`;
    this.board = new BoardPanel((message) => model.send(message), true);
    Object.assign(this.board.node, { id: `${id}-board`, role: "tabpanel", ariaLabel: "Board" });
    for (const [i, panel] of [this.panel, this.data.node, this.board.node].entries()) this.tabs[i + 1].setAttribute("aria-controls", panel.id);
    // Not a form: in a notebook, Enter does not send one.
    for (const input of [this.field, ...this.knobs.map(([, each]) => each)]) input.addEventListener("keydown", (event) => this.pressed(event));
    host.append(list, this.panel, this.data.node, this.board.node);
    this.heard = (message) => this.hear(message);
    this.changed = () => this.draw();
    model.on("msg:custom", this.heard);
    model.on(CHANGES, this.changed);
    this.draw();
  }

  /** Opens a tab. Which of Data and Board stands open is a matter of this page alone. */
  open(tab) {
    this.reading = tab === "Data" ? 2 : tab === "Board" ? 3 : 0;
    this.set({ shown: tab === "Try" });
  }

  /** What a run's text says: from the server, else from the kernel. */
  async read(id, what, query) {
    const { served } = this.model.get("runs").find((run) => run.id === id) ?? {};
    const answer = served ? await this.server.rows(served, what, query) : null;
    if (answer) return answer;
    this.asked += 1;
    return new Promise((done) => {
      this.answers.set(this.asked, done);
      this.model.send({ read: this.asked, run: id, what, query });
    });
  }

  set(values) {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.model.save_changes();
    this.draw();
  }

  draw() {
    const [recipe, runs, chosen, shown, pinned] = ["recipe", "runs", "chosen", "shown", "pinned"].map((name) => this.model.get(name));
    const there = runs.length > 0;
    const open = this.reading || Number(shown && there);
    this.host.classList.toggle("lab-trying", open > 0);
    this.host.hidden = !there && recipe.hash === undefined;
    this.tabs[1].hidden = !there;
    this.panel.hidden = open !== 1;
    this.data.node.hidden = open !== 2;
    this.data.draw(runs, recipe, open === 2);
    this.board.node.hidden = open !== 3;
    this.board.show(open === 3);
    for (const [i, tab] of this.tabs.entries()) tab.setAttribute("aria-selected", String(open === i));
    this.settle();
    this.places.forEach((place, at) => place.draw(at ? runs.filter(({ id }) => id !== chosen[0]) : runs, chosen[at] ?? ""));
    this.places[1].node.hidden = runs.length < 2;
    this.pin.disabled = pinned.length >= MOST_PINNED;
    this.pin.title = this.pin.disabled ? `${MOST_PINNED} sentences are pinned: take one away first` : "Keep this sentence: its best answer at every checkpoint";
    this.#over(runs, pinned);
  }

  #over(runs, pinned) {
    const over = this.model.get("over");
    const key = JSON.stringify([over, pinned, runs.map(({ id, name }) => [id, name])]);
    if (key === this.drawn) return;
    this.drawn = key;
    const name = (id) => runs.find((run) => run.id === id)?.name ?? id;
    const held = document.activeElement?.dataset?.pinned;
    const group = (text) => {
      const away = el("button", { type: "button", "data-pinned": text, text: "Unpin", "aria-label": `unpin: ${text}`, on: { click: () => this.set({ pinned: pinned.filter((each) => each !== text) }) } });
      const tables = over.filter((each) => each.text === text).map((each) => overTable(each, name(each.run)));
      return el("section", { "aria-label": `pinned: ${text}` }, el("header", {}, el("h4", { text }), away), el("div", { class: "lab-try-runs" }, ...tables));
    };
    this.over.replaceChildren(...pinned.map(group));
    if (held) [...this.over.querySelectorAll("[data-pinned]")].find((each) => each.dataset.pinned === held)?.focus();
  }

  choose(at, id) {
    const chosen = this.model.get("chosen");
    // The one beside it takes the place of the other, where that is picked for both.
    const [first, second] = at ? [chosen[0], id] : [id, chosen[1] === id ? chosen[0] : chosen[1]];
    this.set({ chosen: [first, second].filter(Boolean) });
    this.askAgain();
  }

  typed() {
    this.going.hidden = !this.field.value.trim() || this.field.value.includes(MASK);
    this.wanted = null;
  }

  insert() {
    this.field.setRangeText(MASK, this.field.selectionStart, this.field.selectionEnd, "end");
    this.field.focus();
    this.typed();
  }

  pressed(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.ask();
  }

  /** The text, or empty after saying that there is none. */
  sentence() {
    const text = this.field.value.trim();
    if (!text) this.tell(`write a sentence first, with a ${MASK} where a word is wanted, or the beginning of a text`, true);
    return text;
  }

  ask() {
    const text = this.sentence();
    const knobs = Object.fromEntries(this.knobs.map(([name, input]) => [name, input.valueAsNumber]));
    const wrong = text.includes(MASK) ? null : this.knobs.find(([, input]) => !input.validity.valid || !Number.isFinite(input.valueAsNumber));
    if (!text) return;
    if (wrong) {
      this.tell(`${wrong[1].getAttribute("aria-label")} '${wrong[1].value}' is no number that can be taken: ${wrong[1].title}`, true);
      return;
    }
    this.asked += 1;
    this.wanted = text;
    this.waiting = this.places.filter(({ run }) => run).length;
    this.errors = [];
    this.tell(WORKING);
    this.model.send({ ask: this.asked, text, at: this.places.filter(({ run }) => run).map((place) => place.asked), ...knobs });
  }

  /** The same at another checkpoint or of another run, where something was asked. */
  askAgain() {
    if (this.wanted) this.ask();
  }

  hear({ answered, place, error, read, said, ...answer }) {
    if (answer.board) {
      this.board.hear({ ...answer, error });
      return;
    }
    if (this.answers.has(read)) {
      if (said) {
        this.data.tell(said);
        return;
      }
      this.answers.get(read)({ ...answer, ...(error ? { error } : {}) });
      this.answers.delete(read);
      return;
    }
    if (answered !== this.asked) return;
    this.waiting -= 1;
    if (error) {
      this.places[place].answer.replaceChildren();
      if (!this.errors.includes(error)) this.errors.push(error);
    } else this.places[place].show(answer, this.wanted ?? "");
    this.tell(this.errors.join(" · ") || (this.waiting ? WORKING : ""), this.errors.length > 0);
  }

  tell(text, bad = false) {
    say(this.said, text);
    this.said.classList.toggle("lab-try-bad", bad);
  }

  pinned() {
    const text = this.sentence();
    const pinned = this.model.get("pinned");
    if (text && !pinned.includes(text)) this.set({ pinned: [...pinned, text] });
  }

  end() {
    this.board.end();
    this.model.off("msg:custom", this.heard);
    this.model.off(CHANGES, this.changed);
  }
}

function render({ model, el: host }) {
  const view = new Try(model, host);
  return () => view.end();
}

export default { render };
