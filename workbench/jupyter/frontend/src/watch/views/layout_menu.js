// Which plots are open, and arrangements under names.

import { el } from "../../dom.js";
import { icon } from "../icons.js";
import { PLOTS } from "../layout.js";
import { Popover } from "../popover.js";

export class LayoutMenu extends Popover {
  /**
   * @param {import("../layout.js").Layout} layout
   * @param {(whole: boolean) => void} changed `whole`: another one in its place
   */
  constructor(layout, changed) {
    super({ text: "Layout", label: "Layout of the plots" });
    Object.assign(this, { layout, changed });
  }

  content() {
    const { layout } = this;
    const boxes = Object.entries(PLOTS).map(([name, title]) => {
      const open = !layout.now.closed.includes(name);
      // The last one stays: an empty view has nothing to say.
      const last = open && layout.now.closed.length === Object.keys(PLOTS).length - 1;
      const box = el("input", { type: "checkbox", checked: open, disabled: last, "aria-label": `Show the plot ${title}`, on: { change: () => this.#do(() => layout.setOpen(name, box.checked)) } });
      return el("label", {}, box, el("span", { text: title }));
    });
    const name = el("input", { type: "text", class: "wb-value", placeholder: "name", "aria-label": "Name of this layout", maxlength: "40", on: { keydown: (event) => event.key === "Enter" && keep() } });
    const keep = () => {
      if (name.value.trim()) return this.#do(() => layout.save(name.value));
      name.placeholder = "type a name";
      name.setAttribute("aria-invalid", "true");
      name.focus();
    };
    const saved = layout.names.map((each) => this.#saved(each));
    return [
      el("fieldset", {}, el("legend", { text: "Plots" }), ...boxes),
      el("fieldset", {}, el("legend", { text: "Saved layouts" }), ...saved, el("div", { class: "wb-keep" }, name, el("button", { type: "button", text: "Save", "aria-label": "Save this layout under the name", on: { click: keep } }))),
      el("button", { type: "button", text: "Reset", "aria-label": "Reset the layout", title: "All plots, sizes, axes and tables as at first", on: { click: () => this.#do(() => layout.reset(), true) } }),
    ];
  }

  #saved(name) {
    const apply = el("button", { type: "button", text: name, title: name, "aria-label": `Apply the layout ${name}`, on: { click: () => this.#do(() => layout.apply(name), true) } });
    const remove = el("button", { type: "button", class: "wb-tiny", title: "Delete", "aria-label": `Delete the layout ${name}`, on: { click: () => this.#do(() => layout.remove(name)) } }, icon("close"));
    const { layout } = this;
    return el("div", { class: "wb-saved" }, apply, remove);
  }

  #do(change, whole = false) {
    change();
    this.changed(whole);
    this.refresh();
  }
}
