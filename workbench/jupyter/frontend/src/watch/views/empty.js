// What stands in a plot without any curve. Pure.

import { queueSentence } from "../../format.js";

/** One line for a plot without any: what went wrong where nothing will come any more, else what will appear. */
export function emptyWords(runs, words) {
  const failed = runs.find((run) => run.final && run.status.error);
  if (runs.length && runs.every((run) => run.final)) return failed ? `Nothing was recorded: ${failed.status.error}` : "Nothing was recorded.";
  if (!runs.length) return "All runs are hidden: show one with the eye in its line.";
  const going = runs.filter((run) => !run.final);
  const first = going.find((run) => run.status.status !== "queued") ?? going[0];
  if (going.every((run) => run.status.status === "queued")) {
    const next = going.reduce((one, other) => ((other.status.queue_position ?? Infinity) < (one.status.queue_position ?? Infinity) ? other : one));
    return `${next.name} is ${queueSentence(next.status)}. ${words}`;
  }
  const now = first.status.status === "starting" ? first.status.message : "";
  // What takes long before the first step, such as a compilation, is what one waits for.
  return now && now !== "starting" ? `Now: ${now}. ${words}` : words;
}
