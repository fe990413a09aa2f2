// A button that opens a small box with controls: closed by Escape and by a click elsewhere.

import { el } from "../../dom.js";
import { openBeside } from "../menu.js";

export class Popover {
  /**
   * @param {object} options
   * @param {string} options.text on the button
   * @param {string} options.label what it is about
   * @param {() => Node[]} options.content made anew whenever it opens
   */
  constructor({ text, label, content }) {
    this.content = content;
    const keydown = (event) => {
      // Letters are typed into its boxes, and are no commands of the notebook; Tab moves on as everywhere.
      event.stopPropagation();
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.close();
      this.button.focus();
    };
    this.box = el("div", { class: "wb-menu wb-popover", role: "dialog", "aria-label": label, popover: "auto", on: { keydown, toggle: (event) => this.button.setAttribute("aria-expanded", String(event.newState === "open")) } });
    const attributes = { type: "button", class: "wb-quiet", text, title: label, "aria-label": label, "aria-haspopup": "dialog", "aria-expanded": "false" };
    this.button = el("button", { ...attributes, on: { click: () => this.#open() } });
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

  #open() {
    if (this.box.matches(":popover-open")) return this.close();
    this.box.replaceChildren(...this.content());
    openBeside(this.box, this.button);
    return this.box.querySelector("input, button")?.focus();
  }
}
