// Loss: training (raw and smoothed), held-out points, and the baselines: losses of predictors without a model.

import { MAIN_RIGHT } from "../curves.js";
import { dropdown } from "../../dom.js";
import { heldout, loss } from "../../format.js";
import { axisTitle, faded, faint, helpOf, labelOf, LEARNED_BRIEFLY, SMOOTHING } from "../../palette.js";
import { CurvesView } from "./curves_view.js";
import { emptyWords } from "./empty.js";
import { latest, levelEntries, levelsOf, named, ofRun, partOfTokens, scoresOf, smoothed } from "./pictures.js";

const NATS = "in nats: minus the natural logarithm of the probability given to the right token";
const WIDTHS = [
  ["0", "no smoothing"],
  [String(SMOOTHING / 3), "smooth lightly"],
  [String(SMOOTHING), "smooth"],
  [String(SMOOTHING * 3), "smooth strongly"],
];

export class LossView extends CurvesView {
  constructor(monitor) {
    const smoothing = dropdown("Smoothing of the training loss", (width) => this.keep({ width }));
    const panel = {
      title: "Loss",
      name: "loss",
      tools: [smoothing.node],
      figure: () => ({ view: "loss", log: this.picture.left.log, smoothing: Number(this.width) }),
      caption: () => "Loss (nats)",
      height: 380,
      csv: () => monitor.saveCsv("loss", this.names),
    };
    super(monitor, panel, { heights: [260, 600], right: MAIN_RIGHT });
    this.smoothing = smoothing;
  }

  /** Share of all steps, as text. */
  get width() {
    const { width } = this.kept;
    return WIDTHS.some(([value]) => value === width) ? width : String(SMOOTHING);
  }

  /** Scalars that are drawn, for questions of detail. */
  get names() {
    return ["loss", "heldout_loss"];
  }

  draw(scene) {
    const { runs } = scene;
    this.scene = scene;
    this.smoothing.set(WIDTHS, this.width);
    this.lines = runs.flatMap((run) => this.#linesOf(run, scene));
    const levels = levelsOf(scene);
    this.#legend(scene, levels);
    const nothing = emptyWords(runs, "The training loss will appear here step by step, held-out scores as rings.");
    this.show(scene, { left: { format: axisLoss, title: axisTitle("loss") }, levels, label: this.#label(runs), nothing });
  }

  #linesOf(run, { runs, x, colours }) {
    const stroke = colours.run(run.place);
    const dash = colours.dash(run.place);
    const lines = [];
    const raw = run.line("loss", x);
    const whose = ofRun(runs, run);
    if (raw) {
      const width = Number(this.width);
      if (width > 0 && raw.x.length > 1) {
        lines.push({ ...raw, ...whose, name: named(runs, run, "train"), stroke: faded(stroke, faint(runs.length, colours.dark)), edge: stroke, width: 1, format: loss, quiet: runs.length > 1 });
        lines.push({ ...raw, ...whose, y: smoothed(raw, width), smooth: true, name: named(runs, run, "train, smoothed"), stroke, dash, width: 2, format: loss });
      } else lines.push({ ...raw, ...whose, name: named(runs, run, "train"), stroke, dash, width: 1.5, format: loss });
    }
    for (const scores of scoresOf(run, x)) {
      lines.push({ ...scores, ...whose, what: "held-out", name: named(runs, run, "held-out"), stroke, dash: [2, 4], width: 1.25, points: true });
    }
    return lines;
  }

  #legend({ runs, theme, colours }, levels) {
    const stroke = runs.length === 1 ? colours.run(runs[0].place) : theme.muted;
    const items = [];
    const alone = partOfTokens(runs);
    const train = alone ? "train, all parts of the loss with their weights" : "train";
    const parts = alone ? `; the ${labelOf(alone)}, which word frequencies stand beside, is among the gauges` : "";
    if (this.width !== "0") items.push({ line: { stroke, width: 1 }, text: `${train}, as measured` });
    items.push({ line: { stroke, width: 2.2 }, text: this.width === "0" ? train : "train, smoothed", help: `${helpOf("loss")}, ${NATS}${parts}` });
    const scores = new Set(runs.map(({ status }) => status.score ?? "held-out"));
    items.push({ line: { stroke, ring: true }, text: `${[...scores].join(" or ")}, ~ before the end, on a part of a large set`, help: `${helpOf("heldout_loss")}, ${NATS}` });
    if (this.lines.some(({ whole }) => whole)) items.push({ line: { stroke, ring: true, whole: true }, text: "at the end, on all of them" });
    // In the legend, not on the line: that is where the curves end up, and they would cross the words.
    for (const { text, dash, help } of levelEntries(levels)) items.push({ line: { stroke: theme.muted, width: 1.2, dash }, text, help });
    this.panel.setLegend(items);
  }

  #label(runs) {
    const parts = runs.map((run) => {
      const { learned, heldout_loss: score, score: what = "held-out" } = run.status;
      const scored = Number.isFinite(score) ? `, ${what} ${heldout(run.status)}${learned ? `, ${LEARNED_BRIEFLY[learned]}` : ""}` : "";
      return `${run.name}: training ${loss(latest(run, "loss"))}${scored}`;
    });
    return `Loss. ${parts.join("; ")}. Arrow keys read values, plus and minus zoom, Shift and arrows pan, Escape shows all.`;
  }
}

function axisLoss(value) {
  return String(Number(value.toPrecision(4)));
}
