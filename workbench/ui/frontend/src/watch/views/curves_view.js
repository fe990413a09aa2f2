// What panels of curves share: how the picture is drawn, as curves, as a table and in a saved file.

import { Curves } from "../curves.js";
import { Panel } from "../panel.js";
import { curvesSvg } from "../svg.js";
import { extentOf, marksOf, tableOf } from "./pictures.js";

export class CurvesView {
  /** `panel` is Panel's description without the parts added here; `curves` that of Curves. */
  constructor(monitor, { height, caption, ...panel }, curves) {
    this.monitor = monitor;
    this.panel = new Panel({
      monitor,
      table: () => tableOf(this.own ?? this.lines, this.scene.x, this.scene.window),
      picture: () => ({ title: caption(), height, body: (w, h, top) => curvesSvg(this.picture, w, h, top) }),
      ...panel,
    });
    this.curves = new Curves(this.panel.plot, { ...curves, monitor });
  }

  /** Draw `this.lines`: `picture` holds the axes, levels and label; `marked` the runs whose events are marked. */
  show(scene, picture, marked = scene.runs) {
    const { runs, x, theme, window } = scene;
    this.picture = { lines: this.lines, x, marks: marksOf(marked, scene), window, extent: extentOf(runs, x), theme, ...picture };
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
}
