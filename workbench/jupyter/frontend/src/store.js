// All that a page knows of its runs, and the order of messages. Pure: the caller says what time it is.

import { Details } from "./watch/detail.js";
import { FINAL } from "./format.js";
import { Layers } from "./watch/layers.js";
import { Clock, Series } from "./watch/series.js";
import { unpack, unpackDetail, unseal } from "./wire.js";

const RESYNC_PATIENCE_MS = 4000;
const SILENCE_MS = 12000;
// The kernel's thread says something at least every 5 s, and while a run trains mostly ten times a second.
const QUIET_MS = 1000;
// Time for a run to start, and for whoever serves the page to notice.
const STIRRED_MS = 60000;
const COMPACT_AT = 24000;
const COMPACT_TO = 6000;

/** One run as the page holds it. */
export class Run {
  constructor(update) {
    // Decides its colour, also while others are hidden; see Session.place.
    this.place = update.i;
    this.id = update.id;
    this.name = update.name;
    this.budget = update.budget;
    this.shape = update.shape;
    this.others = update.others ?? [];
    this.clock = new Clock();
    this.series = new Map(update.shape.names.map((name) => [name, new Series()]));
    this.layers = new Layers(update.shape.layers, update.shape.layerNames);
    this.events = [];
    this.status = {};
    this.statusAt = 0;
    this.append(update, 0);
  }

  append(update, now) {
    if (update.clock) this.clock.append(update.clock);
    for (const [name, { steps, values, downsampled }] of update.series) {
      const series = this.series.get(name);
      series.append(steps, values);
      if (downsampled) series.coarse = series.steps.last ?? -Infinity;
      if (series.length > COMPACT_AT) series.compact(COMPACT_TO);
    }
    if (update.columns) this.layers.append(update.columns);
    if (update.events) this.events.push(...update.events);
    if (update.status) {
      Object.assign(this.status, update.status);
      if ("silent_seconds" in update.status) this.statusAt = now;
      if ("lease" in update.status) this.leaseAt = now;
    }
  }

  get final() {
    return FINAL.includes(this.status.status);
  }

  /** A stretch in detail takes the place of what was held of it. */
  detail({ clock, series }) {
    this.clock.detail(clock);
    for (const [name, patch] of series) this.series.get(name)?.detail(patch);
  }

  /**
   * A scalar as a line, or null when it was never recorded. Kept until something is added: four views ask for it at
   * every frame while somebody drags.
   * @returns {{x: Float64Array, y: Float64Array, steps: Float64Array} | null}
   */
  line(name, kind) {
    const series = this.series.get(name);
    if (!series?.length || !this.clock.has(kind)) return null;
    const version = `${series.version} ${this.clock.version}`;
    const key = `${name} ${kind}`;
    this.lines ??= new Map();
    const held = this.lines.get(key);
    if (held?.version === version) return held.line;
    const { steps, values } = series.merged();
    const line = { x: this.clock.at(steps, kind), y: values, steps };
    this.lines.set(key, { version, line });
    return line;
  }
}

/** The runs of one widget and the sequence of its messages. */
export class Store {
  constructor() {
    this.runs = [];
    this.seq = -1;
    this.live = false;
    this.askedAt = -Infinity;
    this.waiting = false;
    this.heardAt = 0;
    this.kernelAt = -Infinity;
    // How far all runs have been read: both the kernel and the server can go on from here.
    this.cursor = "";
    // The server has told more than the kernel knows of: its next delta would not fit.
    this.strayed = false;
    this.stirredUntil = -Infinity;
    this.version = 0;
    this.details = new Details();
  }

  /**
   * Takes a message of the kernel.
   * @returns {{changed: boolean, resync: boolean}} resync: ask the kernel for everything, now
   */
  receive(header, block, now) {
    this.heardAt = this.kernelAt = now;
    if (header.type === "detail") return { changed: this.zoomed(header, block), resync: false };
    if (header.type === "snapshot") return this.#snapshot(header, block, now);
    if (header.type === "beat") return this.#beat(header, now);
    if (header.type !== "delta" || !this.live || header.seq <= this.seq) return { changed: false, resync: false };
    if (this.strayed || header.seq !== this.seq + 1) return { changed: false, resync: this.askOnce(now) };
    this.#append(header, block, now);
    this.seq = header.seq;
    return { changed: true, resync: false };
  }

  /** Takes a stretch in detail; true when it answers the last question for one. */
  zoomed(header, block) {
    if (!this.details.answered(header.ask)) return false;
    for (const update of unpackDetail(header, block)) this.runs[update.i]?.detail(update);
    this.version += 1;
    return true;
  }

  /**
   * Takes an answer of the server.
   * @param {string} since the cursor that the question named
   * @returns {boolean} whether anything changed
   */
  relay(header, block, since, now) {
    this.heardAt = now;
    // In the meantime the kernel has spoken: what is new since then, it knows best itself.
    if (header.type === "beat" || since !== this.cursor) return false;
    if (header.type === "snapshot") this.#load(header, block, now);
    else this.#append(header, block, now);
    this.live = this.strayed = true;
    return true;
  }

  /** Whether the kernel leaves us without news of a run that may have some, or without scalars that a plot asks for. */
  needsServer(now, extra = []) {
    const lacks = this.runs.some((run) => extra.some((name) => run.others.includes(name)));
    if (this.live && now > this.stirredUntil && !lacks && this.runs.every((run) => run.final)) return false;
    const unanswered = this.waiting && now - this.askedAt > QUIET_MS;
    return this.strayed || unanswered || now - this.kernelAt > QUIET_MS;
  }

  /** A run that ended goes on, or another is to be watched: there will be news, whatever was known. */
  stirred(now) {
    this.stirredUntil = now + STIRRED_MS;
  }

  /** A saved snapshot, shown until the kernel answers (or for ever, without one). */
  restore(sealed, now) {
    const opened = this.live ? null : unseal(sealed);
    if (!opened) return false;
    this.#load(opened.header, opened.block, now);
    return true;
  }

  /** True when a resync should be asked for: only one is under way, and it is repeated when nothing came. */
  askOnce(now) {
    if (this.waiting && now - this.askedAt < RESYNC_PATIENCE_MS) return false;
    this.waiting = true;
    this.askedAt = now;
    return true;
  }

  /** Time of the last word from the kernel when it should have said something since, else null. */
  silentSince(now) {
    const busy = this.runs.some((run) => !run.final);
    return this.live && busy && now - this.heardAt > SILENCE_MS ? this.heardAt : null;
  }

  #snapshot(header, block, now) {
    // An older one answers a question that a newer one has answered already.
    if (this.live && header.seq < this.seq) return { changed: false, resync: false };
    this.live = true;
    this.waiting = this.strayed = false;
    this.#load(header, block, now);
    this.seq = header.seq;
    return { changed: true, resync: false };
  }

  #beat(header, now) {
    const missed = this.live && header.seq > this.seq;
    return { changed: false, resync: missed && this.askOnce(now) };
  }

  #append(header, block, now) {
    for (const update of unpack(header, block, (i) => this.runs[i].shape)) this.runs[update.i].append(update, now);
    this.cursor = header.cursor ?? "";
    this.version += 1;
  }

  #load(header, block, now) {
    this.runs = unpack(header, block).map((update) => {
      const run = new Run(update);
      run.statusAt = run.leaseAt = now;
      return run;
    });
    this.cursor = header.cursor ?? "";
    this.version += 1;
  }
}
