// Requests of a page to its runs: by the server where it can, since a kernel in a long cell hears nothing, else by the
// kernel; and the lease that keeps two pages from steering against each other. No elements here.

import { duration, FINAL } from "./format.js";
import { DONE } from "./server.js";

const RENEW_MS = 10000;
// Whoever has left the panel open for this long and done nothing lets others in: programs and other tabs of their own.
const IDLE_MS = 60000;
// A kernel says at once that it has asked; one that does not is in a long cell, or gone.
const KERNEL_MS = 4000;
// While a run is carrying something out, the seconds are counted aloud.
const COUNT_MS = 1000;

/** What a run can be asked, and in which states. */
export const ASKABLE = {
  pause: ["starting", "running"],
  resume: ["paused", "stopped", "failed", "lost"],
  // One that has stalled answers when it goes on.
  stop: ["queued", "starting", "running", "stalled", "paused"],
  checkpoint: ["running", "paused"],
  evaluate: ["running", "paused"],
};

/** "evaluate: held-out loss 5.43", "evaluate: evaluating on held-out tokens, about 12 s; 5 s so far". */
export function answerInWords(what, { state, text, seconds }) {
  if (state === "sent") return `${what}: asked`;
  if (state === "asked") return `${what}: asked; the run answers after its present step`;
  // "set optimizer.lr" is answered by "optimizer.lr 0.001 -> 0.002": the name once.
  const told = text && what.startsWith("set ") ? text.replace(`${what.slice(4)} `, "") : text;
  const words = state === "accepted" && seconds >= 1 ? `${told}; ${duration(seconds)} so far` : told || state;
  return words.startsWith(`${what}:`) || state === "waiting" ? words : `${what}: ${words}`;
}

/** Whether what was said of a run in the state `before` is over in the state `now`; on the way to the next state it holds, but that it waits. */
export function outlived(before, now) {
  return now !== before && (before === "queued" || !["starting", "stopping"].includes(now));
}

const several = (names) => (names.length <= 3 ? names.join(", ") : `${names.length} runs`);

/**
 * How to ask whether runs are to be ended; the same words wherever that is.
 * @param {{name: string, status: string}[]} runs
 */
export function endRunsQuestion(runs) {
  const names = runs.map(({ name }) => name);
  if (runs.every(({ status }) => status === "queued")) return cancelQuestion(names);
  const waiting = runs.filter(({ status }) => status === "queued").length;
  const paused = runs.filter(({ status }) => status === "paused").length;
  const kept = names.length === 1 ? "Keep it paused" : paused === names.length ? "Keep them paused" : "Keep them as they are";
  const text = waiting && `Stop ${several(names)}? Those that train save a checkpoint first; ${waiting} that ${waiting === 1 ? "waits has" : "wait have"} nothing to save.`;
  return { ...stopQuestion(names), ...(text && { text }), ...(paused && { no: kept }) };
}

function stopQuestion(names) {
  const one = names.length === 1;
  return { text: `Stop ${several(names)}? ${one ? "It" : "Each"} saves a checkpoint first and can be resumed later.`, yes: one ? "Stop this run" : `Stop ${names.length} runs`, no: "Keep training" };
}

/** Of runs that wait for their turn. */
function cancelQuestion(names) {
  return { text: `Take ${several(names)} out of the queue? ${names.length === 1 ? "It has" : "They have"} not started yet.`, yes: names.length === 1 ? "Cancel this run" : `Cancel ${names.length} runs`, no: "Keep waiting" };
}

/** Words for the lease of a run, empty when nobody holds it. `at`: when the page heard of it. */
export function leaseInWords(lease, mine, at, now) {
  if (!lease) return "";
  const left = Math.max(0, Math.ceil(lease.seconds - (now - at) / 1000));
  if (!left) return "";
  return lease.controller === mine ? "you are steering this run from this page" : `steered by ${lease.name || "somebody else"}, free in ${left} s unless they go on`;
}

/** Whether somebody other than this page holds the lease. */
export function heldByOther(lease, mine, at, now) {
  return Boolean(lease) && lease.controller !== mine && now - at < 1000 * lease.seconds;
}

/** A random name, as the lease needs it. */
export function newController(random = (bytes) => crypto.getRandomValues(bytes)) {
  // Not crypto.randomUUID, which pages without TLS do not have.
  return [...random(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const SENT = { state: "sent", text: "", error: false };
const withError = (said) => (answer) => said({ error: answer.state === "refused", ...answer });

const OF_PAGE = Symbol.for("workbench.controller");

/** The name of this page: one for all its views, which come in bundles of their own. */
export function pageController(page = globalThis) {
  page[OF_PAGE] ??= newController();
  return page[OF_PAGE];
}

/** What one page asks of the runs of one widget. */
export class Steering {
  /**
   * @param {object} page
   * @param {Server} page.server the extension, usable or not
   * @param {(message: object) => void} page.send to the kernel
   * @param {(id: string) => string | undefined} page.nameOf name of a run at the server
   * @param {() => void} page.stirred a run has news again: it was resumed
   */
  constructor({ server, send, nameOf, stirred, controller = pageController(), now = Date.now, later = (call, ms) => setTimeout(call, ms) }) {
    Object.assign(this, { server, send, nameOf, stirred, controller, now, later });
    this.closed = false;
    this.waiting = new Map();
    this.held = new Map();
    this.asked = 0;
  }

  /**
   * Asks a run for something.
   * @param {object} run of the store
   * @param {object} request verb, for `set` and `check` path and value; `hold`: steer the run from now on; `takeOver`
   * @param {(answer: {state: string, text: string, error: boolean, reason?: string, seconds?: number}) => void} said
   *   called as it goes: sent, asked, accepted (again every second, with the seconds since then), and once done, refused
   *   or late
   */
  async request(run, { verb, path, value, hold = false, takeOver = false }, said) {
    const ended = verb === "resume" && FINAL.includes(run.status.status);
    const asked = ended ? { verb: "restart" } : { verb, controller: this.controller, ...(hold && { hold }), ...(takeOver && { take_over: true }) };
    if (path !== undefined) Object.assign(asked, { path, value });
    const tell = this.#counting((answer) => {
      if (hold && DONE.includes(answer.state) && answer.reason !== "leased") this.#holds(run.id);
      said(answer);
    });
    tell(SENT);
    await this.#ask(run, asked, tell);
    if (ended) this.stirred(run.id);
  }

  /** A new run from a checkpoint; the last answer has `made`: its run, name, step and what began afresh. */
  async fork(run, step, edits, said) {
    said(SENT);
    await this.#ask(run, { verb: "fork", edits, ...(step === null ? {} : { step }) }, said);
  }

  /** What a fork would change. Only a kernel knows recipes; without one the answer never comes. */
  tryFork(run, step, edits, said) {
    this.#kernel(run, { verb: "try_fork", edits, ...(step === null ? {} : { step }) }, withError(said));
  }

  /** Steer a run that somebody else steers. */
  async takeOver(run, said) {
    await this.#lease(run, { take_over: true }, (answer) => {
      if (answer.state === "done") this.#holds(run.id);
      said(answer);
    });
  }

  /** Let go of a run: its panel was closed, or the page leaves. */
  release(run, leaving = false) {
    if (this.held.delete(run.id)) this.#lease(run, { verb: "release" }, () => {}, leaving);
  }

  /** Somebody works in the panel of a run. */
  touched(id) {
    if (this.held.has(id)) this.held.get(id).touched = this.now();
  }

  /** Renew what is held; to be called every second or so. `runs`: of the store. */
  tick(runs) {
    for (const [id, held] of this.held) {
      const run = runs.find((each) => each.id === id);
      if (!run || run.final || this.now() - held.touched > IDLE_MS) this.held.delete(id);
      else if (this.now() - held.renewed >= RENEW_MS) {
        held.renewed = this.now();
        // Taken over meanwhile: then it is for the other to steer.
        this.#lease(run, {}, (answer) => answer.error && this.held.delete(id));
      }
    }
  }

  /** An answer of the kernel, perhaps to another page. */
  heard(answer) {
    const said = this.waiting.get(answer.id);
    if (DONE.includes(answer.state)) this.waiting.delete(answer.id);
    said?.(answer);
  }

  /** The page goes: nobody waits for answers any more. */
  close() {
    this.closed = this.server.closed = true;
  }

  /** Passes answers on, and counts the seconds for as long as the run is at it. */
  #counting(said) {
    let present = null;
    const count = (answer, began) => {
      if (answer !== present || this.closed) return;
      said({ ...answer, seconds: (this.now() - began) / 1000 });
      this.later(() => count(answer, began), COUNT_MS);
    };
    return (answer) => {
      present = answer;
      if (answer.state === "accepted") count(answer, this.now());
      else said(answer);
    };
  }

  #holds(id) {
    this.held.set(id, { touched: this.now(), renewed: this.now() });
  }

  #lease(run, more, said, leaving = false) {
    return this.#ask(run, { verb: "lease", controller: this.controller, ...more }, said, leaving);
  }

  /** The server's answer; the kernel's where the server has none, or could not. */
  async #ask(run, request, said, leaving = false) {
    const tell = withError(said);
    const answer = await this.server.steer(this.nameOf(run.id), request, tell, leaving);
    if (answer && answer.state !== "failed") return tell(answer);
    const why = answer ? `the server could not: ${answer.text}; ` : "";
    return new Promise((done) => {
      this.#kernel(run, request, (each) => (tell(each), DONE.includes(each.state) && done()), why);
    });
  }

  #kernel(run, request, said, why = "") {
    const id = `${this.controller}-${(this.asked += 1)}`;
    let heard = false;
    this.waiting.set(id, (answer) => {
      heard = true;
      said(answer);
    });
    this.later(() => heard || said({ state: "waiting", text: `${why}the kernel has not answered; it may be in a long cell`, error: Boolean(why) }), KERNEL_MS);
    this.send({ type: "steer", id, run: run.id, ...request });
  }
}
