// The rows as the kernel tells them: all at first, then what changed. Pure.

/** Rows of one listing, newest first. */
export class Rows {
  constructor() {
    this.byId = new Map();
    this.order = [];
    this.total = 0;
    this.trashed = 0;
    this.seq = -1;
  }

  /**
   * Takes a message `{seq, whole, order, rows, total, trashed}`.
   * @returns {boolean} false when something was missed before it: ask for all
   */
  take({ seq, whole, order, rows, total, trashed }) {
    if (!whole && seq !== this.seq + 1) return false;
    if (whole) this.byId.clear();
    for (const row of rows) this.byId.set(row.id, row);
    // The order comes only when it changed: a thousand ids with every step of one run would be most of the message.
    if (order) {
      this.order = order.filter((id) => this.byId.has(id));
      const present = new Set(this.order);
      for (const id of this.byId.keys()) if (!present.has(id)) this.byId.delete(id);
    }
    Object.assign(this, { seq, total, trashed });
    return true;
  }

  /** All rows, newest first. */
  get all() {
    return this.order.map((id) => this.byId.get(id));
  }

  /** How many runs there are beyond these rows. */
  get hidden() {
    return Math.max(0, this.total - this.order.length);
  }
}

/**
 * Which rows of a long table stand in its window.
 * @returns {{first: number, last: number}} rows first..last-1 are to be drawn; a few more than one sees
 */
export function visible(scrolled, height, rowHeight, count, spare = 8) {
  const top = Math.floor(Math.max(0, scrolled) / rowHeight);
  const seen = Math.ceil(height / rowHeight) + 1;
  const first = Math.max(0, Math.min(top - spare, count - seen - spare));
  return { first, last: Math.min(count, top + seen + spare) };
}

/** Where to scroll so that a row is seen whole, or from its top where it is too high; the present place when it is. */
export function scrollFor(top, rowHeight, scrolled, height) {
  if (top < scrolled || rowHeight > height) return top;
  return Math.max(scrolled, top + rowHeight - height);
}

/** Ids that were not there before; none at first (null), when all are new. */
export function newcomers(ids, before) {
  return before ? ids.filter((id) => !before.includes(id)) : [];
}

/** Ids between two of them, both included, in the order of the table. */
export function between(ids, from, to) {
  const [a, b] = [ids.indexOf(from), ids.indexOf(to)];
  if (b < 0) return [];
  return a < 0 ? [to] : ids.slice(Math.min(a, b), Math.max(a, b) + 1);
}
