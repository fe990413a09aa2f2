// Any recorded number over time: the learning rate first, scheduled knobs, gradient norm, step-time split, memory.

import { Curves } from "../curves.js";
import { dropdown, lineSample } from "../dom.js";
import { short } from "../format.js";
import { Panel } from "../panel.js";
import { extentOf, latest, lineOf, marksOf, named, tableOf } from "./pictures.js";

const ELSEWHERE = new Set(["loss", "heldout_loss", "tokens_per_second", "mfu"]);
const WORDS = {
  lr: "learning rate",
  grad_norm: "gradient norm",
  weight_decay: "weight decay",
  accuracy: "accuracy",
  memory_gib: "memory (GiB)",
  step_ms: "step time (ms)",
  data_ms: "data time (ms)",
  forward_ms: "forward time (ms)",
  backward_ms: "backward time (ms)",
  optimizer_ms: "optimizer time (ms)",
  layers_run: "layers run per micro-batch",
};

export class ScalarView {
  constructor(monitor) {
    this.monitor = monitor;
    this.name = "lr";
    this.choice = dropdown("Quantity", (name) => {
      this.name = name;
      if (monitor.runs.some((run) => !run.series.has(name) && run.others.includes(name))) monitor.want(name);
      monitor.redraw();
    });
    this.panel = new Panel("Schedules and gauges", "scalar", [this.choice.node], () => tableOf(this.lines, this.scene.x));
    this.panel.onFlip = () => monitor.redraw();
    this.curves = new Curves(this.panel.plot, { height: 170, sync: monitor.sync, zoom: monitor.zoom });
  }

  draw(scene) {
    const { runs } = scene;
    this.scene = scene;
    this.#offer(runs);
    const what = WORDS[this.name] ?? this.name;
    this.lines = runs.flatMap((run, i) => {
      const line = lineOf(run, this.name, scene);
      const [stroke, dash] = [scene.colours.run(i), scene.colours.dash(i)];
      return line ? [{ ...line, name: named(runs, run, what), stroke, dash, format: short }] : [];
    });
    const stroke = runs.length > 1 ? scene.theme.muted : scene.colours.run(0);
    this.panel.setLegend([[lineSample({ stroke, width: 2.2 }), what]], `${stroke}${what}`);
    if (this.panel.asTable) return this.panel.drawTable();
    this.curves.draw({
      lines: this.lines,
      x: scene.x,
      left: { format: short, zero: this.name === "lr" },
      marks: marksOf(runs, scene),
      window: scene.window,
      extent: extentOf(runs, scene.x),
      theme: scene.theme,
      label: `${what}. ${runs.map((run) => `${run.name}: ${short(latest(run, this.name))}`).join("; ")}.`,
    });
  }

  close() {
    this.curves.close();
  }

  #offer(runs) {
    const names = new Set(["lr", this.name]);
    for (const run of runs) {
      for (const name of run.series.keys()) names.add(name);
      // Without a kernel nobody could answer for the others.
      if (this.monitor.live) for (const name of run.others) names.add(name);
    }
    const options = [...names].filter((name) => !ELSEWHERE.has(name)).map((name) => [name, WORDS[name] ?? name]);
    this.choice.set(options, this.name);
  }
}
