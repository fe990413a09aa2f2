// What lies over the Lab in a tab while there is none to show: why, and a way out.

import { el, say } from "../dom.js";

export class Cover {
  /** @param {(button: string) => void} press the way out, by its words */
  constructor(press) {
    this.text = el("p", { role: "status" });
    this.why = el("pre", {});
    this.button = el("button", { type: "button", class: "wb-dock-open", on: { click: () => press(this.button.textContent) } });
    this.node = el("div", { class: "wb-dock-cover" }, this.text, this.why, this.button);
  }

  say(text, why = "", button = "") {
    say(this.text, text);
    say(this.why, why);
    say(this.button, button);
    this.why.hidden = !why;
    this.button.hidden = !button;
    this.node.hidden = false;
  }

  hide() {
    this.node.hidden = true;
  }
}
