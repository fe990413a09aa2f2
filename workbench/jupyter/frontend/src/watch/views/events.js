// What happened, newest first.

import { csvOfEvents } from "../csv.js";
import { el, say } from "../../dom.js";
import { whole } from "../../format.js";
import { Panel } from "../panel.js";

// Few enough that the list needs no scroll bar of its own beside that of the pane; the others are one click away.
const FIRST = 12;
const MOST = 60;

/** All that happened, as "Show as table" shows it. */
export function tableOfEvents(events) {
  const several = new Set(events.map(({ name }) => name)).size > 1;
  const rows = events.map(({ name, step, kind, text }) => [whole(step), ...(several ? [name] : []), kind, text]);
  return { head: ["Step", ...(several ? ["Run"] : []), "Kind", "Event"], rows, note: rows.length ? "" : "Nothing has happened yet.", part: false };
}

export class EventsView {
  constructor(monitor) {
    this.monitor = monitor;
    this.told = [];
    this.panel = new Panel({
      title: "Events",
      name: "events",
      monitor,
      table: () => tableOfEvents(this.told),
      csv: () => monitor.saveText("events", csvOfEvents([...this.told].reverse())),
    });
    this.list = el("ol", { class: "wb-events", "aria-label": "Events, newest first" });
    this.more = el("button", { type: "button", class: "wb-quiet", hidden: true, on: { click: () => this.#flip() } });
    this.panel.plot.append(this.list, this.more);
    this.all = false;
    this.key = "";
  }

  draw({ runs, colours }) {
    const all = runs.flatMap((run) => run.events.map((event) => ({ ...event, place: run.place, name: run.name })));
    all.sort((a, b) => (b.time ?? 0) - (a.time ?? 0) || b.step - a.step);
    this.told = all;
    if (this.panel.asTable) return this.panel.drawTable();
    const key = `${all.length} ${all[0]?.time} ${colours.dark} ${this.all} ${runs.map((run) => `${run.id} ${run.place}`)}`;
    if (key === this.key) return undefined;
    this.key = key;
    const items = all.slice(0, this.all ? MOST : FIRST).map((event) => this.#item(event, runs, colours));
    this.list.replaceChildren(...(items.length ? items : [el("li", { class: "wb-empty", text: "Evaluations, checkpoints and changed knobs will be listed here." })]));
    this.more.hidden = all.length <= FIRST;
    return say(this.more, this.all ? "Show the latest only" : `Show ${Math.min(MOST, all.length) - FIRST} earlier`);
  }

  /** It draws no scalars and has no x. */
  get names() {
    return [];
  }

  point() {}

  close() {
    this.panel.close();
  }

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
