// What panels of curves share: how the picture is drawn, its axis, as curves, as a table and in a saved file.

import { emptyWords } from "./empty.js";
import { Curves } from "../curves.js";
import { Panel } from "../panel.js";
import { curvesSvg } from "../svg.js";
import { AxisMenu } from "./axis_menu.js";
import { eventsOf, extentOf, marksOf, tableOf } from "./pictures.js";

export class CurvesView {
  /** `panel` is Panel's description without the parts added here; `curves` that of Curves. */
  constructor(monitor, { height, caption, tools, ...panel }, curves) {
    this.monitor = monitor;
    this.name = panel.name;
    this.axisMenu = new AxisMenu(panel.title, () => this.kept.axis, (axis) => this.keep({ axis }));
    this.panel = new Panel({
      monitor,
      sized: true,
      several: () => this.lines.some(({ of }) => of !== undefined),
      tools: [...tools, this.axisMenu.root],
      table: () => ({ ...tableOf(this.own ?? this.lines, this.scene.x, this.scene.window), events: eventsOf(this.picture.marks, this.scene.x, this.scene.window) }),
      picture: () => ({ title: caption(), height, body: (w, h, top) => curvesSvg(this.picture, w, h, top) }),
      ...panel,
    });
    this.curves = new Curves(this.panel.plot, { ...curves, name: panel.name, monitor });
  }

  /** What the layout keeps of this plot. */
  get kept() {
    return this.monitor.layout.plot(this.name);
  }

  /** What stands in the plot without any curve: that it was asked for, or `words` as emptyWords has them. */
  nothing(runs, words) {
    const pending = runs.some((run) => this.names.some((name) => !run.series.has(name) && run.others.includes(name)));
    return pending ? "Asking for it." : emptyWords(runs, words);
  }

  /** Keep a choice, and draw by it. */
  keep(changes) {
    this.monitor.layout.setPlot(this.name, changes);
    this.monitor.redraw(true);
  }

  /** Draw `this.lines`: `picture` holds the axes, levels, label and what stands in an empty plot; `marked` the runs whose events are marked. */
  show(scene, picture, marked = scene.runs) {
    const { runs, x, theme, window } = scene;
    const left = { ...picture.left, ...this.#axis(picture.left) };
    const marks = marksOf(marked, scene, this.lines);
    // Words over several runs' lines would lie over each other: who cannot point at a line finds them in the table.
    const told = marks.length ? " Show as table, in the menu, also lists the events marked." : "";
    this.picture = { lines: this.lines, x, marks, window, extent: extentOf(runs, x), theme, ...picture, label: picture.label + told, left };
    if (this.panel.asTable) return this.panel.drawTable();
    this.curves.draw(this.picture);
    this.panel.unit(this.curves.titled === false ? left.title : "");
    const { range, outside } = this.curves.drawn;
    return this.axisMenu.tell(range, outside);
  }

  point(x) {
    this.curves.point(x);
  }

  close() {
    this.panel.close();
    this.axisMenu.close();
    this.curves.close();
  }

  /** A plot that begins at zero does so until somebody wants another beginning. */
  #axis({ zero, all }) {
    const { axis } = this.axisMenu;
    return { ...axis, all: all || axis.all, zero: Boolean(zero) && !axis.log };
  }
}
