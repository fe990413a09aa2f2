// Any recorded number over time: the learning rate first, scheduled knobs, gradient norm and other gauges.

import { Curves } from "../curves.js";
import { dropdown, toggle } from "../dom.js";
import { short } from "../format.js";
import { labelOf } from "../palette.js";
import { Panel } from "../panel.js";
import { curvesSvg } from "../svg.js";
import { extentOf, latest, marksOf, named, tableOf } from "./pictures.js";

const ELSEWHERE = new Set(["loss", "heldout_loss", "tokens_per_second", "mfu", "flops"]);

export class ScalarView {
  constructor(monitor) {
    this.monitor = monitor;
    this.name = "lr";
    this.log = false;
    this.choice = dropdown("Quantity", (name) => {
      this.name = name;
      monitor.want([name]);
      monitor.redraw(true);
    });
    const log = toggle("Log", "Logarithmic axis", (on) => {
      this.log = on;
      monitor.redraw(true);
    });
    this.panel = new Panel({
      title: "Schedules and gauges",
      name: "scalar",
      monitor,
      tools: [this.choice.node, log],
      table: () => tableOf(this.lines, this.scene.x, this.scene.window),
      figure: () => ({ view: "scalar", name: this.name, log: this.log }),
      picture: () => ({ title: this.what, height: 320, body: (w, h, top) => curvesSvg(this.picture, w, h, top) }),
      csv: () => monitor.saveCsv(this.name, [this.name]),
    });
    this.curves = new Curves(this.panel.plot, { heights: [170, 380], monitor });
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
    this.picture = {
      lines: this.lines,
      x: scene.x,
      left: { format: short, zero: this.name === "lr" && !this.log, log: this.log },
      marks: marksOf(runs, scene),
      window: scene.window,
      extent: extentOf(runs, scene.x),
      theme: scene.theme,
      label: `${this.what}. ${runs.map((run) => `${run.name}: ${short(latest(run, this.name))}`).join("; ")}.`,
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
