// The Data tab: rows of any step as the model sees them, a text traced to its steps, and facts about the text.

import { dropdown, el, say } from "../dom.js";
import { percent, whole } from "../format.js";

const ROWS = 4;
const WORKING = "asking… the first question opens the text, which takes seconds";
/** By mark: its sign and its meaning (workbench/choices/objectives/preview.py). */
export const MARKS = {
  masked: ["?", "hidden, to be predicted"],
  replaced: ["\u2260", "replaced by another token, the true one is to be predicted"],
  kept: ["=", "stands as it is, and is to be predicted all the same"],
  next: ["\u2192", "read; the token behind it is to be predicted"],
  permuted: ["\u2190", "read as it is, but moved before what is predicted; its place is told"],
  predicted: ["\u22ef", "predicted in an order that is drawn, then read by those that follow"],
  swapped: ["\u21c4", "stands in another order, or is of another text, which is to be noticed"],
};

/** The document of a piece, in words. */
export function pieceText({ begin, end, document: number, offset, size, source }) {
  const length = end - begin;
  const part = length === size ? "whole" : `tokens ${whole(offset)} to ${whole(offset + length - 1)}`;
  return `document ${whole(number)}${source ? ` (${source})` : ""}, ${part} of ${whole(size)}${offset ? "; it was cut, so positions start at 0 again" : ""}`;
}

/** When a place was read and will be, in words. */
export function readText({ split, readings, times, planned }, most = 6) {
  if (split === "heldout") return "never: models are scored on it";
  const listed = (past, total) => {
    const steps = readings.filter((each) => each.past === past).map(({ step }) => whole(step));
    return steps.length ? steps.slice(0, most).join(", ") + (total > most ? ` and ${whole(total - most)} more` : "") : "";
  };
  const [read, ahead] = [listed(true, times), listed(false, planned - times)];
  return [read && `read at step ${read}`, ahead && `to be read at step ${ahead}`].filter(Boolean).join("; ") || "not read: no step of this budget comes to it";
}

/** Why a document was left out, in words. */
export function removedText({ kind, reason, detail, number, text }) {
  return `left out by step '${kind}' of the preparation, since ${reason}${detail ? ` (${detail})` : ""}: document ${whole(number)} of the corpus, '${text}'`;
}

/** The last step that can be asked for: the budget's, else the last one taken. */
export function lastStep([begun, done, last]) {
  return Math.max(begun, Math.max(done, last) - 1);
}

function token(row, place, first) {
  const [mark, target] = [row.marks[place], row.targets[place]];
  const joined = row.joined[place] && !first ? " lab-data-joined" : "";
  const [sign, words] = MARKS[mark] ?? ["", "read as it is, nothing is asked there"];
  const told = mark === "read" || mark === "next" ? null : el("sup", { text: sign });
  const hidden = target && (mark === "masked" || mark === "replaced") ? el("span", { class: "lab-data-target", text: ` ${target}` }) : null;
  return el("span", { class: `lab-data-token lab-data-${mark}${joined}`, title: `position ${row.positions[place]}, id ${row.seen[place]}; ${words}` }, document.createTextNode(row.texts[place]), told, hidden);
}

function rowNode(row) {
  const pieces = row.pieces.map((piece) => {
    // Spaces between words, for who hears or copies them.
    const tokens = Array.from({ length: piece.end - piece.begin }, (_, i) => [row.joined[piece.begin + i] ? "" : " ", token(row, piece.begin + i, i === 0)]);
    const words = el("p", {});
    words.append(...tokens.flat());
    return el("div", { class: "lab-data-piece" }, el("p", { class: "lab-data-quiet", text: pieceText(piece) }), words);
  });
  return el("section", { class: "lab-data-row", "aria-label": `row ${row.place}` }, el("h4", { text: `row ${whole(row.place)} (sample ${whole(row.sample)}, epoch ${whole(row.epoch)})` }), ...pieces);
}

function table(label, heads, rows, numbers = []) {
  const cell = (tag) => (text, i) => el(tag, { class: numbers.includes(i) ? "lab-try-number" : "", ...(tag === "th" ? { scope: "col" } : {}), text: String(text) });
  return el("table", { "aria-label": label }, el("thead", {}, el("tr", {}, ...heads.map(cell("th")))), el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell("td"))))));
}

function bars(label, unit, rows) {
  const most = Math.max(...rows.map(([, number]) => number), 1);
  const bar = (number) => el("td", { class: "lab-try-bar", "aria-hidden": "true" }, el("span", { style: `width: ${((100 * number) / most).toFixed(1)}%` }));
  const body = rows.map(([text, number]) => el("tr", {}, el("th", { scope: "row", text }), bar(number), el("td", { class: "lab-try-number", text: unit(number) })));
  return el("table", { class: "lab-try-words", "aria-label": label }, el("tbody", {}, ...body));
}

function preparationNodes(steps) {
  if (!steps.length) return [el("p", { text: "no preparation steps: the text is as it was read" })];
  const rows = steps.map((step) => [step.kind, whole(step.documents_in), whole(step.removed), percent(step.removed_share), Object.entries(step.reasons).map(([why, n]) => `${why} ${whole(n)}`).join(", ")]);
  const shown = (step, which) => {
    const texts = step[`${which}_examples`] ?? [];
    const why = (each) => (which === "removed" ? `${each.reason}${each.detail ? ` (${each.detail})` : ""}: ` : "");
    return texts.length ? el("details", {}, el("summary", { text: `${step.kind}: ${texts.length} ${which}, to read` }), el("ul", {}, ...texts.map((each) => el("li", { text: `${why(each)}${each.text}` })))) : null;
  };
  return [table("preparation steps", ["step", "documents in", "removed", "share", "reasons"], rows, [1, 2, 3]), ...steps.flatMap((step) => ["removed", "kept"].map((which) => shown(step, which))).filter(Boolean)];
}

/** The panel of the tab; `ask(run, what, query)` resolves to an answer, with `error` where there is none. */
export class DataPanel {
  constructor(ask) {
    Object.assign(this, { ask, asked: 0, run: "", runs: [], steps: [0, 0, 0] });
    this.picker = dropdown("run whose rows are shown", (id) => this.choose(id));
    this.number = el("input", { type: "number", min: "0", value: "0", "aria-label": "step", title: "counted from 0, by the steps taken before it; past or future", on: { change: () => this.go(this.number.valueAsNumber) } });
    this.slider = el("input", { type: "range", min: "0", max: "0", step: "1", value: "0", "aria-label": "step of the run", on: { input: () => (this.number.value = this.slider.value), change: () => this.go(Number(this.slider.value)) } });
    const turn = (text, label, by) => el("button", { type: "button", text, "aria-label": label, title: label, on: { click: () => by() } });
    const steps = el("div", { class: "lab-data-steps" }, turn("\u2039", "previous step", () => this.go(this.step - 1)), this.number, turn("\u203a", "next step", () => this.go(this.step + 1)), this.slider);
    this.more = el("div", { class: "lab-data-steps" }, turn("Earlier rows", "earlier rows of this step", () => this.go(this.step, this.first - ROWS)), turn("Later rows", "later rows of this step", () => this.go(this.step, this.first + ROWS)));
    this.field = el("input", { type: "text", class: "lab-try-field", "aria-label": "words to find", placeholder: "words to find in the text", autocomplete: "off", spellcheck: "false" });
    const entered = (input, act) => input.addEventListener("keydown", (event) => event.key === "Enter" && !event.ctrlKey && !event.metaKey && (event.preventDefault(), act()));
    entered(this.field, () => this.find());
    // A notebook keeps Enter from the field, which would tell of the change.
    entered(this.number, () => this.go(this.number.valueAsNumber));
    const line = el("div", { class: "lab-try-line" }, this.field, el("button", { type: "button", class: "lab-try-ask", text: "Find", on: { click: () => this.find() } }));
    this.said = el("p", { class: "lab-try-said", role: "status" });
    this.found = el("div", { class: "lab-data-found" });
    this.rows = el("div", { class: "lab-data-rows" });
    this.facts = el("div", { class: "lab-data-facts" });
    this.node = el("div", { class: "lab-try-panel", role: "tabpanel", "aria-label": "Data" }, this.picker.node, steps, line, this.said, this.found, this.rows, this.more, this.facts);
    this.step = this.first = 0;
  }

  /** @param {object[]} runs with `id` and `name`. @param {boolean} shown */
  draw(runs, shown) {
    this.runs = runs;
    if (!runs.some(({ id }) => id === this.run)) this.run = "";
    this.picker.set(runs.map(({ id, name }) => [id, name]), this.run || runs[0]?.id);
    if (shown && !this.run && runs.length) this.choose(runs[0].id);
  }

  async choose(id) {
    this.run = id;
    this.found.replaceChildren();
    for (const each of [this.rows, this.facts]) each.replaceChildren();
    const facts = await this.#asked("facts", {});
    if (!facts) return;
    this.steps = facts.steps;
    this.slider.min = this.number.min = String(facts.steps[0]);
    this.slider.max = this.number.max = String(lastStep(facts.steps));
    this.#facts(facts);
    await this.go(Math.max(facts.steps[0], facts.steps[1] - 1));
  }

  async go(step, first = 0) {
    if (!Number.isInteger(step) || step < 0 || first < 0) return;
    const answer = await this.#asked("rows", { step, first, rows: ROWS });
    if (!answer) return;
    Object.assign(this, { step, first });
    this.number.value = this.slider.value = String(step);
    this.slider.setAttribute("aria-valuetext", `step ${whole(step)}`);
    const tense = answer.past ? "has read" : "will read";
    const marks = Object.entries(MARKS).filter(([mark]) => answer.rows.some((row) => row.marks.includes(mark)));
    const head = `the run ${tense} ${whole(answer.batch)} rows of ${whole(answer.length)} tokens at step ${whole(step)}, after ${whole(answer.tokens)} tokens (${answer.epochs.toFixed(2)} epochs)`;
    const legend = marks.map(([mark, [sign, words]]) => `${mark} ${sign} ${words}`).join("; ");
    this.rows.replaceChildren(el("p", { text: head }), el("p", { class: "lab-data-quiet", text: `${legend}. A box is a token, a dotted left edge continues a word, a bar is a document.` }), ...answer.notes.map((note) => el("p", { class: "lab-data-quiet", text: note })), ...answer.rows.map(rowNode));
    const [earlier, later] = this.more.children;
    earlier.disabled = first === 0;
    later.disabled = first + ROWS >= answer.batch;
  }

  async find() {
    const text = this.field.value.trim();
    if (!text) return this.tell("write some words first", true);
    const answer = await this.#asked("find", { text });
    if (!answer) return;
    const places = answer.places.map((place) => {
      const [reading] = place.readings;
      const open = reading ? el("button", { type: "button", text: `Show at step ${whole(reading.step)}`, on: { click: () => this.go(reading.step, reading.place) } }) : null;
      const where = `document ${whole(place.document)}${place.split === "heldout" ? " of the held-out text" : ""}${place.source ? ` (${place.source})` : ""}: ${readText(place)}`;
      return el("li", {}, el("p", { text: where }), el("p", { class: "lab-data-quiet", text: place.text }), open);
    });
    const removed = answer.removed.map((each) => el("li", {}, el("p", { text: removedText(each) })));
    const head = answer.total ? `found in ${whole(answer.total)} place${answer.total === 1 ? "" : "s"}${answer.total > answer.places.length ? `, the first ${answer.places.length} below` : ""}` : "found nowhere in the prepared text; whole words are looked for";
    this.found.replaceChildren(el("p", { text: head }), el("ul", {}, ...removed, ...places));
  }

  #facts({ train, heldout, lengths, vocabulary, sources, preparation }) {
    const group = (title, ...nodes) => el("details", {}, el("summary", { text: title }), ...nodes);
    const unused = vocabulary.unused ? `${whole(vocabulary.unused)} of ${whole(vocabulary.size)} tokens stand nowhere in the training text: ${vocabulary.unused_tokens.join(" ")}${vocabulary.unused > vocabulary.unused_tokens.length ? " …" : ""}` : `all ${whole(vocabulary.size)} tokens stand somewhere in the training text`;
    const parts = sources.length ? [group("Sources", table("sources", ["source", "documents", "tokens", "read so far"], sources.map((each) => [each.name, whole(each.documents), whole(each.tokens), whole(each.read)]), [1, 2, 3]))] : [];
    this.facts.replaceChildren(
      el("p", { text: `${whole(train.documents)} documents with ${whole(train.tokens)} tokens to train on, ${whole(heldout.documents)} with ${whole(heldout.tokens)} held out` }),
      group("Removed in preparation, and why", ...preparationNodes(preparation)),
      group("Lengths of documents", bars("documents by length in tokens", whole, lengths.map(([from, to, number]) => [`${whole(from)} to ${whole(to)} tokens`, number]))),
      group("Vocabulary", el("p", { text: unused }), bars("most frequent tokens", percent, vocabulary.frequent)),
      ...parts,
    );
  }

  /** An answer, or null where there is none or another question was asked meanwhile. */
  async #asked(what, query) {
    const asked = (this.asked += 1);
    this.tell(WORKING);
    const answer = await this.ask(this.run, what, query);
    if (asked !== this.asked) return null;
    this.tell(answer.error ?? "", Boolean(answer.error));
    return answer.error ? null : answer;
  }

  tell(text, bad = false) {
    say(this.said, text);
    this.said.classList.toggle("lab-try-bad", bad);
  }
}
