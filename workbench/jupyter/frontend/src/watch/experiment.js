// What a race, a sweep or a tuning says, above its picture: the kernel tells, this shows; which picture, which point, cancel, close.

import "./experiment.css";

import { bringUp, dropdown, el, say, themeOf, watchTheme, whenThere } from "../dom.js";
import { Question } from "../question.js";
import { bindDots, ringDot } from "./dots.js";
import { endQuestion } from "./end_question.js";

const FIGURE = ".js-plotly-plot";
/** The pane of a Lab; in a cell there is none. */
const PANE = ".lab-watch";
/** Pixels that are not worth another picture. */
const SAME_PX = 16;
/** What a button of a sweep in a cell opens below it. */
const OPENED = ".lab-whole, .wb-monitor, .wb-static-picture, [role='alert']";
/** The numbers of the picture that stands above. */
const NUMBERS = ".lab-experiment-figure + .lab-experiment-table";

/** Lines as paragraphs. Those that stay are left in peace: a screen reader says what is new. */
function write(node, lines) {
  while (node.children.length > lines.length) node.lastChild.remove();
  while (node.children.length < lines.length) node.append(el("p"));
  for (const [at, text] of lines.entries()) say(node.children[at], text);
}

class Controls {
  constructor(model, host) {
    Object.assign(this, { model, host });
    const ask = (message) => model.send(message);
    const button = (verb, text, title) => el("button", { type: "button", text, title, on: { click: () => ask({ do: verb }) } });
    this.title = el("h3", { tabindex: "-1" });
    this.status = el("span", { class: "lab-experiment-status" });
    this.cancel = el("button", { type: "button", text: "Cancel…", on: { click: () => this.question.ask(endQuestion(model.get("shown")), () => ask({ do: "cancel" })) } });
    this.shut = el("button", { type: "button", text: "Close", title: "Back to the curves (Escape)", on: { click: () => this.close() } });
    this.question = new Question(() => (this.cancel.hidden ? this.shut : this.cancel).focus());
    this.report = button("report", "Report", "verdicts, tables and pictures as one page");
    this.head = el("header", {}, this.title, this.status, el("span", { class: "lab-experiment-room" }), this.report, this.cancel, this.shut, this.question.node);
    this.lines = el("div", { class: "lab-experiment-lines", "aria-live": "polite" });
    this.rest = el("div");
    this.more = el("details", { class: "lab-experiment-more" }, el("summary", { text: "More about these numbers" }), this.rest);
    this.figures = dropdown("picture", (figure) => ask({ do: "figure", figure }));
    this.numbers = el("button", { type: "button", text: "As a table", title: "the numbers of this picture", on: { click: () => this.tabulate(!model.get("numbers")) } });
    this.picks = dropdown("point", (pick) => ask({ do: "pick", pick }));
    const watch = el("button", { type: "button", text: "Watch run", title: "its curves", on: { click: () => this.watch() } });
    this.picked = el("span", { class: "lab-experiment-group" }, this.picks.node, watch, el("button", { type: "button", text: "Compose recipe", title: "its recipe in the forms; undo takes it back", on: { click: () => this.compose() } }));
    this.tools = el("div", { class: "lab-experiment-tools" }, el("span", { class: "lab-experiment-group" }, this.figures.node, this.numbers), this.picked);
    this.answer = el("p", { class: "lab-experiment-answer", role: "status" });
    host.classList.add("lab-experiment-controls");
    host.append(this.head, this.lines, this.more, this.tools, this.answer);
    this.heard = () => this.draw();
    model.on(CHANGES, this.heard);
    this.roomed = 0;
    this.endThemes = watchTheme(() => this.look());
    this.bound = new WeakSet();
    this.ring = el("span", { class: "lab-experiment-ring", "aria-hidden": "true", hidden: true });
    this.draw();
    this.endWait = whenThere(() => host.closest(".lab-experiment"), (panel) => this.attach(panel));
  }

  attach(panel) {
    this.panel = panel;
    panel.setAttribute("role", "group");
    this.pressed = (event) => {
      if (event.key !== "Escape" || !this.model.get("whole")) return;
      event.preventDefault();
      event.stopPropagation();
      this.close();
    };
    panel.addEventListener("keydown", this.pressed);
    this.figuresDrawn = new MutationObserver(() => this.bind());
    this.figuresDrawn.observe(panel, { childList: true, subtree: true });
    this.output = panel.closest(".jp-OutputArea-child");
    // What stands above is put anew while the experiment goes on.
    if (this.output) this.figuresDrawn.observe(this.output.parentElement, { childList: true });
    this.bind();
    this.pane = panel.closest(PANE);
    this.resizes = new ResizeObserver(() => this.look());
    for (const node of [this.host, this.pane].filter(Boolean)) this.resizes.observe(node);
    this.look();
    this.draw();
  }

  bind() {
    for (const node of this.panel.querySelectorAll(FIGURE)) {
      if (this.bound.has(node) || !node.on) continue;
      this.bound.add(node);
      bindDots(node, (pick) => {
        this.expect();
        this.model.send({ do: "dot", pick });
      });
      node.append(this.ring);
      node.on("plotly_afterplot", () => this.mark());
      this.mark();
    }
    this.output?.previousElementSibling?.classList.toggle("lab-drawn-below", this.panel.querySelector(FIGURE) !== null);
    const table = this.tabulating && this.panel.querySelector(`${NUMBERS} table`);
    if (!table) return;
    this.tabulating = false;
    // Below the picture it would come out of sight, as if nothing had happened.
    bringUp(table, "start");
  }

  /** Around the dot that the buttons are about. */
  mark() {
    const node = this.panel?.querySelector(FIGURE);
    if (node) ringDot(node, this.ring, this.model.get("pick"));
  }

  compose() {
    this.expect();
    this.model.send({ do: "compose" });
  }

  /** In a cell, what opens does so below the picture, out of sight: it is scrolled to when it is there. */
  expect() {
    const place = this.panel?.nextElementSibling;
    if (this.model.get("whole") || !place) return;
    this.expecting?.disconnect();
    const before = place.querySelector(OPENED);
    this.expecting = new MutationObserver(() => {
      const opened = place.querySelector(OPENED);
      if (!opened || opened === before) return;
      this.expecting.disconnect();
      bringUp(place, "start");
    });
    this.expecting.observe(place, { childList: true, subtree: true });
  }

  /** The numbers of the picture as a table: shown and scrolled to, or taken away. */
  tabulate(on) {
    this.tabulating = on;
    this.model.send({ do: "numbers", on });
  }

  /** The kernel draws the picture: in its colours, no higher than what the words above leave of the pane. */
  look() {
    const { dark } = themeOf(this.host);
    const room = this.room();
    if (dark === this.dark && Math.abs(room - this.roomed) < SAME_PX) return;
    Object.assign(this, { dark, roomed: room });
    this.model.send({ do: "look", dark, room });
  }

  /** Pixels for the picture; 0 where nothing limits it. */
  room() {
    if (!this.pane || !this.pane.clientHeight) return 0;
    const { maxHeight, paddingTop, paddingBottom } = getComputedStyle(this.pane);
    // Where panes stand one below the other, this one is as high as what it shows, up to a limit.
    const height = Number.parseFloat(maxHeight) || this.pane.clientHeight;
    return Math.max(1, Math.floor(height - Number.parseFloat(paddingTop) - Number.parseFloat(paddingBottom) - this.host.offsetHeight));
  }

  draw() {
    const { model } = this;
    const { title = "reading…", status = "", ended = false, lines = [], more = [], figures = [], picks = [], picked = "point", report = false } = model.get("shown");
    const whole = model.get("whole");
    this.head.hidden = this.lines.hidden = !whole;
    this.more.hidden = !whole || !more.length;
    say(this.title, title);
    say(this.status, status);
    this.status.dataset.status = status;
    this.cancel.hidden = ended || !status;
    if (ended) this.question.close(this.question.node.contains(document.activeElement));
    this.panel?.setAttribute("aria-label", title);
    const complaint = model.get("complaint");
    write(this.lines, complaint ? [complaint] : lines);
    write(this.rest, more);
    this.lines.classList.toggle("lab-bad", Boolean(complaint));
    this.tools.hidden = !figures.length;
    this.figures.set(figures, model.get("figure"));
    this.numbers.setAttribute("aria-pressed", String(model.get("numbers")));
    this.report.hidden = !report;
    this.picked.hidden = !picks.length;
    this.picks.node.setAttribute("aria-label", picked);
    this.picks.node.title = PICKED[picked];
    this.picks.set(picks, model.get("pick"));
    this.mark();
    say(this.answer, model.get("answer"));
  }

  watch() {
    this.expect();
    this.model.send({ do: "watch" });
    // In the Lab the curves take its place.
    if (this.model.get("whole")) this.back();
  }

  close() {
    this.model.send({ do: "close" });
    this.back();
  }

  /** To the line of the table that has opened it. */
  back() {
    this.host.closest(".lab-whole")?.querySelector('.lab-runs tbody tr[tabindex="0"]')?.focus();
  }

  end() {
    this.endWait();
    this.model.off(CHANGES, this.heard);
    this.endThemes();
    this.resizes?.disconnect();
    this.figuresDrawn?.disconnect();
    this.expecting?.disconnect();
    this.output?.previousElementSibling?.classList.remove("lab-drawn-below");
    this.panel?.removeEventListener("keydown", this.pressed);
  }
}

const PICKED = {
  point: "a setting that was tried; a click on a dot or a line of a picture picks it, too",
  run: "a run of this race; a click on a seed's dot opens its run, too",
};
const CHANGES = ["shown", "whole", "figure", "numbers", "pick", "answer", "complaint"].map((name) => `change:${name}`).join(" ");

function render({ model, el: host }) {
  const controls = new Controls(model, host);
  return () => controls.end();
}

export default { render };
