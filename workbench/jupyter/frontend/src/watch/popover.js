// A button that opens a small box with controls: closed by Escape and by a click elsewhere.

import { el } from "../dom.js";

export class Popover {
  /**
   * @param {object} options
   * @param {string} options.text on the button
   * @param {string} options.label what it is about; `title`: of the button, where that says more
   * @param {string} [options.role] of the box
   * @param {string} [options.look] classes of the button
   */
  constructor({ text, label, title = label, role = "dialog", look = "" }) {
    const toggle = (event) => this.button.setAttribute("aria-expanded", String(event.newState === "open"));
    this.box = el("div", { class: `wb-menu${role === "dialog" ? " wb-popover" : ""}`, role, "aria-label": label, popover: "auto", on: { keydown: (event) => this.key(event), toggle } });
    const attributes = { type: "button", class: `wb-quiet ${look}`.trim(), text, title, "aria-label": label, "aria-haspopup": role, "aria-expanded": "false" };
    this.button = el("button", { ...attributes, on: { click: () => this.toggle() } });
    this.root = el("span", { class: "wb-menu-place" }, this.button, this.box);
  }

  /** Make the content again, with the focus where it was by its name. */
  refresh() {
    const name = document.activeElement?.getAttribute("aria-label");
    this.box.replaceChildren(...this.content());
    const again = name && [...this.box.querySelectorAll("[aria-label]")].find((node) => node.getAttribute("aria-label") === name);
    (again ?? this.box.querySelector("input, button"))?.focus();
  }

  close() {
    if (this.box.matches(":popover-open")) this.box.hidePopover();
  }

  /** Letters are typed into its boxes, and are no commands of the notebook; Tab moves on as everywhere. */
  key(event) {
    event.stopPropagation();
    if (event.key !== "Escape") return;
    event.preventDefault();
    this.close();
    this.button.focus();
  }

  /** Below the button, or above where there is no room; in the top layer, where no scrolling cell cuts it off. */
  toggle() {
    if (this.box.matches(":popover-open")) return this.close();
    this.box.replaceChildren(...this.content());
    this.box.showPopover();
    const place = this.button.getBoundingClientRect();
    const [width, height] = [this.box.offsetWidth, this.box.offsetHeight];
    const below = place.bottom + 4 + height <= innerHeight;
    this.box.style.left = `${Math.max(4, Math.min(innerWidth - width - 4, place.right - width))}px`;
    this.box.style.top = `${below ? place.bottom + 4 : Math.max(4, place.top - 4 - height)}px`;
    return this.box.querySelector("input, button")?.focus();
  }
}
