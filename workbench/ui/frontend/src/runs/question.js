// A question in the page, above the table: what is about to happen, a box where something is to be typed, yes or no.

import { el, say } from "../dom.js";

/** One at a time; `back` gives the focus to where it was. */
export class Question {
  constructor(back) {
    this.back = back;
    this.text = el("span", { class: "lab-question-text" });
    this.box = el("input", { type: "text" });
    this.yes = el("button", { type: "submit", class: "lab-yes" });
    const no = el("button", { type: "button", text: "Cancel", on: { click: () => this.close(true) } });
    this.node = el("form", { class: "lab-question", role: "group" }, this.text, this.box, this.yes, no);
    this.node.hidden = true;
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      const { then } = this;
      const value = this.box.value.trim();
      if (!this.box.hidden && !value && !this.optional) return this.box.focus();
      this.close(true);
      then(value);
    });
    this.node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close(true);
    });
  }

  /**
   * Asks.
   * @param {{text: string, yes: string, label?: string, value?: string, hint?: string, optional?: boolean}} what
   *   `label`: of the box, if there is one; `optional`: it may stay empty
   * @param {(typed: string) => void} then called at a yes
   */
  ask({ text, yes, label, value = "", hint = "", optional = false }, then) {
    Object.assign(this, { then, optional });
    say(this.text, text);
    say(this.yes, yes);
    this.node.setAttribute("aria-label", text);
    this.box.hidden = !label;
    this.box.value = value;
    this.box.setAttribute("aria-label", label ?? "");
    this.box.placeholder = hint;
    this.node.hidden = false;
    (label ? this.box : this.yes).focus();
  }

  close(back = false) {
    if (this.node.hidden) return;
    this.node.hidden = true;
    if (back) this.back();
  }
}
