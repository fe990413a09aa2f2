// A button that opens a menu: arrow keys, Home, End and Escape as everywhere; what cannot be done says why.

import { el } from "../dom.js";
import { Popover } from "./popover.js";

const MOVES = { ArrowDown: 1, ArrowUp: -1 };

export class Menu extends Popover {
  /**
   * @param {string} label what it is the menu of
   * @param {{text: () => string, why?: () => string, run: () => void}[]} entries `why`: reason that it cannot be done
   *   now, or nothing
   */
  constructor(label, entries) {
    super({ text: "⋯", label, title: `${label}: figure, table, PNG, SVG, CSV`, role: "menu", look: "wb-more" });
    this.entries = entries;
    this.button.addEventListener("keydown", (event) => {
      if (!(event.key in MOVES)) return;
      event.preventDefault();
      this.toggle();
    });
  }

  content() {
    return this.entries.map((entry) => this.#item(entry));
  }

  key(event) {
    super.key(event);
    if (event.key === "Tab") this.close();
    const items = [...this.box.children];
    const at = items.indexOf(document.activeElement);
    const ends = { Home: 0, End: items.length - 1 };
    const to = event.key in ends ? ends[event.key] : event.key in MOVES ? (at + MOVES[event.key] + items.length) % items.length : null;
    if (to === null) return;
    event.preventDefault();
    items[to].focus();
  }

  #item({ text, why, run }) {
    const reason = why?.() ?? "";
    const choose = () => {
      if (reason) return;
      this.close();
      this.button.focus();
      run();
    };
    const item = el("button", { type: "button", role: "menuitem", tabindex: "-1", on: { click: choose } }, el("span", { text: text() }));
    if (reason) {
      // Not `disabled`: then nobody could focus it and read why.
      item.setAttribute("aria-disabled", "true");
      item.append(el("small", { text: reason }));
    }
    return item;
  }
}
