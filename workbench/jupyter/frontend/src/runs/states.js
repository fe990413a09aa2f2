// How many runs there are in which state, in words. Pure.

// The order in which people look for runs: what goes on first, what went wrong next.
export const STATES = ["stalled", "running", "starting", "stopping", "paused", "queued", "failed", "lost", "stopped", "finished"];

export const many = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** How many runs there are in each state: `{status: count}`. */
export function countsOf(rows) {
  const counts = {};
  for (const { status } of rows) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** The same one by one, most urgent first: ["1 running", "7 finished"]. */
export function countTexts(counts) {
  return STATES.filter((status) => counts[status]).map((status) => `${counts[status]} ${status}`);
}

/** How several runs stand: "8 runs: 1 running, 7 finished"; "8 runs, finished" where all do. */
export function statesText(counts) {
  const told = Object.keys(counts);
  const runs = many(told.reduce((sum, status) => sum + counts[status], 0), "run");
  return told.length === 1 ? `${runs}, ${told[0]}` : `${runs}: ${countTexts(counts).join(", ")}`;
}
