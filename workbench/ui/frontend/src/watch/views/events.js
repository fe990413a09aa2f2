// What happened, newest first.

import { el } from "../../dom.js";
import { whole } from "../../format.js";
import { Panel } from "../panel.js";

const MOST = 60;

export class EventsView {
  constructor(monitor) {
    this.panel = new Panel({ title: "Events", name: "events", monitor });
    this.list = el("ol", { class: "wb-events", tabindex: "0", "aria-label": "Events, newest first" });
    this.panel.plot.append(this.list);
    this.key = "";
  }

  draw({ runs, colours }) {
    const all = runs.flatMap((run) => run.events.map((event) => ({ ...event, place: run.place, name: run.name })));
    all.sort((a, b) => (b.time ?? 0) - (a.time ?? 0) || b.step - a.step);
    const key = `${all.length} ${all[0]?.time} ${colours.dark} ${runs.map((run) => run.id)}`;
    if (key === this.key) return;
    this.key = key;
    const items = all.slice(0, MOST).map((event) => {
      const dot = el("span", { class: "wb-dot", title: event.name });
      dot.style.backgroundColor = colours.run(event.place);
      return el(
        "li",
        { class: ["warning", "error"].includes(event.kind) ? `wb-event-${event.kind}` : "" },
        runs.length > 1 ? dot : null,
        el("span", { class: "wb-event-step", text: whole(event.step), title: `step ${event.step}` }),
        el("span", { class: "wb-event-kind", text: event.kind }),
        el("span", { class: "wb-event-text", text: event.text }),
      );
    });
    this.list.replaceChildren(...(items.length ? items : [el("li", { class: "wb-empty", text: "nothing yet" })]));
  }

  /** It draws no scalars and has no x. */
  get names() {
    return [];
  }

  point() {}

  close() {}
}
