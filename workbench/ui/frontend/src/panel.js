// The frame of one view: title, legend, its own controls, and the same data as a table.

import { el } from "./dom.js";

export class Panel {
  /**
   * @param {string} title
   * @param {string} name for CSS: wb-panel-<name>
   * @param {Node[]} tools controls of this view
   * @param {() => {head: string[], rows: string[][], note: string}} table what "Table" shows
   */
  constructor(title, name, tools, table) {
    this.makeTable = table;
    this.legend = el("div", { class: "wb-legend" });
    this.plot = el("div", { class: "wb-plot" });
    this.sheet = el("div", { class: "wb-sheet", hidden: true, tabindex: "0", role: "region", "aria-label": `${title}, table` });
    this.toggle = el("button", {
      type: "button",
      class: "wb-quiet",
      text: "Table",
      "aria-pressed": "false",
      title: "Show the numbers as a table",
      on: { click: () => this.#flip() },
    });
    this.root = el(
      "section",
      { class: `wb-panel wb-panel-${name}`, "aria-label": title },
      el(
        "header",
        {},
        el("h3", { text: title }),
        el("div", { class: "wb-tools" }, ...tools, table ? this.toggle : null),
      ),
      this.legend,
      this.plot,
      this.sheet,
    );
  }

  get asTable() {
    return !this.sheet.hidden;
  }

  setLegend(items, key) {
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.legend.replaceChildren(
      ...items.map(([sample, text]) => el("span", { class: "wb-legend-item" }, sample, el("span", { text }))),
    );
  }

  drawTable() {
    if (!this.asTable) return;
    const { head, rows, note } = this.makeTable();
    const notes = note ? [el("p", { text: note })] : [];
    this.sheet.replaceChildren(
      ...notes,
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col", text })))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((text) => el("td", { text }))))),
      ),
    );
  }

  #flip() {
    this.sheet.hidden = !this.sheet.hidden;
    this.plot.hidden = this.asTable;
    this.toggle.setAttribute("aria-pressed", String(this.asTable));
    this.drawTable();
    this.onFlip?.();
  }
}
