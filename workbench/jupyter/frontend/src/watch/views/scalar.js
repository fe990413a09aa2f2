// Any recorded number over time: the learning rate first, scheduled knobs, gradient norm and other gauges.

import { dropdown } from "../../dom.js";
import { short } from "../../format.js";
import { axisTitle, helpOf, isShare, labelOf } from "../../palette.js";
import { CurvesView } from "./curves_view.js";
import { knows, latest, named, ofRun } from "./pictures.js";

/** Numbers that say something together alone; a run that records them opens on the first pair. */
const TOGETHER = [["precision", "recall"], ["main_accuracy", "always_real"]];
const SECOND = [3, 3];
const keyOf = (names) => names.join("+");
const ELSEWHERE = new Set(["loss", "heldout_loss", "tokens_per_second", "mfu", "flops"]);

export class ScalarView extends CurvesView {
  constructor(monitor) {
    const choice = dropdown("Quantity", (name) => this.keep({ name, axis: undefined }));
    const panel = {
      title: "Schedules and gauges",
      name: "scalar",
      tools: [choice.node],
      figure: () => ({ view: "scalar", name: this.names[0], log: this.picture.left.log }),
      caption: () => this.what,
      height: 320,
      csv: () => monitor.saveCsv(this.quantity, this.names),
    };
    super(monitor, panel, { heights: [170, 380] });
    this.choice = choice;
  }

  /** The scalar that is shown, or several by their key. */
  get quantity() {
    const { name } = this.kept;
    if (typeof name === "string" && !ELSEWHERE.has(name)) return name;
    return this.scene?.runs.some((run) => knows(run, TOGETHER[0][0])) ? keyOf(TOGETHER[0]) : "lr";
  }

  get names() {
    return TOGETHER.find((names) => keyOf(names) === this.quantity) ?? [this.quantity];
  }

  get what() {
    return this.names.map(labelOf).join(", ");
  }

  draw(scene) {
    const { runs } = scene;
    this.scene = scene;
    const { quantity, names } = this;
    this.monitor.want(names);
    this.#offer(runs);
    const [first] = names;
    const format = isShare(first) ? (share) => `${short(100 * share)}%` : short;
    const dashOf = (name, dash) => (name === first ? dash : SECOND);
    this.lines = runs.flatMap((run) =>
      names.flatMap((name) => {
        const line = run.line(name, scene.x);
        const [stroke, dash] = [scene.colours.run(run.place), dashOf(name, scene.colours.dash(run.place))];
        return line ? [{ ...line, ...ofRun(runs, run), name: named(runs, run, labelOf(name)), stroke, dash, format }] : [];
      }),
    );
    const stroke = runs.length === 1 ? scene.colours.run(runs[0].place) : scene.theme.muted;
    this.panel.setLegend(names.map((name) => ({ line: { stroke, width: 2.2, dash: dashOf(name, []) }, text: labelOf(name), help: helpOf(name) })));
    this.show(scene, {
      // A schedule is exact: what looks like a spike in it is meant.
      left: { format, title: names.length > 1 ? "share" : axisTitle(quantity), zero: quantity === "lr", all: isSchedule(quantity) },
      label: `${this.what}. ${runs.map((run) => `${run.name}: ${names.map((name) => format(latest(run, name) ?? NaN)).join(", ")}`).join("; ")}.`,
      nothing: this.nothing(runs, `The ${this.what} will appear here step by step.`),
    });
  }

  #offer(runs) {
    const names = new Set(["lr", ...this.names]);
    for (const run of runs) {
      for (const name of run.series.keys()) names.add(name);
      // Without a kernel nobody could answer for the others.
      if (this.monitor.live) for (const name of run.others) names.add(name);
    }
    const single = [...names].filter((name) => !ELSEWHERE.has(name)).map((name) => [name, labelOf(name)]);
    const together = TOGETHER.filter(([first]) => names.has(first)).map((each) => [keyOf(each), each.map(labelOf).join(", ")]);
    this.choice.set([...together, ...single], this.quantity);
  }
}

/** Knobs of the recipe have a dot in their names. */
function isSchedule(name) {
  return name === "lr" || name === "weight_decay" || name.includes(".");
}
