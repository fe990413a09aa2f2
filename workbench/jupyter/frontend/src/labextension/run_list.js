// All runs as the server tells them: the list while somebody looks at it, otherwise and less often the counts alone.

const LIST_EVERY_MS = 2000;
const COUNT_EVERY_MS = 5000;
const TRAINING = ["starting", "running", "stopping", "stalled"];

const training = (counts) => TRAINING.reduce((sum, status) => sum + (counts[status] ?? 0), 0);

/** What the status bar says: "2 training, 1 queued". */
export function summaryOf(counts) {
  const others = ["paused", "queued"].filter((status) => counts[status]).map((status) => `${counts[status]} ${status}`);
  return [`${training(counts)} training`, ...others].join(", ");
}

/**
 * The runs in their order, those of one race, sweep or tuning together where the first of them stands.
 * @returns {{key: string, run: object}[] | {key: string, runs: object[]}[]}
 */
export function together(runs) {
  const lines = new Map();
  for (const run of runs) {
    if (!run.group) lines.set(run.run, { key: run.run, run });
    else if (lines.has(run.group)) lines.get(run.group).runs.push(run);
    else lines.set(run.group, { key: run.group, runs: [run] });
  }
  return [...lines.values()];
}

/** Which groups are open: those of which a run trains or has trained since the page came, until somebody chooses. */
export class Opened {
  constructor() {
    this.trained = new Set();
    this.chosen = new Map();
  }

  /** @param {string} group @param {object} counts its runs by status */
  has(group, counts) {
    if (training(counts)) this.trained.add(group);
    return this.chosen.get(group) ?? this.trained.has(group);
  }

  choose(group, open) {
    this.chosen.set(group, open);
  }
}

export class RunList {
  /**
   * @param {Server} server see server.js
   * @param {object} page what it needs of the page, and what tests replace; `reading`: whether the list is in sight
   */
  constructor(server, { reading, hidden = () => document.hidden, now = Date.now }) {
    Object.assign(this, { server, reading, hidden, now });
    this.runs = [];
    this.groups = {};
    this.counts = {};
    // Whether the server answers, null before it was asked; whether it ever has.
    this.heard = null;
    this.answered = false;
    this.listeners = new Set();
    this.askedAt = -Infinity;
    this.askedAll = this.asking = false;
  }

  /** To be called about once a second. */
  async tick() {
    const all = this.reading();
    const due = (all && !this.askedAll) || this.now() - this.askedAt >= (all ? LIST_EVERY_MS : COUNT_EVERY_MS) - 50;
    if (this.asking || this.hidden() || !due) return;
    Object.assign(this, { asking: true, askedAll: all, askedAt: this.now() });
    try {
      const found = await this.server.runs(all ? null : 0);
      this.heard = found !== null;
      this.answered ||= this.heard;
      if (found) this.counts = found.counts;
      if (found && all) Object.assign(this, { runs: found.runs, groups: found.groups });
    } finally {
      this.asking = false;
    }
    for (const listener of this.listeners) listener();
  }
}
