// What happened, newest first.

import { el } from "../../dom.js";
import { whole } from "../../format.js";
import { Panel } from "../panel.js";

// Few enough that the list needs no scroll bar of its own beside that of the pane; the others are one click away.
const FIRST = 12;
const MOST = 60;

export class EventsView {
  constructor(monitor) {
    this.monitor = monitor;
    this.panel = new Panel({ title: "Events", name: "events", monitor });
    this.list = el("ol", { class: "wb-events", "aria-label": "Events, newest first" });
    this.more = el("button", { type: "button", class: "wb-quiet", hidden: true, on: { click: () => this.#flip() } });
    this.panel.plot.append(this.list, this.more);
    this.all = false;
    this.key = "";
  }

  draw({ runs, colours }) {
    const all = runs.flatMap((run) => run.events.map((event) => ({ ...event, place: run.place, name: run.name })));
    all.sort((a, b) => (b.time ?? 0) - (a.time ?? 0) || b.step - a.step);
    const key = `${all.length} ${all[0]?.time} ${colours.dark} ${this.all} ${runs.map((run) => `${run.id} ${run.place}`)}`;
    if (key === this.key) return;
    this.key = key;
    const items = all.slice(0, this.all ? MOST : FIRST).map((event) => this.#item(event, runs, colours));
    this.list.replaceChildren(...(items.length ? items : [el("li", { class: "wb-empty", text: "Evaluations, checkpoints and changed knobs will be listed here." })]));
    this.more.hidden = all.length <= FIRST;
    this.more.textContent = this.all ? "Show the latest only" : `Show ${Math.min(MOST, all.length) - FIRST} earlier`;
  }

  /** It draws no scalars and has no x. */
  get names() {
    return [];
  }

  point() {}

  close() {}

  #flip() {
    this.all = !this.all;
    this.monitor.redraw(true);
  }

  #item(event, runs, colours) {
    const dot = runs.length > 1 ? el("span", { class: "wb-dot", title: event.name }) : null;
    if (dot) dot.style.backgroundColor = colours.run(event.place);
    return el(
      "li",
      { class: ["warning", "error"].includes(event.kind) ? `wb-event-${event.kind}` : "" },
      el("span", { class: "wb-event-step", text: whole(event.step), title: `step ${event.step}` }),
      el("span", { class: "wb-event-what" }, dot, el("span", { class: "wb-event-kind", text: event.kind }), " ", el("span", { class: "wb-event-text", text: event.text })),
    );
  }
}
