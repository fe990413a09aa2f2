// The form that begins a race of the composed recipe. What it costs is said before it can be started.

import "./race_form.css";

import { el, say } from "../dom.js";
import picker from "../compose/source_picker.js";
import { looksText, seedsOf } from "./seeds.js";

// Letters that are typed belong together.
const SETTLED_MS = 400;
const WORKING = "Working out what it takes… the first time on a machine takes half a minute.";

class Form {
  constructor(model, host) {
    Object.assign(this, { model, asked: 0 });
    const box = (label, attributes) => el("input", { type: "text", autocomplete: "off", spellcheck: "false", "aria-label": label, on: { input: () => this.ask() }, ...attributes });
    const row = (label, node, hint = "") => el("label", { class: "lab-race-row" }, el("span", { text: label }), node, hint ? el("small", {}, hint) : null);
    this.title = el("h4");
    this.source = el("div", { class: "lab-race-source" });
    this.unpick = picker.render({ model, el: this.source });
    this.source.addEventListener("change", () => this.ask());
    this.seeds = box("seeds", { type: "number", min: "2", step: "1" });
    this.judged = el("span");
    this.budget = box("budget of each run", { placeholder: "as long as the baseline's own" });
    // What ``wb.race(score=...)`` takes.
    this.score = el("select", { "aria-label": "score", on: { change: () => this.ask(0) } }, el("option", { value: "nats", text: "nats per token" }), el("option", { value: "bits_per_byte", text: "bits per byte" }));
    this.name = box("name of the race");
    this.cost = el("div", { class: "lab-race-cost", role: "status" });
    this.start = el("button", { type: "submit", class: "lab-race-start", text: "Start race" });
    const cancel = el("button", { type: "button", text: "Cancel", on: { click: () => this.dialog.close() } });
    const submit = (event) => {
      event.preventDefault();
      if (!this.start.disabled) this.begin();
    };
    const form = el(
      "form", { on: { submit } },
      el("p", { text: "Trains both recipes on the same seeds with equal budgets, in the background, and says whether they differ by more than chance. Fewer seeds run where fewer decide." }),
      this.source,
      row("seeds", this.seeds, this.judged),
      row("budget", this.budget, "for example 60 s, 600 steps or 1e6 tokens, of each run"),
      row("score", this.score, "bits per byte also compares tokenizers"),
      row("name", this.name),
      this.cost,
      el("div", { class: "lab-race-buttons" }, this.start, cancel),
    );
    this.dialog = el("dialog", { class: "lab-race", "aria-label": "Race the composed recipe" }, this.title, form);
    // Letters typed here are no keys of the Lab's; Escape closes by itself.
    this.dialog.addEventListener("keydown", (event) => event.stopPropagation());
    host.classList.add("lab-race-place");
    host.append(this.dialog);
    this.heard = (message) => this.hear(message);
    model.on("msg:custom", this.heard);
  }

  hear({ open, priced, lines, error, begun, name }) {
    if (open) this.show(open);
    else if (begun) this.dialog.close();
    else if (priced !== undefined && priced === this.asked) {
      this.start.disabled = Boolean(error);
      if (name) this.name.placeholder = name;
      this.cost.classList.toggle("lab-bad", Boolean(error));
      this.cost.replaceChildren(...(error ? [el("p", { text: error })] : lines.map((text) => el("p", { text: text.trim(), class: text.startsWith("  ") ? "lab-race-part" : "" }))));
    }
  }

  show({ recipe, name, seeds, most, looks }) {
    if (this.dialog.open) return;
    Object.assign(this, { most, looks });
    say(this.title, `Race “${recipe}”`);
    Object.assign(this.seeds, { value: String(seeds), max: String(most) });
    this.budget.value = "";
    this.score.value = "nats";
    this.name.value = "";
    this.name.placeholder = name;
    this.dialog.showModal();
    this.source.querySelector("select").focus();
    this.ask(0);
  }

  ask(after = SETTLED_MS) {
    this.asked += 1;
    this.start.disabled = true;
    const { seeds, error } = seedsOf(this.seeds.value, this.most);
    if (error) return this.hear({ priced: this.asked, error });
    say(this.judged, looksText(seeds, this.looks));
    this.cost.classList.remove("lab-bad");
    this.cost.replaceChildren(el("p", { class: "lab-race-part", text: WORKING }));
    const { asked } = this;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      if (asked === this.asked) this.model.send({ price: asked, seeds, budget: this.budget.value, score: this.score.value, name: this.name.value });
    }, after);
    return undefined;
  }

  begin() {
    this.start.disabled = true;
    this.model.send({ start: this.asked });
  }

  end() {
    clearTimeout(this.waiting);
    this.unpick();
    this.model.off("msg:custom", this.heard);
  }
}

function render({ model, el: host }) {
  const form = new Form(model, host);
  return () => form.end();
}

export default { render };
