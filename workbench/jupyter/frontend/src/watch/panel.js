// The frame of one view: title, legend, its own controls, a menu of what can be taken away, the same data as a table.

import { download, fileName, toPng, whose } from "../download.js";
import { el, say } from "../dom.js";
import { roving } from "../roving.js";
import { separator } from "../separator.js";
import { icon } from "./icons.js";
import { HEIGHT } from "./layout.js";
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
   * @param {() => {head: string[], rows: string[][], note: string, part: boolean, events?: {title: string, head: string[],
   *   rows: string[][]} | null}} [options.table] what "Show as table" shows; `part`: of more that was recorded
   * @param {() => void} [options.csv] saves all of it
   * @param {() => object} [options.figure] what to ask the kernel for
   * @param {() => {title: string, height: number, body: (width: number, height: number, top: number) => string}}
   *   [options.picture] how to draw it as SVG
   * @param {boolean} [options.sized] whether its height can be changed
   * @param {() => boolean} [options.several] whether it draws lines of several runs
   * @param {() => object[]} [options.shows] the runs that it shows, where that is not all of the view
   */
  constructor(options) {
    Object.assign(this, options);
    this.legend = el("div", { class: "wb-legend" });
    this.plot = el("div", { class: "wb-plot" });
    this.note = el("span");
    this.all = el("button", { type: "button", class: "wb-quiet", text: "Save all as CSV", "aria-label": `Save all as CSV: ${this.title}`, title: "All that was recorded, as comma-separated numbers", on: { click: () => this.csv() } });
    this.noteLine = el("p", { class: "wb-sheet-note", hidden: true }, this.note, this.all);
    this.sheet = el("div", { class: "wb-sheet", hidden: true, tabindex: "0", role: "region", "aria-label": `${this.title}, table` });
    this.heading = el("h3", { text: this.title });
    this.unitOf = el("small", { class: "wb-unit" });
    this.menu = this.table ? new Menu(`${this.title}: more`, this.#entries()) : null;
    this.larger = el("button", { type: "button", class: "wb-tiny", on: { click: () => this.#enlarge(!this.large) } });
    this.handle = this.sized ? this.#handle() : null;
    const tools = el("div", { class: "wb-tools", role: "toolbar", "aria-label": `${this.title}, tools` }, ...(this.tools ?? []), this.larger, this.menu?.root);
    this.settleTools = roving(tools, () => [...tools.children].map((one) => (one.matches("button, select") ? one : one.querySelector(":scope > :is(button, select)"))).filter((one) => one && !one.hidden && !one.disabled));
    this.root = el(
      "section",
      { class: `wb-panel wb-panel-${this.name}`, "aria-label": this.title },
      el("header", {}, this.heading, this.unitOf, tools),
      this.legend,
      this.plot,
      this.noteLine,
      this.sheet,
      this.handle,
    );
    // Before whatever else the plot does with it: Escape returns first of all.
    this.root.addEventListener("keydown", (event) => this.#key(event), { capture: true });
    this.#label(false);
  }

  /** Whether this plot has the whole view for itself. */
  get large() {
    return this.monitor.large === this.name;
  }

  /** Show or hide it, as the layout and a plot that is large want it. */
  arrange() {
    const { large, layout } = this.monitor;
    this.root.hidden = large ? large !== this.name : layout.now.closed.includes(this.name);
    this.sheet.hidden = !this.asTable;
    this.noteLine.hidden = !this.asTable || !this.note.textContent;
    this.plot.hidden = this.asTable;
    // With the view for itself a table scrolls by itself, and its title stays.
    this.sheet.classList.toggle("wb-large", this.large);
    this.sheet.style.maxHeight = this.large && this.asTable ? `${this.monitor.heightOf(this.name, this.sheet)}px` : "";
    this.settleTools();
    if (this.handle) this.handle.hidden = Boolean(large) || this.asTable;
    if (this.large !== (this.larger.getAttribute("aria-pressed") === "true")) this.#label(this.large);
  }

  /** The runs that it shows. */
  get runs() {
    return this.shows?.() ?? this.monitor.scene.runs;
  }

  get asTable() {
    return this.monitor.layout.plot(this.name).table === true;
  }

  /** @param {{text: string, help?: string, line?: object, ink?: object, ramp?: string[]}[]} items `help`: under the pointer */
  setLegend(items) {
    this.items = items;
    // A plot that fills the pane has put the table that says so out of sight.
    const all = [...(this.large && this.several?.() ? whoOf(this.runs, this.monitor.scene.colours) : []), ...items];
    const key = JSON.stringify(all);
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.legend.replaceChildren(
      ...all.map((item) => el("span", { class: `wb-legend-item${item.help ? " wb-explained" : ""}`, title: item.help }, sampleOf(item), el("span", { text: item.text }))),
    );
  }

  /** The unit of a plot that has no room for titles at its axes, beside its name; empty where it has. */
  unit(text) {
    say(this.unitOf, text ? `(${text})` : "");
    this.unitOf.hidden = !text;
  }

  drawTable() {
    if (!this.asTable) return;
    const { head, rows, note, part, events } = this.table();
    say(this.note, note);
    this.noteLine.hidden = !note;
    this.all.hidden = !part || !this.csv;
    const told = events ? [tableNode(events.head, events.rows, { class: "wb-words" }, el("caption", { text: events.title }))] : [];
    this.sheet.replaceChildren(tableNode(head, rows), ...told);
  }

  close() {
    this.menu?.close();
  }

  #label(large) {
    this.larger.setAttribute("aria-pressed", String(large));
    this.larger.setAttribute("aria-label", `Enlarge: ${this.title}`);
    this.larger.title = large ? "Back to all plots (Escape)" : "Enlarge (M)";
    this.larger.replaceChildren(icon(large ? "smaller" : "larger"));
  }

  #enlarge(large) {
    this.monitor.enlarge(large ? this.name : null);
    // From the button that was pressed, back to it; from a key, the plot keeps the focus.
    if (!this.root.contains(document.activeElement)) this.larger.focus();
  }

  #key(event) {
    const { target, key } = event;
    const typing = target.matches("input, select, textarea") || target.closest("[popover]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Escape" && this.large) this.#enlarge(false);
    else if (key.toLowerCase() === "m") this.#enlarge(!this.large);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Below the plot: drags its lower edge. */
  #handle() {
    const { layout } = this.monitor;
    const move = (height) => (layout.setHeight(this.name, height), this.monitor.redraw(true));
    const reset = () => (layout.setHeight(this.name, null), this.monitor.redraw(true));
    return separator({
      label: `Height of ${this.title}`,
      vertical: false,
      ...HEIGHT,
      step: 20,
      value: () => this.plot?.clientHeight || HEIGHT.least,
      at: (event) => event.clientY - this.plot.getBoundingClientRect().top,
      move,
      reset,
      class: "wb-border wb-border-height",
    });
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
    this.monitor.layout.setPlot(this.name, { table: !this.asTable });
    this.arrange();
    this.drawTable();
    (this.asTable ? this.sheet : this.plot.querySelector("[tabindex]"))?.focus();
    this.monitor.redraw(true);
  }

  async #save(kind) {
    const { title, body, height } = this.picture();
    const width = Math.max(640, Math.floor(this.root.clientWidth));
    const { theme, colours } = this.monitor.scene;
    const sheet = { ...sheetOf(title, this.runs, this.items ?? [], colours), width, height, theme };
    const svg = sheetSvg({ ...sheet, body: (top) => body(width, height, top, theme) });
    const name = fileName([this.title, ...whose(this.runs.map((run) => run.name))], kind);
    const size = /height="([\d.]+)"/.exec(svg);
    download(name, kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await toPng(svg, width, Number(size[1])));
  }
}

/** What the line of each run looks like, where there are several. */
function whoOf(runs, colours) {
  return runs.length > 1 ? runs.map((run) => ({ text: run.name, line: { stroke: colours.run(run.place), dash: colours.dash(run.place), width: 2.4 } })) : [];
}

/** Title and legend of a saved picture: what the line of each run looks like stands above all plots in the page; here it must stand in the picture. */
export function sheetOf(title, runs, items, colours) {
  return { title: runs.length === 1 ? `${title} · ${runs[0].name}` : title, legend: [...whoOf(runs, colours), ...items] };
}

function tableNode(head, rows, attributes = {}, ...caption) {
  return el(
    "table",
    attributes,
    ...caption,
    el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col", text })))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((text) => el("td", { text }))))),
  );
}
