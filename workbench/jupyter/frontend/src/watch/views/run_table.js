// Which line is which run, where each stands and what reaches it: a table of one line per run, legend of all plots.

import "./run_table.css";

import { el, say } from "../../dom.js";
import { Question } from "../../question.js";
import { roving } from "../../roving.js";
import { newcomers, scrollFor } from "../../runs/rows.js";
import { endRunsQuestion } from "../../steering.js";
import { wholeRows } from "../pane.js";
import { RunRow } from "./run_row.js";

const HEADS = [
  ["eye", "Shown"],
  ["name", "Run"],
  ["state", "State"],
  ["progress", "Progress"],
  ["loss", "Loss"],
  ["heldout", "Held-out"],
  ["learned", "Learned"],
  ["speed", "Tokens/s"],
  ["time", "Time left"],
  ["buttons", "Actions"],
];

/** Of the table's frame, above and below. */
const BORDERS = 2;

export class RunTable {
  constructor(monitor) {
    this.monitor = monitor;
    this.body = el("tbody");
    const heads = HEADS.map(([name, text]) => el("th", { scope: "col", class: `wb-col-${name}` }, el("span", { text })));
    this.count = heads[1].firstChild;
    this.table = el("table", { "aria-label": "Watched runs" }, el("thead", {}, el("tr", {}, ...heads)), this.body);
    this.question = new Question(() => this.asking.focus());
    this.scroller = el("div", { class: "wb-runs" }, this.table);
    this.root = el("div", { class: "wb-runs-place" }, this.scroller, this.question.node);
    /** What steers the runs: stands beside the curves, not over them. */
    this.steering = el("div", { class: "wb-steering", role: "group", "aria-label": "Steering" });
    this.rows = [];
    this.key = "";
    const near = (button, by) => this.#near(button, by);
    this.settle = roving(this.body, () => [...this.body.querySelectorAll("button")].filter((one) => !one.hidden && !one.disabled), near);
  }

  draw(scene) {
    const key = JSON.stringify([scene.runs.map((run) => [run.id, run.name, run.place]), scene.colours.dark]);
    const before = this.rows.length ? this.rows.map(({ run }) => run.id) : null;
    if (key !== this.key) this.#arrange(scene, key);
    this.rows.forEach((row, i) => row.draw(scene.runs[i], scene));
    this.#size(scene.pane);
    this.#reveal(newcomers(scene.runs.map(({ id }) => id), before));
    this.settle();
    // Some may be out of sight, as the table takes but a part of the pane.
    say(this.count, scene.runs.length > 1 ? `${scene.runs.length} runs` : "Run");
    this.steering.hidden = this.rows.every((row) => row.steer.root.hidden);
    // It has ended meanwhile, or is not watched any more.
    if (this.question.open && (this.asking.run.final || !this.rows.includes(this.asking))) this.question.close(this.question.node.contains(document.activeElement));
  }

  /** Asks before a run (its row) is ended. */
  ask(row) {
    const { name, status } = row.run;
    this.asking = row;
    this.question.ask(endRunsQuestion([{ name, status: status.status }]), () => row.send("stop"));
  }

  /** The panel that steers this run is about to open. */
  makeRoom(row) {
    for (const other of this.rows) if (other !== row) other.steer.makeRoom();
  }

  close() {
    for (const row of this.rows) row.close();
  }

  /** Whether a run that is watched alone says in whole why it has failed. */
  get #explains() {
    return this.rows.length === 1 && !this.rows[0].why.hidden;
  }

  /** At most a fifth of the pane, and no row cut through; one that explains why it has failed takes what it needs. */
  #size(pane) {
    const explains = this.#explains;
    // What a run that begins has to say may take two lines.
    const said = ({ run: { status } }) => (status.status === "starting" ? (status.message?.length ?? 0) : 0);
    const key = `${pane} ${explains} ${this.rows.map(({ why }) => why.hidden)} ${this.rows.map(said)}`;
    if (key === this.sized) return;
    const bottoms = this.rows.map(({ root, why }) => root.offsetTop + root.offsetHeight + why.offsetHeight);
    // Not laid out yet: it is measured when it is.
    if (!bottoms[0]) return;
    this.sized = key;
    this.scroller.style.maxHeight = explains ? "" : `${wholeRows(bottoms, pane / 5 - BORDERS) + BORDERS}px`;
  }

  /** What has just come is seen: a run that was added, and above all why one has failed. */
  #reveal(added) {
    const failed = this.rows.filter(({ why, reasonShown }) => !why.hidden && !reasonShown);
    for (const row of this.rows) row.reasonShown = !row.why.hidden;
    this.scroller.classList.toggle("wb-explains", this.#explains);
    const row = failed.at(-1) ?? this.rows.findLast(({ run }) => added.includes(run.id));
    if (!row) return;
    const head = this.table.tHead.offsetHeight;
    const height = row.root.offsetHeight + row.why.offsetHeight;
    const { scrollTop, clientHeight } = this.scroller;
    this.scroller.scrollTop = scrollFor(row.root.offsetTop - head, height, scrollTop, clientHeight - head);
  }

  /** The button of the run above or below that does the same, or what that run has in its place. */
  #near(button, by) {
    const line = button.closest("tr");
    const lines = this.rows.map((row) => row.root);
    const there = lines[lines.indexOf(line) + by];
    if (!there) return undefined;
    const cell = there.children[[...line.children].indexOf(button.closest("td"))];
    const place = [...button.closest("td").querySelectorAll("button")].indexOf(button);
    const all = [...cell.querySelectorAll("button")];
    return all[Math.min(place, all.length - 1)] ?? there.querySelector("button");
  }

  /** A row that stays is not made anew: somebody may be typing in its panel. */
  #arrange(scene, key) {
    this.key = key;
    const old = new Map(this.rows.map((row) => [row.key, row]));
    this.rows = scene.runs.map((run) => {
      const same = JSON.stringify([run.id, run.name]);
      const row = old.get(same) ?? new RunRow(this.monitor, run, same);
      old.delete(same);
      row.paint(run.place, scene.colours);
      return row;
    });
    for (const row of old.values()) row.close();
    const focused = document.activeElement;
    const held = this.body.contains(focused) || this.steering.contains(focused);
    this.body.replaceChildren(...this.rows.flatMap((row) => [row.root, row.why]));
    this.steering.replaceChildren(...this.rows.map((row) => row.steer.root));
    // Moving an element takes the focus from what is in it.
    if (held) focused.focus();
  }
}
