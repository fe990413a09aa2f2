// Any recorded number over time: the learning rate first, scheduled knobs, gradient norm and other gauges.

import { dropdown } from "../../dom.js";
import { short } from "../../format.js";
import { axisTitle, helpOf, isShare, labelOf } from "../../palette.js";
import { CurvesView } from "./curves_view.js";
import { latest, named, ofRun } from "./pictures.js";

const ELSEWHERE = new Set(["loss", "heldout_loss", "tokens_per_second", "mfu", "flops"]);

export class ScalarView extends CurvesView {
  constructor(monitor) {
    const choice = dropdown("Quantity", (name) => this.keep({ name, axis: undefined }));
    const panel = {
      title: "Schedules and gauges",
      name: "scalar",
      tools: [choice.node],
      figure: () => ({ view: "scalar", name: this.quantity, log: this.picture.left.log }),
      caption: () => this.what,
      height: 320,
      csv: () => monitor.saveCsv(this.quantity, this.names),
    };
    super(monitor, panel, { heights: [170, 380] });
    this.choice = choice;
  }

  /** The scalar that is shown. */
  get quantity() {
    const { name } = this.kept;
    return typeof name === "string" && !ELSEWHERE.has(name) ? name : "lr";
  }

  get names() {
    return [this.quantity];
  }

  get what() {
    return labelOf(this.quantity);
  }

  draw(scene) {
    const { runs } = scene;
    this.scene = scene;
    const { quantity } = this;
    this.monitor.want([quantity]);
    this.#offer(runs);
    const format = isShare(quantity) ? (share) => `${short(100 * share)}%` : short;
    this.lines = runs.flatMap((run) => {
      const line = run.line(quantity, scene.x);
      const [stroke, dash] = [scene.colours.run(run.place), scene.colours.dash(run.place)];
      return line ? [{ ...line, ...ofRun(runs, run), name: named(runs, run, this.what), stroke, dash, format }] : [];
    });
    const stroke = runs.length === 1 ? scene.colours.run(runs[0].place) : scene.theme.muted;
    this.panel.setLegend([{ line: { stroke, width: 2.2 }, text: this.what, help: helpOf(quantity) }]);
    this.show(scene, {
      // A schedule is exact: what looks like a spike in it is meant.
      left: { format, title: axisTitle(quantity), zero: quantity === "lr", all: isSchedule(quantity) },
      label: `${this.what}. ${runs.map((run) => `${run.name}: ${format(latest(run, quantity) ?? NaN)}`).join("; ")}.`,
      nothing: this.nothing(runs, `The ${this.what} will appear here step by step.`),
    });
  }

  #offer(runs) {
    const names = new Set(["lr", this.quantity]);
    for (const run of runs) {
      for (const name of run.series.keys()) names.add(name);
      // Without a kernel nobody could answer for the others.
      if (this.monitor.live) for (const name of run.others) names.add(name);
    }
    const options = [...names].filter((name) => !ELSEWHERE.has(name)).map((name) => [name, labelOf(name)]);
    this.choice.set(options, this.quantity);
  }
}

/** Knobs of the recipe have a dot in their names. */
function isSchedule(name) {
  return name === "lr" || name === "weight_decay" || name.includes(".");
}
