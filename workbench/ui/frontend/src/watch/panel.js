// The frame of one view: title, legend, its own controls, a menu of what can be taken away, the same data as a table.

import { download, fileName, toPng } from "../download.js";
import { el } from "../dom.js";
import { Menu } from "./menu.js";
import { sheetSvg } from "./svg.js";
import { sampleOf } from "./samples.js";

export class Panel {
  /**
   * @param {object} options
   * @param {string} options.title
   * @param {string} options.name for CSS: wb-panel-<name>
   * @param {object} options.monitor the view that this is a part of
   * @param {Node[]} [options.tools] controls of this view
   * @param {() => {head: string[], rows: string[][], note: string}} [options.table] what "Show as table" shows
   * @param {() => object} [options.figure] what to ask the kernel for
   * @param {() => {title: string, height: number, body: (width: number, height: number, top: number) => string}}
   *   [options.picture] how to draw it as SVG
   * @param {() => string[]} [options.names] scalars of the CSV
   */
  constructor(options) {
    Object.assign(this, options);
    this.legend = el("div", { class: "wb-legend" });
    this.plot = el("div", { class: "wb-plot" });
    this.sheet = el("div", { class: "wb-sheet", hidden: true, tabindex: "0", role: "region", "aria-label": `${this.title}, table` });
    this.heading = el("h3", { text: this.title });
    this.menu = this.table ? new Menu(`${this.title}: more`, this.#entries()) : null;
    this.root = el(
      "section",
      { class: `wb-panel wb-panel-${this.name}`, "aria-label": this.title },
      el("header", {}, this.heading, el("div", { class: "wb-tools" }, ...(this.tools ?? []), this.menu?.root)),
      this.legend,
      this.plot,
      this.sheet,
    );
  }

  get asTable() {
    return !this.sheet.hidden;
  }

  /** @param {{text: string, line?: object, ink?: object, ramp?: string[]}[]} items */
  setLegend(items) {
    const key = JSON.stringify(items);
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.items = items;
    this.legend.replaceChildren(
      ...items.map((item) => el("span", { class: "wb-legend-item" }, sampleOf(item), el("span", { text: item.text }))),
    );
  }

  drawTable() {
    if (!this.asTable) return;
    const { head, rows, note } = this.table();
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

  close() {
    this.menu?.close();
  }

  #entries() {
    const entries = [{ text: () => (this.asTable ? "Show as plot" : "Show as table"), run: () => this.#flip() }];
    if (this.figure) {
      entries.push({
        text: () => "Open as Plotly figure",
        why: () => this.monitor.whyNoFigure(),
        run: () => this.monitor.openFigure(this.figure()),
      });
    }
    if (this.picture) {
      entries.push({ text: () => "Save as PNG", run: () => this.#save("png") }, { text: () => "Save as SVG", run: () => this.#save("svg") });
    }
    if (this.csv) entries.push({ text: () => "Save numbers as CSV", run: () => this.csv() });
    return entries;
  }

  #flip() {
    this.sheet.hidden = !this.sheet.hidden;
    this.plot.hidden = this.asTable;
    this.drawTable();
    (this.asTable ? this.sheet : this.plot.querySelector("[tabindex]"))?.focus();
    this.monitor.redraw(true);
  }

  async #save(kind) {
    const { title, body, height } = this.picture();
    const width = Math.max(640, Math.floor(this.root.clientWidth));
    const { theme, runs, colours } = this.monitor.scene;
    // What the line of each run looks like stands above all plots in the page; here it must stand in the picture.
    const who = runs.length > 1 ? runs.map((run) => ({ text: run.name, line: { stroke: colours.run(run.place), dash: colours.dash(run.place), width: 2.4 } })) : [];
    const sheet = { title: runs.length === 1 ? `${title} · ${runs[0].name}` : title, legend: [...who, ...(this.items ?? [])], width, height, theme };
    const svg = sheetSvg({ ...sheet, body: (top) => body(width, height, top, sheet.theme) });
    const name = fileName([this.title, ...runs.slice(0, 2).map((run) => run.name)], kind);
    const size = /height="([\d.]+)"/.exec(svg);
    download(name, kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await toPng(svg, width, Number(size[1])));
  }
}
