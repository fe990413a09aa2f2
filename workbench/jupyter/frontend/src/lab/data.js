// The Data tab: rows of any step as the model sees them, a text traced to its steps, and facts about the text.

import { dropdown, el, say, svg } from "../dom.js";
import { percent, whole } from "../format.js";
import { markOf } from "../palette.js";

const ROWS = 4;
/** The run that is none: what is composed. */
const COMPOSED = "";
const WORKING = "asking… the first question opens the text, which takes seconds";
const PREPARING = "preparing the text… other questions wait until it is done";
const SIDES = "Before ? and \u2260 stands the token that the model reads, behind it the true one. ";
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
export function removedText({ kind, reason, detail, number, sources, text }) {
  return `left out by step '${kind}' of the preparation, since ${reason}${detail ? ` (${detail})` : ""}: document ${whole(number)} of the corpus${sources.length ? ` (${sources.join("/")})` : ""}, '${text}'`;
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

/** Shares of the sources over the steps: `[step, [share]]`, stacked; colours are told with the names, in the order of the stack. */
function sharesNodes(names, shares) {
  const [width, height] = [600, 90];
  const last = shares.length - 1;
  const x = (i) => (width * i) / Math.max(1, last);
  const below = (row, place) => row.slice(0, place).reduce((sum, share) => sum + share, 0);
  const line = (place) => shares.map(([, row], i) => `${x(i).toFixed(1)},${(height * (1 - below(row, place))).toFixed(1)}`);
  const area = (place) => svg("polygon", { fill: markOf(place).stroke, points: [...line(place), ...line(place + 1).reverse()].join(" ") });
  const at = (i, place) => `${percent(shares[i][1][place])} at step ${whole(shares[i][0])}`;
  const told = (place) => `${at(0, place)}, ${at(last, place)}`;
  const picture = el("div", { class: "lab-data-shares", role: "img", "aria-label": `share of each source over the steps: ${names.map((name, place) => `${name} ${told(place)}`).join("; ")}` });
  picture.append(svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...names.map((_, place) => area(place))));
  const key = names.map((name, place) => el("li", {}, el("span", { class: "lab-data-key", style: `background: ${markOf(place).stroke}`, "aria-hidden": "true" }), ` ${name}: ${told(place)}`));
  return [el("p", { text: "share of what is read, from the first step to the last; from the bottom up:" }), picture, el("ul", { class: "lab-data-keys" }, ...key)];
}

function tokenizerNodes({ vocabulary, train, heldout, longest, commonest, unused }) {
  const known = (number, form) => (number === null ? "not known" : form(number));
  const two = (number) => number.toFixed(2);
  const measures = [["tokens per word", "tokens_per_word", two], ["bytes per token", "bytes_per_token", two], ["tokens per byte", "tokens_per_byte", (number) => number.toFixed(3)], ["unknown tokens", "unknown_share", percent]];
  const rows = measures.map(([title, name, form]) => [title, known(train[name], form), known(heldout[name], form)]);
  const listed = (title, entries) => (entries.length ? [el("p", { text: `${title}: ${entries.map(({ text }) => `'${text}'`).join(" ")}` })] : []);
  return [
    el("p", { text: `${whole(vocabulary.used)} of ${whole(vocabulary.ids)} entries occur in the training text, ${percent(vocabulary.unused_share)} do not` }),
    table("tokenizer on this text", ["", "training text", "held-out text"], rows, [1, 2]),
    bars("most frequent tokens", percent, commonest.map(({ text, count }) => [text, count / train.tokens])),
    ...listed("longest entries", longest),
    ...listed("unused entries, the last first", unused),
  ];
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
    Object.assign(this, { ask, asked: 0, run: null, picked: false, runs: [], hash: "", steps: [0, 0, 0] });
    this.picker = dropdown("run or recipe whose rows are shown", (id) => this.choose(id, null, false, true));
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
    this.prepare = el("button", { type: "button", text: "Prepare the text", hidden: true, on: { click: () => this.choose(COMPOSED, this.step, true) } });
    this.found = el("div", { class: "lab-data-found" });
    this.rows = el("div", { class: "lab-data-rows" });
    this.facts = el("div", { class: "lab-data-facts" });
    this.node = el("div", { class: "lab-try-panel", role: "tabpanel", "aria-label": "Data" }, this.picker.node, steps, line, this.said, this.prepare, this.found, this.rows, this.more, this.facts);
    this.step = this.first = 0;
    this.more.hidden = true;
  }

  /** @param {object[]} runs with `id` and `name`. @param {{name: string, hash: string}} recipe that is composed, or an empty object. @param {boolean} shown */
  draw(runs, recipe, shown) {
    const subjects = [...runs.map(({ id, name }) => [id, name]), ...(recipe.hash === undefined ? [] : [[COMPOSED, `as composed: ${recipe.name}`]])];
    if (!subjects.some(([id]) => id === this.run)) this.run = null;
    this.picker.set(subjects, this.run ?? subjects[0]?.[0]);
    if (!shown || !subjects.length) return;
    const edited = this.run === COMPOSED && recipe.hash !== this.hash;
    this.hash = recipe.hash;
    const first = subjects[0][0];
    if (this.run === null || (this.run === COMPOSED && first !== COMPOSED && !this.picked)) this.choose(first, null, false, false);
    else if (edited) this.choose(COMPOSED, this.step);
  }

  /** Shows a run at its newest step, or at another one that it has; `picked` by the user, it stays when others come. */
  async choose(id, step = null, prepare = false, picked = this.picked) {
    Object.assign(this, { run: id, picked });
    for (const each of [this.found, this.rows, this.facts]) each.replaceChildren();
    this.more.hidden = true;
    const facts = await this.#asked(prepare ? "prepare" : "facts", {}, prepare ? PREPARING : WORKING);
    if (!facts) return;
    this.steps = facts.steps;
    const [first, last] = [facts.steps[0], lastStep(facts.steps)];
    this.slider.min = this.number.min = String(first);
    this.slider.max = this.number.max = String(last);
    this.#facts(facts);
    await this.go(step !== null && first <= step && step <= last ? step : Math.max(first, facts.steps[1] - 1));
  }

  async go(step, first = 0) {
    if (!Number.isInteger(step) || step < 0 || first < 0) return;
    const answer = await this.#asked("rows", { step, first, rows: ROWS });
    if (!answer) return;
    Object.assign(this, { step, first });
    this.number.value = this.slider.value = String(step);
    this.slider.setAttribute("aria-valuetext", `step ${whole(step)}`);
    const tense = this.run === COMPOSED ? "the recipe as composed would read" : `the run ${answer.past ? "has read" : "will read"}`;
    const marks = Object.entries(MARKS).filter(([mark]) => answer.rows.some((row) => row.marks.includes(mark)));
    const head = `${tense} ${whole(answer.batch)} rows of ${whole(answer.length)} tokens at step ${whole(step)}, after ${whole(answer.tokens)} tokens (${answer.epochs.toFixed(2)} epochs)`;
    const legend = marks.map(([mark, [sign, words]]) => `${mark} ${sign} ${words}`).join("; ");
    const sides = marks.some(([mark]) => mark === "masked" || mark === "replaced") ? SIDES : "";
    this.rows.replaceChildren(el("p", { text: head }), el("p", { class: "lab-data-quiet", text: `${legend}. ${sides}A box is a token, a dotted left edge continues a word, a bar is a document.` }), ...answer.notes.map((note) => el("p", { class: "lab-data-quiet", text: note })), ...answer.rows.map(rowNode));
    const [earlier, later] = this.more.children;
    this.more.hidden = false;
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
      const where = `document ${whole(place.document)} of the ${place.split === "heldout" ? "held-out" : "training"} text${place.source ? ` (${place.source})` : ""}: ${readText(place)}`;
      return el("li", {}, el("p", { text: where }), el("p", { class: "lab-data-quiet", text: place.text }), open);
    });
    const removed = answer.removed.map((each) => el("li", {}, el("p", { text: removedText(each) })));
    const head = answer.total ? `found in ${whole(answer.total)} place${answer.total === 1 ? "" : "s"}${answer.total > answer.places.length ? `, the first ${answer.places.length} below` : ""}` : "found nowhere in the prepared text; whole words are looked for";
    this.found.replaceChildren(el("p", { text: head }), el("ul", {}, ...removed, ...places));
  }

  #facts({ train, heldout, lengths, tokenizer, sources, shares, preparation }) {
    const group = (title, ...nodes) => el("details", {}, el("summary", { text: title }), ...nodes);
    const read = sources.map((each) => [each.name, whole(each.documents), whole(each.tokens), whole(each.read)]);
    const over = shares.length ? sharesNodes(sources.map(({ name }) => name), shares) : [];
    const parts = sources.length ? [group("Sources", table("sources", ["source", "documents", "tokens", "read so far"], read, [1, 2, 3]), ...over)] : [];
    this.facts.replaceChildren(
      el("p", { text: `${whole(train.documents)} documents with ${whole(train.tokens)} tokens to train on, ${whole(heldout.documents)} with ${whole(heldout.tokens)} held out` }),
      group("Removed in preparation, and why", ...preparationNodes(preparation)),
      group("Lengths of documents", bars("documents by length in tokens", whole, lengths.map(([from, to, number]) => [`${whole(from)} to ${whole(to)} tokens`, number]))),
      group("Tokenizer", ...tokenizerNodes(tokenizer)),
      ...parts,
    );
  }

  /** An answer, or null where there is none or another question was asked meanwhile. */
  async #asked(what, query, working = WORKING) {
    const asked = (this.asked += 1);
    this.tell(working);
    this.prepare.hidden = true;
    const answer = await this.ask(this.run, what, query);
    if (asked !== this.asked) return null;
    this.tell(answer.error ?? answer.unprepared ?? "", Boolean(answer.error));
    this.prepare.hidden = !answer.unprepared;
    return answer.error || answer.unprepared ? null : answer;
  }

  tell(text, bad = false) {
    say(this.said, text);
    this.said.classList.toggle("lab-try-bad", bad);
  }
}
