// What stands where no run is watched: three steps, and an example that is one click away.

import { el, say } from "../../dom.js";

const STEPS = [
  ["Choose", "Pick a preset on the left and change what you like; the forecast says how long it takes."],
  ["Launch", "The run trains in the background. Its curves appear here while it learns."],
  ["Compare", "Launch another one, or press the circle of a run in the table below: each has its colour."],
];
// Longer than any launch takes: then something went wrong, which is said elsewhere, and it can be tried again.
const PATIENCE_MS = 20000;

export class Welcome {
  /** @param {() => void} start asks for the example */
  constructor(start) {
    const steps = STEPS.map(([what, text]) => el("li", {}, el("b", { text: what }), el("span", { text })));
    this.button = el("button", { type: "button", class: "wb-start", text: "Start a running example", on: { click: () => this.#start(start) } });
    this.said = el("p", { class: "wb-said", role: "status" });
    const note = el("p", { class: "wb-note", text: "A small model on a small text, which learns something within a minute. It is a run as any other: stop it whenever you like." });
    this.root = el("section", { class: "wb-welcome", "aria-label": "First steps", hidden: true }, el("h3", { text: "No run is watched" }), el("ol", {}, ...steps), this.button, note, this.said);
  }

  draw(shown) {
    this.root.hidden = !shown;
    if (!shown) this.#ready();
  }

  #start(start) {
    start();
    this.button.disabled = true;
    say(this.said, "Starting: its first numbers come in some seconds.");
    this.waiting = setTimeout(() => this.#ready(), PATIENCE_MS);
  }

  #ready() {
    clearTimeout(this.waiting);
    this.button.disabled = false;
    say(this.said, "");
  }
}
