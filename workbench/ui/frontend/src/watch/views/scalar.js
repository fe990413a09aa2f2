// Any recorded number over time: the learning rate first, scheduled knobs, gradient norm and other gauges.

import { dropdown, toggle } from "../../dom.js";
import { short } from "../../format.js";
import { labelOf } from "../../palette.js";
import { CurvesView } from "./curves_view.js";
import { latest, named } from "./pictures.js";

const ELSEWHERE = new Set(["loss", "heldout_loss", "tokens_per_second", "mfu", "flops"]);

export class ScalarView extends CurvesView {
  constructor(monitor) {
    const choice = dropdown("Quantity", (name) => {
      this.name = name;
      monitor.want([name]);
      monitor.redraw(true);
    });
    const log = toggle("Log", "Logarithmic axis", (on) => {
      this.log = on;
      monitor.redraw(true);
    });
    const panel = {
      title: "Schedules and gauges",
      name: "scalar",
      tools: [choice.node, log],
      figure: () => ({ view: "scalar", name: this.name, log: this.log }),
      caption: () => this.what,
      height: 320,
      csv: () => monitor.saveCsv(this.name, this.names),
    };
    super(monitor, panel, { heights: [170, 380] });
    this.name = "lr";
    this.log = false;
    this.choice = choice;
  }

  get names() {
    return [this.name];
  }

  get what() {
    return labelOf(this.name);
  }

  draw(scene) {
    const { runs } = scene;
    this.scene = scene;
    this.#offer(runs);
    this.lines = runs.flatMap((run) => {
      const line = run.line(this.name, scene.x);
      const [stroke, dash] = [scene.colours.run(run.place), scene.colours.dash(run.place)];
      return line ? [{ ...line, name: named(runs, run, this.what), stroke, dash, format: short }] : [];
    });
    const stroke = runs.length === 1 ? scene.colours.run(runs[0].place) : scene.theme.muted;
    this.panel.setLegend([{ line: { stroke, width: 2.2 }, text: this.what }]);
    this.show(scene, {
      left: { format: short, zero: this.name === "lr" && !this.log, log: this.log },
      label: `${this.what}. ${runs.map((run) => `${run.name}: ${short(latest(run, this.name))}`).join("; ")}.`,
    });
  }

  #offer(runs) {
    const names = new Set(["lr", this.name]);
    for (const run of runs) {
      for (const name of run.series.keys()) names.add(name);
      // Without a kernel nobody could answer for the others.
      if (this.monitor.live) for (const name of run.others) names.add(name);
    }
    const options = [...names].filter((name) => !ELSEWHERE.has(name)).map((name) => [name, labelOf(name)]);
    this.choice.set(options, this.name);
  }
}
