// Loss: training (raw and smoothed), held-out points, and the floors: losses that need no context.

import { MAIN_RIGHT } from "../curves.js";
import { dropdown, toggle } from "../../dom.js";
import { loss } from "../../format.js";
import { faded } from "../../palette.js";
import { CurvesView } from "./curves_view.js";
import { latest, levelsOf, named, smoothed } from "./pictures.js";

const WIDTHS = [
  ["0", "no smoothing"],
  ["0.004", "smooth lightly"],
  ["0.012", "smooth"],
  ["0.04", "smooth strongly"],
];

export class LossView extends CurvesView {
  constructor(monitor) {
    const smoothing = dropdown("Smoothing of the training loss", (value) => {
      this.width = value;
      monitor.redraw(true);
    });
    const logToggle = toggle("Log", "Logarithmic loss axis", (on) => {
      this.log = on;
      monitor.redraw(true);
    });
    const panel = {
      title: "Loss",
      name: "loss",
      tools: [smoothing.node, logToggle],
      figure: () => ({ view: "loss", log: this.log, smoothing: Number(this.width) }),
      caption: () => "Loss (nats)",
      height: 380,
      csv: () => monitor.saveCsv("loss", this.names),
    };
    super(monitor, panel, { heights: [260, 600], right: MAIN_RIGHT });
    this.width = "0.012";
    this.log = false;
    smoothing.set(WIDTHS, this.width);
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
    this.show(scene, { left: { format: axisLoss, log: this.log }, levels, label: this.#label(runs) });
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
      const scored = heldout === null ? "" : `, ${score} ${loss(heldout)}${learned ? `, learned: ${learned}` : ""}`;
      return `${run.name}: training ${loss(latest(run, "loss"))}${scored}`;
    });
    return `Loss. ${parts.join("; ")}. Arrow keys read values, plus and minus zoom, Shift and arrows pan, Escape shows all.`;
  }
}

function axisLoss(value) {
  return String(Number(value.toPrecision(4))).replace("-", "−");
}
