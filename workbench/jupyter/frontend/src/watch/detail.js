// Which stretches are worth asking for in detail, and when: what a page holds of a long run is downsampled. Pure.

/** Enough for one pixel each; as the lowest and highest of every pixel, twice of it. */
const POINTS = 1000;
/** What is asked for beyond each edge, in windows: room to pan before the next question. */
const MARGIN = 0.5;
const PATIENCE_MS = 4000;
// A window that moves is asked for when it rests, or this often while it moves.
const PERIOD_MS = 150;

/**
 * The question for what a window lacks.
 * @param {import("./store.js").Run[]} runs as the page holds them
 * @param {string[]} names scalars that are drawn
 * @param {[number, number] | null} window null: everything, which is held well enough
 * @returns {{spans: ([number, number] | null)[], names: string[], points: number} | null} one span of steps per run
 */
export function lacking(runs, names, window, kind) {
  if (!window) return null;
  const missed = new Set();
  const spans = runs.map((run) => {
    if (!run.clock.has(kind)) return null;
    const [from, to] = run.clock.stepsAt(Float64Array.from(window), kind);
    const lacks = names.filter((name) => run.series.get(name)?.lacks(from, to, POINTS));
    if (!lacks.length || !(to > from)) return null;
    for (const name of lacks) missed.add(name);
    const margin = MARGIN * (to - from);
    return [Math.max(0, Math.floor(from - margin)), Math.ceil(to + margin)];
  });
  if (!missed.size) return null;
  // All that is drawn, not only what lacks: a run holds one stretch in detail, and its curves are to match.
  return { spans, names, points: Math.round(2 * POINTS * (1 + 2 * MARGIN)) };
}

/** The one question for detail that is under way. */
export class Details {
  constructor() {
    this.ask = 0;
    this.key = "";
    this.askedAt = -Infinity;
    this.waiting = false;
  }

  /** The question to be sent now, or null: only one is under way, and none is asked twice. */
  next(question, now) {
    if (!question) return null;
    const key = JSON.stringify(question);
    const quiet = now - this.askedAt;
    if (quiet < PERIOD_MS || (this.waiting && quiet < PATIENCE_MS) || (key === this.key && quiet < PATIENCE_MS)) return null;
    Object.assign(this, { key, askedAt: now, waiting: true, ask: this.ask + 1 });
    return { type: "detail", ask: this.ask, ...question };
  }

  /** Whether an answer is to the last question. */
  answered(ask) {
    if (ask !== this.ask) return false;
    this.waiting = false;
    return true;
  }
}
