// What one table knows, whatever views show it: rows, trash, knobs, and what the kernel said last.

import { pageController } from "../steering.js";

import { Knobs } from "./filter.js";
import { Rows } from "./rows.js";

// A kernel in the middle of a cell answers when the cell has ended.
const PATIENCE_MS = 2500;

/** One per widget; `send(message)` reaches the kernel. */
export class Session {
  constructor(send, later = (work, ms) => setTimeout(work, ms), controller = pageController()) {
    Object.assign(this, { send, later, controller });
    this.rows = new Rows();
    this.trash = null;
    this.knobs = null;
    this.knobsFor = null;
    this.said = { text: "", error: false };
    this.sheet = null;
    this.request = 0;
    this.answered = 0;
    this.listeners = new Set();
  }

  /** A page mounted: everything, please. */
  hello() {
    this.send({ type: "hello" });
  }

  /** Asks for something; what becomes of it is told in `said`. */
  ask(verb, ids, rest = {}) {
    const request = ++this.request;
    this.send({ type: "do", request, verb, runs: ids, controller: this.controller, ...rest });
    const what = verb === "label" ? "labels" : verb;
    this.note(`${what}: asking`);
    this.later(() => {
      if (this.answered < request && this.request === request) {
        this.note(`${what}: the kernel is busy and will do it when its cell ends`);
      }
    }, PATIENCE_MS);
  }

  /** Says something of the page's own. */
  note(text, error = false) {
    this.said = { text, error };
    this.#changed();
  }

  /** Knobs of all runs, once per set of runs: filters by knob need them. */
  wantKnobs() {
    const runs = this.rows.order.join();
    if (this.knobsFor === runs) return;
    this.knobsFor = runs;
    this.send({ type: "knobs" });
  }

  /** Takes a message of the kernel. */
  hear(message, buffers = []) {
    if (message.type === "rows") {
      // Something was missed, as by a page that slept: ask anew.
      if (!this.rows.take(message)) return this.hello();
    } else if (message.type === "knobs") this.knobs = new Knobs(message);
    else if (message.type === "trash") this.trash = message.rows;
    else if (message.type === "sheet") {
      this.sheet = { ...message, page: buffers[0] ?? null };
    } else if (message.type === "said") {
      this.answered = Math.max(this.answered, message.request ?? 0);
      this.said = message;
    } else return;
    this.#changed();
  }

  closeSheet() {
    this.sheet = null;
    this.#changed();
  }

  #changed() {
    for (const listener of this.listeners) listener();
  }
}
