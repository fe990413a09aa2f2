// A button that opens a menu: arrow keys, Home, End and Escape as everywhere; what cannot be done says why.

import { el } from "../dom.js";

const MOVES = { ArrowDown: 1, ArrowUp: -1 };

export class Menu {
  /**
   * @param {string} label what it is the menu of
   * @param {{text: () => string, why?: () => string, run: () => void}[]} entries `why`: reason that it cannot be done
   *   now, or nothing
   */
  constructor(label, entries) {
    this.entries = entries;
    this.list = el("div", { class: "wb-menu", role: "menu", "aria-label": label, popover: "auto", on: { keydown: (e) => this.#key(e), toggle: (e) => this.#toggled(e) } });
    this.button = el("button", {
      type: "button",
      class: "wb-quiet wb-more",
      text: "⋯",
      title: `${label}: figure, table, PNG, SVG, CSV`,
      "aria-label": label,
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      on: { click: () => this.#open(), keydown: (event) => this.#openByKey(event) },
    });
    this.root = el("span", { class: "wb-menu-place" }, this.button, this.list);
  }

  close() {
    if (this.list.matches(":popover-open")) this.list.hidePopover();
  }

  #open() {
    if (this.list.matches(":popover-open")) return this.close();
    this.list.replaceChildren(...this.entries.map((entry) => this.#item(entry)));
    this.list.showPopover();
    const button = this.button.getBoundingClientRect();
    const [width, height] = [this.list.offsetWidth, this.list.offsetHeight];
    // In the top layer, over everything: no scrolling cell cuts it off.
    const below = button.bottom + 4 + height <= innerHeight;
    this.list.style.left = `${Math.max(4, Math.min(innerWidth - width - 4, button.right - width))}px`;
    this.list.style.top = `${below ? button.bottom + 4 : Math.max(4, button.top - 4 - height)}px`;
    this.list.firstChild.focus();
    return undefined;
  }

  #openByKey(event) {
    if (!(event.key in MOVES)) return;
    event.preventDefault();
    this.#open();
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

  #key(event) {
    const items = [...this.list.children];
    const at = items.indexOf(document.activeElement);
    const ends = { Home: 0, End: items.length - 1 };
    const to = event.key in ends ? ends[event.key] : event.key in MOVES ? (at + MOVES[event.key] + items.length) % items.length : null;
    if (event.key === "Tab") this.close();
    if (event.key === "Escape") {
      this.close();
      this.button.focus();
      event.preventDefault();
    }
    event.stopPropagation();
    if (to === null) return;
    event.preventDefault();
    items[to].focus();
  }

  #toggled(event) {
    this.button.setAttribute("aria-expanded", String(event.newState === "open"));
  }
}
