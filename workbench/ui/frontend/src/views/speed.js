// Speed: tokens per second on the left axis, model FLOPs utilisation on the right.

import { Curves } from "../curves.js";
import { lineSample } from "../dom.js";
import { percent, short } from "../format.js";
import { faded } from "../palette.js";
import { Panel } from "../panel.js";
import { smooth } from "../series.js";
import { extentOf, latest, lineOf, marksOf, named, tableOf } from "./pictures.js";

const WIDTH = 0.012; // of all steps, as the loss is smoothed at first

export class SpeedView {
  constructor(monitor) {
    this.panel = new Panel("Speed", "speed", [], () => tableOf(this.lines, this.scene.x));
    this.panel.onFlip = () => monitor.redraw();
    this.curves = new Curves(this.panel.plot, { height: 190, sync: monitor.sync, zoom: monitor.zoom });
  }

  draw(scene) {
    const { runs } = scene;
    this.scene = scene;
    this.lines = runs.flatMap((run, i) => linesOf(run, i, scene));
    const mfu = this.lines.some((line) => line.scale === "right");
    const stroke = runs.length > 1 ? scene.theme.muted : scene.colours.run(0);
    const items = [
      [lineSample({ stroke: faded(stroke, 0.6), width: 1 }), "tokens/s"],
      [lineSample({ stroke, width: 2.2 }), "smoothed"],
    ];
    if (mfu) items.push([lineSample({ stroke, width: 1.2, dash: [2, 3] }), "MFU (right axis)"]);
    this.panel.setLegend(items, `${stroke}${mfu}`);
    if (this.panel.asTable) return this.panel.drawTable();
    this.curves.draw({
      lines: this.lines,
      x: scene.x,
      left: { format: short, zero: true },
      // More headroom than on the left: both follow the step time, and would lie on each other.
      right: mfu ? { format: (share) => `${short(100 * share)}%`, zero: true, headroom: 1.6 } : null,
      marks: marksOf(runs, scene),
      window: scene.window,
      extent: extentOf(runs, scene.x),
      theme: scene.theme,
      label: `Speed. ${runs.map((run) => `${run.name}: ${short(latest(run, "tokens_per_second"))} tokens per second, MFU ${percent(latest(run, "mfu"))}`).join("; ")}.`,
    });
  }

  close() {
    this.curves.close();
  }
}

function linesOf(run, i, { runs, x, colours }) {
  const stroke = colours.run(i);
  const tokens = lineOf(run, "tokens_per_second", { x });
  const mfu = lineOf(run, "mfu", { x });
  const lines = [];
  if (tokens) {
    lines.push({ ...tokens, name: named(runs, run, "tokens/s"), stroke: faded(stroke, 0.32), width: 1, format: short, quiet: runs.length > 1 });
    const y = smoothRate(tokens);
    lines.push({ ...tokens, y, name: named(runs, run, "tokens/s, smoothed"), stroke, dash: colours.dash(i), width: 1.8, format: short });
  }
  if (mfu) {
    lines.push({
      ...mfu,
      y: smoothRate(mfu),
      name: named(runs, run, "MFU"),
      stroke: faded(stroke, 0.8),
      dash: [2, 3],
      width: 1.2,
      scale: "right",
      format: percent,
    });
  }
  return lines;
}

/** Smoothed over time spent, not over rates: a mean of rates would count the slow steps too little. */
function smoothRate({ steps, y }) {
  const width = WIDTH * (steps[steps.length - 1] - steps[0]);
  return smooth(steps, y.map((rate) => 1 / rate), width).map((cost) => 1 / cost);
}
