// What a tab of the Lab says instead of one, and the way out: over all of the tab while there is no Lab to show, and over
// the forms alone where one stands there whose kernel has ended, so that its curves can be read on.

import { el, say } from "../dom.js";
import { showEnded } from "../lab/ended.js";

export class Cover {
  /**
   * @param {(button: string) => void} press the way out, by its words
   * @param {() => Node | undefined} shown what the tab has drawn so far
   */
  constructor(press, shown) {
    Object.assign(this, { press, shown, uncover: null });
    [this.title, this.text] = [el("p", { role: "status" }), el("p", { role: "status" })];
    this.why = el("pre", {});
    this.button = el("button", { type: "button", class: "wb-dock-open", on: { click: () => press(this.button.textContent) } });
    this.node = el("div", { class: "wb-dock-cover" }, this.title, this.text, this.why, this.button);
  }

  /** @param {{title: string, text?: string, why?: string, button?: string}} words `why`: what was reported; without `button` there is nothing to do but to wait */
  say({ title, text = "", why = "", button = "" }) {
    this.hide();
    const root = this.shown()?.querySelector(".lab-whole");
    if (root?.querySelector(".lab-compose")) {
      this.uncover = showEnded(root, { title, text: why || text, button }, () => (this.press(button), ""));
      return;
    }
    for (const [name, words] of Object.entries({ title, text, why, button })) {
      say(this[name], words);
      this[name].hidden = !words;
    }
    this.node.hidden = false;
  }

  hide() {
    this.uncover?.();
    this.uncover = null;
    this.node.hidden = true;
  }
}
