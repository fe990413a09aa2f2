// Messages of one widget model, shared by all its views.

import { placesOf, watchedRuns } from "./palette.js";
import { baseOf, Relay, Server } from "./server.js";
import { Steering } from "./steering.js";
import { Store } from "./store.js";
import { unpackDetail } from "./wire.js";

const TICK_MS = 1000;
const RELAY_MS = 250;
const WHOLE_WITHIN_MS = 30000;
// More than any run has: everything.
const LAST_STEP = 2 ** 31 - 1;

export class Session {
  constructor(model) {
    this.model = model;
    this.store = new Store();
    this.listeners = new Set();
    this.extra = new Set();
    this.added = [];
    this.whole = new Map();
    this.store.restore(model.get("snapshot"), Date.now());
    this.heard = {
      "msg:custom": (header, buffers) => this.#receive(header, buffers),
      "change:advice": () => this.#tell(),
      "change:places": () => this.#tell(),
      "change:snapshot": () => this.store.restore(model.get("snapshot"), Date.now()) && this.#tell(),
    };
    for (const [event, hear] of Object.entries(this.heard)) model.on(event, hear);
    this.timer = setInterval(() => this.#tick(), TICK_MS);
    this.server = new Server(baseOf(document), { cookies: () => document.cookie });
    this.relay = new Relay(this.store, this.server);
    this.relayTimer = setInterval(() => this.#relay(), RELAY_MS);
    this.steering = new Steering({
      server: this.server,
      send: (message) => this.send(message),
      nameOf: (id) => this.served.find((name) => name.endsWith(`/${id}`)),
      stirred: () => this.stir(),
    });
  }

  /** Names of the runs at the server, and of those that this page has added while the kernel was busy. */
  get served() {
    const known = this.model.get("served") ?? [];
    return [...known, ...this.added.filter((name) => !known.includes(name))];
  }

  /** A run that ended goes on, or there is another: ask everybody. */
  stir() {
    this.store.stirred(Date.now());
    this.ask(true);
  }

  /** Show a fork as well; the kernel learns of it when it can. */
  watch(made) {
    const beside = this.served[0]?.split("/")[0];
    if (beside) this.added.push(`${beside}/${made.run}`);
    this.send({ type: "watch", run: made.run });
    this.stir();
  }

  send(message) {
    try {
      this.model.send(message);
    } catch {
      // Without a kernel there is nobody to tell; the status line says so already.
    }
  }

  /** Ask for everything, unless that is already under way. */
  ask(force = false) {
    if (this.store.askOnce(Date.now()) || force) this.send({ type: "resync", extra: [...this.extra] });
  }

  /** Ask for what a question of detail.js lacks. */
  detail(question) {
    const message = this.store.details.next(question, Date.now());
    if (message) this.send(message);
  }

  /**
   * Everything that was recorded of some scalars, for a file.
   * @returns {Promise<object[] | null>} see unpackDetail, with the run's `id`; null when nobody answers
   */
  async everything(names) {
    // Below zero: no answer to the question of a window, which the store counts upwards. By chance, since answers go to
    // every page of the kernel, and each is to know its own.
    const ask = -1 - Math.floor(Math.random() * 2 ** 40);
    const answer = new Promise((done) => {
      const waiting = setTimeout(() => done(null), WHOLE_WITHIN_MS);
      this.whole.set(ask, (found) => (clearTimeout(waiting), done(found)));
    });
    this.send({ type: "detail", ask, names, spans: this.store.runs.map(() => [0, LAST_STEP]), points: 0 });
    return answer;
  }

  close() {
    clearInterval(this.timer);
    clearInterval(this.relayTimer);
    this.steering.close();
    for (const [event, hear] of Object.entries(this.heard)) this.model.off(event, hear);
    // JupyterLab keeps the model of every closed comm, and what hears it; a long run's numbers must not stay with it.
    this.store = this.relay.store = new Store();
    watchedRuns().tell(this, null);
  }

  /** Gives every run its place, which decides its colour: the kernel's, or the one that it is going to give. */
  place() {
    const { runs } = this.store;
    const places = placesOf(runs.map(({ id }) => id), this.model.get("places") ?? {});
    for (const run of runs) run.place = places[run.id];
    const key = JSON.stringify(places);
    if (key === this.placed) return;
    this.placed = key;
    watchedRuns().tell(this, places);
  }

  async #relay() {
    // A page that nobody sees asks nobody; it catches up when it is shown.
    const news = !document.hidden && (await this.relay.tick(this.served, [...this.extra]));
    if (news && !this.steering.closed) this.#tell();
  }

  #receive(header, buffers) {
    if (header.type === "answer") return this.steering.heard(header), this.#tell();
    if (header.type === "notice") return this.#tell(header);
    if (header.type === "detail" && header.ask < 0) return this.#whole(header, buffers?.[0]);
    const { changed, resync } = this.store.receive(header, buffers?.[0], Date.now());
    if (resync) this.ask(true);
    if (changed) this.#tell();
    return undefined;
  }

  /** By the id of each run: what holds it here may be another by the time that the file is written. */
  #whole(header, block) {
    const done = this.whole.get(header.ask);
    this.whole.delete(header.ask);
    done?.(unpackDetail(header, block).map((update) => ({ ...update, id: this.store.runs[update.i]?.id })));
  }

  #tick() {
    if (!this.store.live || this.store.waiting) this.ask();
    if (!document.hidden) this.steering.tick(this.store.runs);
    this.#tell();
  }

  #tell(notice = null) {
    this.place();
    for (const listener of this.listeners) listener(notice);
  }
}
