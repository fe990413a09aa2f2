// All that a page knows of its runs, and the order of messages. Pure: the caller says what time it is.

import { Layers } from "./layers.js";
import { Column, interpolate, Series } from "./series.js";
import { unpack, unseal } from "./wire.js";

export const FINAL = ["finished", "stopped", "failed", "lost"];
const RESYNC_PATIENCE_MS = 4000;
const SILENCE_MS = 12000;
const COMPACT_AT = 24000;
const COMPACT_TO = 6000;

/** One run as the page holds it. */
export class Run {
  constructor(update) {
    this.id = update.id;
    this.name = update.name;
    this.budget = update.budget;
    this.shape = update.shape;
    this.others = update.others ?? [];
    this.clock = { step: new Column(), seconds: new Column(), tokens: new Column() };
    this.series = new Map(update.shape.names.map((name) => [name, new Series()]));
    this.layers = new Layers(update.shape.layers, update.shape.layerNames);
    this.events = [];
    this.status = {};
    this.statusAt = 0;
    this.append(update, 0);
  }

  append(update, now) {
    if (update.clock) for (const key of Object.keys(this.clock)) this.clock[key].append(update.clock[key]);
    for (const [name, { steps, values }] of update.series) {
      const series = this.series.get(name);
      series.append(steps, values);
      if (series.length > COMPACT_AT) series.compact(COMPACT_TO);
    }
    if (update.columns) this.layers.append(update.columns);
    if (update.events) this.events.push(...update.events);
    if (update.status) {
      Object.assign(this.status, update.status);
      if ("silent_seconds" in update.status) this.statusAt = now;
    }
  }

  get final() {
    return FINAL.includes(this.status.status);
  }

  /** x of given steps: "step", "tokens" or "seconds". */
  xOf(steps, kind) {
    if (kind === "step") return steps;
    return interpolate(steps, this.clock.step.view(), this.clock[kind].view());
  }

  /** First and last x, or null before the first record. */
  extent(kind) {
    const column = this.clock[kind];
    return column.length ? [column.data[0], column.last] : null;
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
    this.version = 0;
  }

  /**
   * Takes a message.
   * @returns {{changed: boolean, resync: boolean}} resync: ask the kernel for everything, now
   */
  receive(header, block, now) {
    this.heardAt = now;
    if (header.type === "snapshot") return this.#snapshot(header, block, now);
    if (header.type === "beat") return this.#beat(header, now);
    if (header.type !== "delta" || !this.live || header.seq <= this.seq) return { changed: false, resync: false };
    if (header.seq !== this.seq + 1) return { changed: false, resync: this.askOnce(now) };
    for (const update of unpack(header, block, (i) => this.runs[i].shape)) this.runs[update.i].append(update, now);
    this.seq = header.seq;
    this.version += 1;
    return { changed: true, resync: false };
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
    this.waiting = false;
    this.#load(header, block, now);
    return { changed: true, resync: false };
  }

  #beat(header, now) {
    const missed = this.live && header.seq > this.seq;
    return { changed: false, resync: missed && this.askOnce(now) };
  }

  #load(header, block, now) {
    this.runs = unpack(header, block).map((update) => {
      const run = new Run(update);
      run.statusAt = now;
      return run;
    });
    this.seq = header.seq;
    this.version += 1;
  }
}
