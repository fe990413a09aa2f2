// Which line is which run, for several: each can be hidden and shown again.

import { el } from "../../dom.js";
import { shortName } from "./pictures.js";
import { lineSample } from "../samples.js";

export class RunsLegend {
  constructor(monitor) {
    this.monitor = monitor;
    this.root = el("div", { class: "wb-chips", role: "group", "aria-label": "Runs shown in the plots", hidden: true });
    this.key = "";
  }

  draw({ runs, colours }) {
    this.root.hidden = runs.length < 2;
    const key = JSON.stringify([runs.map((run) => run.id + run.name), colours.dark]);
    if (key !== this.key) {
      this.key = key;
      this.chips = runs.map((run) => this.#chip(run, colours));
      this.root.replaceChildren(...this.chips);
    }
    this.chips?.forEach((chip, i) => chip.setAttribute("aria-pressed", String(!this.monitor.hidden.has(runs[i].place))));
  }

  #chip(run, colours) {
    const sample = lineSample({ stroke: colours.run(run.place), dash: colours.dash(run.place), width: 3 });
    const words = { type: "button", title: `${run.name}: show or hide in all plots`, "aria-pressed": "true" };
    return el("button", { ...words, on: { click: () => this.monitor.toggleRun(run.place) } }, sample, el("span", { text: shortName(run.name) }));
  }
}
