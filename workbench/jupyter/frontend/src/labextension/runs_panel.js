// The side panel: all runs, those that train first, whatever kernel is there or none; a click watches one. Runs of a
// race, a sweep or a tuning stand under one line, which opens and closes.

import { el, say } from "../dom.js";
import { experimentTitle, FINAL, heldout, loss, partScore, queueText, shareDone } from "../format.js";
import { statesText } from "../runs/states.js";
import { Opened, together } from "./run_list.js";

const NOTHING = "No runs yet. Open the Workbench, pick a preset and press Launch.";
const ABSENT = "The server does not answer for runs. `jupyter server extension enable workbench.jupyter.server` turns that on; then start JupyterLab again.";
const SILENT = "The server does not answer now: is JupyterLab still running? Runs that train go on without it.";

/** What a line says below its name, and in full under the pointer. */
export function factsOf(run) {
  const held = Number.isFinite(run.heldout_loss) ? `, held-out ${heldout(run)}${partScore(run) && ` (${partScore(run)})`}` : "";
  const doing = queueText(run) || (run.status === "starting" && run.message);
  return {
    short: [run.status, ...(doing ? [doing] : [`loss ${loss(run.loss)}`, shareDone(run.progress)])].join(" · "),
    long: [`${run.name} (${run.id})`, `${run.status}${run.message ? `: ${run.message}` : ""}`, `step ${run.step}, loss ${loss(run.loss)}${held}`, run.place && `in ${run.place}`]
      .filter(Boolean)
      .join("\n"),
  };
}

export class RunsView {
  /**
   * @param {RunList} list
   * @param {(run: object) => void} watch
   * @param {() => void} compose opens the Lab
   */
  constructor(list, watch, compose) {
    Object.assign(this, { list, watch });
    this.opened = new Opened();
    this.note = el("p", { class: "wb-dock-note" });
    this.lines = new Lines(el("ul", { class: "wb-dock-runs", "aria-label": "runs" }));
    const open = el("button", { type: "button", class: "wb-dock-open", text: "Open Workbench", on: { click: compose } });
    this.root = el("div", { class: "wb-dock-panel wb-theme" }, el("header", {}, el("h2", { text: "Runs" }), open), this.note, this.lines.root);
    list.listeners.add(() => this.draw());
    this.draw();
  }

  draw() {
    const { runs, heard } = this.list;
    say(this.note, heard === false ? (this.list.answered ? SILENT : ABSENT) : heard && !runs.length ? NOTHING : "");
    this.note.hidden = !this.note.textContent;
    this.lines.show(together(runs), (line) => (line.run ? this.#run() : this.#group(line.key)));
  }

  #run() {
    let shown = null;
    const title = el("span", { class: "wb-dock-name" });
    const facts = el("span", { class: "wb-dock-facts" });
    const bar = el("span", { class: "wb-dock-share", "aria-hidden": "true" });
    const button = el("button", { type: "button", on: { click: () => this.watch(shown) } }, title, facts, bar);
    const root = el("li", {}, button);
    const show = ({ run }) => {
      shown = run;
      const { short, long } = factsOf(run);
      say(title, run.name);
      say(facts, short);
      button.title = `${long}\n\nClick to watch it.`;
      root.dataset.status = run.status;
      root.classList.toggle("wb-dock-ended", FINAL.includes(run.status));
      bar.style.setProperty("--dock-share", String(run.progress ?? 0));
    };
    return { root, show };
  }

  #group(key) {
    const lines = new Lines(el("ul"));
    const title = el("span", { class: "wb-dock-name wb-dock-together" });
    const facts = el("span", { class: "wb-dock-facts" });
    const open = () => button.getAttribute("aria-expanded") === "true";
    const choose = (wanted) => (this.opened.choose(key, wanted), this.draw());
    const keydown = (event) => {
      if (event.key !== (open() ? "ArrowLeft" : "ArrowRight")) return;
      event.preventDefault();
      choose(!open());
    };
    const button = el("button", { type: "button", on: { click: () => choose(!open()), keydown } }, title, facts);
    const root = el("li", {}, button, lines.root);
    const show = ({ runs }) => {
      const counts = this.list.groups[key] ?? {};
      const unfolded = this.opened.has(key, counts);
      say(title, experimentTitle(runs[0]));
      say(facts, statesText(counts));
      button.setAttribute("aria-expanded", String(unfolded));
      button.title = [title.textContent, facts.textContent, runs[0].place && `in ${runs[0].place}`, `\nClick to ${unfolded ? "hide" : "show"} its runs.`].filter(Boolean).join("\n");
      root.classList.toggle("wb-dock-ended", Object.keys(counts).every((status) => FINAL.includes(status)));
      lines.root.hidden = !unfolded;
      lines.root.setAttribute("aria-label", `runs of ${title.textContent}`);
      lines.show(unfolded ? runs.map((run) => ({ key: run.run, run })) : [], () => this.#run());
    };
    return { root, show };
  }
}

/** The lines of one list, each made once. */
class Lines {
  constructor(root) {
    this.root = root;
    this.known = new Map();
  }

  /** @param {{key: string}[]} lines in their order; @param {(line: object) => {root: Element, show: (line: object) => void}} make */
  show(lines, make) {
    const keys = new Set(lines.map(({ key }) => key));
    for (const [key, { root }] of this.known) if (!keys.has(key) && this.known.delete(key)) root.remove();
    for (const [place, line] of lines.entries()) {
      if (!this.known.has(line.key)) this.known.set(line.key, make(line));
      const { root, show } = this.known.get(line.key);
      show(line);
      // Moved only where it stands wrong: a line that is moved loses the focus.
      if (this.root.children[place] !== root) this.root.insertBefore(root, this.root.children[place] ?? null);
    }
  }
}
