// The side panel: all runs, those that train first, whatever kernel is there or none; a click watches one.

import { el, say } from "../dom.js";
import { experimentTag, FINAL, heldout, loss, partScore, percent, queueText } from "../format.js";

const NOTHING = "No runs yet. Open the Workbench, pick a preset and press Launch.";
const ABSENT = "The server does not answer for runs. `jupyter server extension enable workbench.server` turns that on; then start JupyterLab again.";
const SILENT = "The server does not answer now: is JupyterLab still running? Runs that train go on without it.";

/** What a line says below its name, and in full under the pointer. */
export function factsOf(run) {
  const held = Number.isFinite(run.heldout_loss) ? `, held-out ${heldout(run)}${partScore(run) && ` (${partScore(run)})`}` : "";
  const doing = queueText(run) || (run.status === "starting" && run.message);
  return {
    short: [run.status, ...(doing ? [doing] : [`loss ${loss(run.loss)}`, percent(run.progress)]), experimentTag(run).replace(":", " ")].filter(Boolean).join(" · "),
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
    this.lines = new Map();
    this.note = el("p", { class: "wb-dock-note" });
    this.rows = el("ul", { class: "wb-dock-runs", "aria-label": "runs" });
    const open = el("button", { type: "button", class: "wb-dock-open", text: "Open Workbench", on: { click: compose } });
    this.root = el("div", { class: "wb-dock-panel wb-theme" }, el("header", {}, el("h2", { text: "Runs" }), open), this.note, this.rows);
    list.listeners.add(() => this.draw());
    this.draw();
  }

  draw() {
    const { runs, heard } = this.list;
    say(this.note, heard === false ? (this.list.answered ? SILENT : ABSENT) : heard && !runs.length ? NOTHING : "");
    this.note.hidden = !this.note.textContent;
    const known = new Set(runs.map(({ run }) => run));
    for (const [name, line] of this.lines) if (!known.has(name) && this.lines.delete(name)) line.root.remove();
    for (const [place, run] of runs.entries()) {
      const line = this.lines.get(run.run) ?? this.#line(run.run);
      line.show(run);
      // Moved only where it stands wrong: a line that is moved loses the focus.
      if (this.rows.children[place] !== line.root) this.rows.insertBefore(line.root, this.rows.children[place] ?? null);
    }
  }

  #line(name) {
    let shown = null;
    const title = el("span", { class: "wb-dock-name" });
    const facts = el("span", { class: "wb-dock-facts" });
    const bar = el("span", { class: "wb-dock-share", "aria-hidden": "true" });
    const button = el("button", { type: "button", on: { click: () => this.watch(shown) } }, title, facts, bar);
    const line = {
      root: el("li", {}, button),
      show: (run) => {
        shown = run;
        const { short, long } = factsOf(run);
        say(title, run.name);
        say(facts, short);
        button.title = `${long}\n\nClick to watch it.`;
        line.root.dataset.status = run.status;
        line.root.classList.toggle("wb-dock-ended", FINAL.includes(run.status));
        bar.style.setProperty("--dock-share", String(run.progress ?? 0));
      },
    };
    this.lines.set(name, line);
    return line;
  }
}
