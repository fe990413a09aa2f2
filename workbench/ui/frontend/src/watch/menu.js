// A button that opens a menu: arrow keys, Home, End and Escape as everywhere; what cannot be done says why.

import { el } from "../dom.js";

const MOVES = { ArrowDown: 1, ArrowUp: -1 };

/** Shows a popover below a button, or above where there is no room; in the top layer, where no scrolling cell cuts it off. */
export function openBeside(popover, button) {
  popover.showPopover();
  const place = button.getBoundingClientRect();
  const [width, height] = [popover.offsetWidth, popover.offsetHeight];
  const below = place.bottom + 4 + height <= innerHeight;
  popover.style.left = `${Math.max(4, Math.min(innerWidth - width - 4, place.right - width))}px`;
  popover.style.top = `${below ? place.bottom + 4 : Math.max(4, place.top - 4 - height)}px`;
}

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
    openBeside(this.list, this.button);
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
