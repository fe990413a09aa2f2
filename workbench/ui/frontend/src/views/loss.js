// Loss: training (raw and smoothed), held-out points, and the floors: losses that need no context.

import { Curves, MAIN_RIGHT } from "../curves.js";
import { dropdown, toggle } from "../dom.js";
import { loss } from "../format.js";
import { faded } from "../palette.js";
import { Panel } from "../panel.js";
import { curvesSvg } from "../svg.js";
import { extentOf, latest, levelsOf, marksOf, named, smoothed, tableOf } from "./pictures.js";

const WIDTHS = [
  ["0", "no smoothing"],
  ["0.004", "smooth lightly"],
  ["0.012", "smooth"],
  ["0.04", "smooth strongly"],
];

export class LossView {
  constructor(monitor) {
    this.monitor = monitor;
    this.width = "0.012";
    this.log = false;
    this.smoothing = dropdown("Smoothing of the training loss", (value) => {
      this.width = value;
      monitor.redraw(true);
    });
    this.smoothing.set(WIDTHS, this.width);
    this.logToggle = toggle("Log", "Logarithmic loss axis", (on) => {
      this.log = on;
      monitor.redraw(true);
    });
    this.panel = new Panel({
      title: "Loss",
      name: "loss",
      monitor,
      tools: [this.smoothing.node, this.logToggle],
      table: () => tableOf(this.lines, this.scene.x, this.scene.window),
      figure: () => ({ view: "loss", log: this.log, smoothing: Number(this.width) }),
      picture: () => ({ title: "Loss (nats)", height: 380, body: (w, h, top) => curvesSvg(this.picture, w, h, top) }),
      csv: () => monitor.saveCsv("loss", ["loss", "heldout_loss"]),
    });
    this.curves = new Curves(this.panel.plot, { heights: [260, 600], right: MAIN_RIGHT, monitor });
  }

  /** Scalars that are drawn, for questions of detail. */
  get names() {
    return ["loss", "heldout_loss"];
  }

  draw(scene) {
    const { runs } = scene;
    this.scene = scene;
    this.lines = runs.flatMap((run) => this.#linesOf(run, scene));
    const levels = levelsOf(scene);
    this.#legend(scene, levels);
    this.picture = {
      lines: this.lines,
      x: scene.x,
      left: { format: axisLoss, log: this.log },
      levels,
      marks: marksOf(runs, scene),
      window: scene.window,
      extent: extentOf(runs, scene.x),
      theme: scene.theme,
      label: this.#label(runs),
    };
    if (this.panel.asTable) this.panel.drawTable();
    else this.curves.draw(this.picture);
  }

  point(x) {
    this.curves.point(x);
  }

  close() {
    this.panel.close();
    this.curves.close();
  }

  #linesOf(run, { runs, x, colours }) {
    const stroke = colours.run(run.place);
    const dash = colours.dash(run.place);
    const lines = [];
    const raw = run.line("loss", x);
    if (raw) {
      if (Number(this.width) > 0 && raw.x.length > 1) {
        lines.push({ ...raw, name: named(runs, run, "train"), stroke: faded(stroke, runs.length > 3 ? 0.2 : 0.32), width: 1, format: loss, quiet: runs.length > 1 });
        const y = smoothed(raw, Number(this.width));
        lines.push({ ...raw, y, name: named(runs, run, "train, smoothed"), stroke, dash, width: 2, format: loss });
      } else lines.push({ ...raw, name: named(runs, run, "train"), stroke, dash, width: 1.5, format: loss });
    }
    const heldout = run.line("heldout_loss", x);
    if (heldout) {
      lines.push({ ...heldout, name: named(runs, run, "held-out"), stroke, dash: [2, 4], width: 1.25, points: true, format: loss });
    }
    return lines;
  }

  #legend({ runs, theme, colours }, levels) {
    const stroke = runs.length === 1 ? colours.run(runs[0].place) : theme.muted;
    const items = [];
    if (this.width !== "0") items.push({ line: { stroke, width: 1 }, text: "train, as measured" });
    items.push({ line: { stroke, width: 2.2 }, text: this.width === "0" ? "train" : "train, smoothed" });
    const scores = new Set(runs.map(({ status }) => status.score ?? "held-out"));
    items.push({ line: { stroke, ring: true }, text: [...scores].join(" or ") });
    // In the legend, not on the line: that is where the curves end up, and they would cross the words.
    for (const { text, dash } of levels) items.push({ line: { stroke: theme.muted, width: 1.2, dash }, text });
    this.panel.setLegend(items);
  }

  #label(runs) {
    const parts = runs.map((run) => {
      const heldout = latest(run, "heldout_loss");
      const { learned, score = "held-out" } = run.status;
      const said = heldout === null ? "" : `, ${score} ${loss(heldout)}${learned ? `, learned: ${learned}` : ""}`;
      return `${run.name}: training ${loss(latest(run, "loss"))}${said}`;
    });
    return `Loss. ${parts.join("; ")}. Arrow keys read values, plus and minus zoom, Shift and arrows pan, Escape shows all.`;
  }
}

function axisLoss(value) {
  return String(Number(value.toPrecision(4))).replace("-", "−");
}
