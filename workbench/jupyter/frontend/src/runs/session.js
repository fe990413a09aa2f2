// What one table knows, whatever views show it: rows, trash, knobs, and what was said last.

import { ASKABLE, outlived, Steering } from "../steering.js";

import { Knobs } from "./filter.js";
import { outcomeOf } from "./outcome.js";
import { Rows } from "./rows.js";

// A kernel in the middle of a cell answers when the cell has ended.
const PATIENCE_MS = 2500;

/** One per widget. */
export class Session {
  /**
   * @param {(message: object) => void} send to the kernel
   * @param {object} page
   * @param {import("../server.js").Server} page.server the extension, usable or not
   * @param {() => string} page.place what the server calls the runs folder; empty where it does not know it
   */
  constructor(send, { server, place, controller, later = (work, ms) => setTimeout(work, ms) }) {
    Object.assign(this, { send, later });
    this.rows = new Rows();
    this.trash = null;
    this.knobs = null;
    // What races, sweeps and tunings say so far, by experimentName.
    this.briefs = {};
    this.knobsFor = null;
    this.trashKnobs = null;
    this.said = { text: "", error: false };
    this.sheet = null;
    this.request = 0;
    this.answered = 0;
    this.pending = new Set();
    this.listeners = new Set();
    this.steering = new Steering({ server, send, nameOf: (id) => (place() ? `${place()}/${id}` : undefined), stirred: () => this.#look(), controller, later });
  }

  /** A page mounted: everything, please. */
  hello() {
    this.send({ type: "hello" });
  }

  /** Asks for something; what becomes of it is told in `said`. */
  ask(verb, ids, rest = {}) {
    if (verb in ASKABLE) return this.#steer(verb, ids, rest);
    const request = ++this.request;
    this.send({ type: "do", request, verb, runs: ids, ...rest });
    const what = verb === "label" ? "labels" : verb;
    this.note(`${what}: asked`, false, request);
    this.later(() => {
      if (this.answered < request && this.request === request) {
        this.note(`${what}: the kernel is busy and will do it when its cell ends`, false, request);
      }
    }, PATIENCE_MS);
    return undefined;
  }

  /** Says something of the page's own; `request`: which it is of. */
  note(text, error = false, request = 0) {
    this.said = { text, error, request };
    this.#changed();
  }

  /** Knobs of all runs, once per set of runs, and again when one is steered: what is filtered, grouped or shown by a knob needs them. */
  wantKnobs() {
    const runs = this.rows.all.map(({ id, knobs_written: written }) => `${id} ${written}`).join();
    if (this.knobsFor === runs) return;
    this.knobsFor = runs;
    this.send({ type: "knobs" });
  }

  /** Takes a message of the kernel. */
  hear(message, buffers = []) {
    if (message.type === "rows") {
      // Something was missed, as by a page that slept: ask anew.
      if (!this.rows.take(message)) return this.hello();
      if (this.said.of?.some(([id, status]) => outlived(status, this.rows.byId.get(id)?.status))) this.said = { text: "", error: false };
    } else if (message.type === "knobs") this.knobs = new Knobs(message);
    else if (message.type === "experiments") this.briefs = message.briefs;
    else if (message.type === "trash") {
      this.trash = message.rows;
      this.trashKnobs = new Knobs(message.knobs);
    } else if (message.type === "sheet") {
      this.sheet = { ...message, page: buffers[0] ?? null };
    } else if (message.type === "said") {
      this.answered = Math.max(this.answered, message.request ?? 0);
      // How far something is hides no answer to anything else.
      if (message.going && this.said.text && this.said.request !== message.request) return;
      this.said = message;
    } else if (message.type === "answer") this.steering.heard(message);
    else return;
    this.#changed();
  }

  closeSheet() {
    this.sheet = null;
    this.#changed();
  }

  close() {
    this.steering.close();
  }

  /** Asks runs themselves, as the panel of a watched run does; one that is at it already is not asked again. */
  #steer(verb, ids, { takeOver = false }) {
    const free = ids.filter((id) => !this.pending.has(`${verb} ${id}`));
    if (!free.length) return;
    const asked = free.map((id) => ({ id, name: this.rows.byId.get(id)?.name ?? id, answer: { state: "sent", text: "", error: false } }));
    for (const each of asked) {
      const key = `${verb} ${each.id}`;
      this.pending.add(key);
      const status = { status: this.rows.byId.get(each.id)?.status };
      this.steering.request({ id: each.id, status }, { verb, takeOver }, (answer) => {
        each.answer = answer;
        const outcome = outcomeOf(verb, asked);
        if (["done", "refused", "late"].includes(answer.state)) this.pending.delete(key);
        if (outcome.settled) this.#look();
        this.said = { ...outcome, of: outcome.settled ? free.map((id) => [id, this.#after(id, outcome.text)]) : [] };
        this.#changed();
      });
    }
  }

  /** The status in which words of a run hold; one that was resumed may have to wait for its turn again. */
  #after(id, text) {
    return /queued/.test(text) ? "queued" : this.rows.byId.get(id)?.status;
  }

  /** The kernel is to look at the folders now, not in two seconds. */
  #look() {
    this.send({ type: "look" });
  }

  #changed() {
    for (const listener of this.listeners) listener();
  }
}
