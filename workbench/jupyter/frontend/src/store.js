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
    this.live = false;
    this.askedAt = -Infinity;
    this.waiting = false;
    this.heardAt = 0;
    this.kernelAt = -Infinity;
    // How far all runs have been read: both the kernel and the server can go on from here.
    this.cursor = "";
    // The server told the latest.
    this.strayed = false;
    this.stirredUntil = -Infinity;
    this.version = 0;
    this.details = new Details();
  }

  /**
   * Takes a message of the kernel, or an answer of the server.
   * @param {string | null} asked the cursor that the question to the server named; null of the kernel
   * @returns {{changed: boolean, resync: boolean}} resync: ask the kernel for everything, now
   */
  receive(header, block, now, asked = null) {
    const kernel = asked === null;
    this.heardAt = now;
    if (kernel) this.kernelAt = now;
    if (header.type === "detail") return { changed: this.zoomed(header, block), resync: false };
    const fits = header.type === "snapshot" || (header.type === "delta" && this.live && header.since === this.cursor);
    // In the meantime the kernel has spoken: what is new since then, it knows best itself.
    if (!kernel && (!fits || asked !== this.cursor)) return { changed: false, resync: false };
    if (!fits) return { changed: false, resync: this.live && this.#missed(header) && this.askOnce(now) };
    if (header.type === "snapshot") this.#load(header, block, now);
    else this.#append(header, block, now);
    if (kernel && header.type === "snapshot") this.waiting = false;
    this.live = true;
    this.strayed = !kernel;
    return { changed: true, resync: false };
  }

  /** Takes a stretch in detail; true when it answers the last question for one. */
  zoomed(header, block) {
    if (!this.details.answered(header.ask)) return false;
    for (const update of unpackDetail(header, block)) this.runs[update.i]?.detail(update);
    this.version += 1;
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

  /** Whether the kernel has told what we lack; behind the server, it tells nothing new for as long as it is quiet. */
  #missed({ type, cursor }) {
    if (cursor === this.cursor) this.strayed = false;
    return cursor !== this.cursor && (type === "delta" || !this.strayed);
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
