// The line under the toolbar, where who has pressed a button looks: what became of what was asked last. It is always there, so that nothing moves when it speaks.

import { el, say } from "../dom.js";

const RESTING = "Enter on a row, or its circle, draws its curves or takes them away · Space selects · / searches";

// Longer words wrap.
const ONE_LINE = 120;

export class Said {
  /**
   * @param {Element} beside what stands at the end of the line
   * @param {(verb: string, ids: string[], rest?: object) => void} ask
   * @param {() => void} dismiss
   */
  constructor(beside, ask, dismiss) {
    Object.assign(this, { ask, dismiss });
    this.text = el("span", { role: "status" });
    this.line = el("div", { class: "lab-said" }, this.text);
    this.node = el("div", { class: "lab-foot" }, el("div", { class: "lab-outcome" }, this.line), beside);
    this.key = "";
  }

  /** @param {{text: string, error: boolean, passing?: boolean, undo?: string[], take_over?: {verb: string, runs: string[]}}} said `passing`: it goes with its cause, nobody need dismiss it */
  draw({ text, error, passing = false, undo, take_over: over }) {
    say(this.text, text || RESTING);
    this.text.title = text || RESTING;
    this.text.setAttribute("role", error && !passing ? "alert" : "status");
    this.line.classList.toggle("lab-resting", !text);
    this.line.classList.toggle("lab-bad", Boolean(error));
    this.line.classList.toggle("lab-long", text.length > ONE_LINE);
    // The table above makes room.
    this.node.parentElement?.classList.toggle("lab-complains", Boolean(error));
    const key = JSON.stringify([undo, over, Boolean(error), passing]);
    if (this.key === key) return;
    this.key = key;
    this.line.replaceChildren(this.text);
    if (undo?.length) this.#button("Undo", "bring them back", () => this.ask("restore", undo));
    if (over) this.#button("Take over", "what the other has asked and is not done yet will not happen", () => this.ask(over.verb, over.runs, { takeOver: true }));
    if (error && !passing) this.#button("✕", "dismiss", this.dismiss, "dismiss");
  }

  #button(text, title, click, label = null) {
    this.line.append(el("button", { type: "button", text, title, "aria-label": label, on: { click: (event) => event.detail < 2 && click() } }));
  }
}
