// A question in the page, wherever something is to be confirmed or typed: what is about to happen, a box where it needs
// one, yes or no. Enter is yes, Escape is no. It lies over what stands below it, so that nothing moves.

import "./question.css";

import { el, say } from "./dom.js";

// The second click of a double click, or a key that is held down, must not answer what the first one has asked.
const UNREAD_MS = 350;

/** One at a time. Its `node` goes where it is to appear, into something that is positioned. */
export class Question {
  /** @param {() => void} back gives the focus to where it was */
  constructor(back) {
    this.back = back;
    this.text = el("span", { class: "wb-question-text" });
    this.box = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    this.yes = el("button", { type: "submit", class: "wb-yes" });
    this.no = el("button", { type: "button", on: { click: () => this.close(true) } });
    const submit = (event) => {
      event.preventDefault();
      this.answer();
    };
    this.node = el("div", { class: "wb-question", role: "alertdialog", tabindex: "-1" }, el("form", { on: { submit } }, this.text, this.box, this.yes, this.no));
    this.node.hidden = true;
    this.node.addEventListener("keydown", (event) => {
      // Not left to the form: in a notebook of JupyterLab a key pressed in a cell's output submits none.
      const typed = event.key === "Enter" && event.target === this.box && !event.isComposing;
      if (event.key !== "Escape" && !typed) return;
      event.preventDefault();
      event.stopPropagation();
      if (typed) this.answer();
      else this.close(true);
    });
  }

  get open() {
    return !this.node.hidden;
  }

  /**
   * Asks.
   * @param {object} what
   * @param {string} what.text what is about to happen
   * @param {string} what.yes, what.no words of the buttons
   * @param {boolean} [what.danger] it cannot be taken back
   * @param {string} [what.label] of the box, if there is one; `value` and `hint` stand in it, `optional`: it may be empty
   * @param {(typed: string) => void} then called at a yes
   */
  ask({ text, yes, no = "Cancel", danger = false, label, value = "", hint = "", optional = false }, then) {
    Object.assign(this, { then, optional });
    say(this.text, text);
    say(this.yes, yes);
    say(this.no, no);
    this.yes.classList.toggle("wb-danger", danger);
    this.node.setAttribute("aria-label", text);
    this.box.hidden = !label;
    this.box.value = value;
    this.box.setAttribute("aria-label", label ?? "");
    this.box.placeholder = hint;
    this.node.hidden = false;
    this.yes.disabled = true;
    (label ? this.box : this.node).focus();
    // What is typed takes the place of what stands there.
    this.box.select();
    clearTimeout(this.reading);
    this.reading = setTimeout(() => {
      this.yes.disabled = false;
      // The second click of a double click has taken the focus back.
      if (document.activeElement === this.node || !this.node.contains(document.activeElement)) (label ? this.box : this.yes).focus();
    }, UNREAD_MS);
  }

  /** Says yes, as the button does. */
  answer() {
    const value = this.box.value.trim();
    if (!this.open || this.yes.disabled) return;
    if (!this.box.hidden && !value && !this.optional) return this.box.focus();
    const { then } = this;
    this.close(true);
    then(value);
  }

  close(back = false) {
    if (!this.open) return;
    this.node.hidden = true;
    if (back) this.back();
  }
}
