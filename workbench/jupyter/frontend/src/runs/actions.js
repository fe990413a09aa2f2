// What can be asked of runs, in which states, and why not. Pure.

import { FINAL, whyNotResumed } from "../format.js";
import { ASKABLE } from "../steering.js";

/** `states`: those in which a run can be asked, else those of ASKABLE; `least`, `most`: how many runs it takes; `key`: on a row of the table. */
export const ACTIONS = [
  { verb: "watch", title: "Watch", says: "draw the curves of these runs, and of no others", group: -1 },
  { verb: "pause", title: "Pause", says: "hold after the present step, keeping memory", group: 0 },
  { verb: "resume", title: "Resume", says: "go on, or go on from the last checkpoint", group: 0 },
  { verb: "stop", title: "Stop…", says: "end after the present step, with a checkpoint", group: 0, key: "S" },
  { verb: "next", title: "Next", says: "let it train before the others of yours that wait for this machine", states: ["queued"], most: 1, group: 0 },
  { verb: "checkpoint", title: "Checkpoint", says: "save a checkpoint now", group: 1 },
  { verb: "evaluate", title: "Evaluate", says: "measure the held-out loss now", group: 1 },
  { verb: "fork", title: "Fork…", says: "edit the recipe on the left and go on from a checkpoint as a new run", most: 1, group: 2 },
  { verb: "compare", title: "Compare", says: "numbers side by side and the knobs that differ", least: 2, most: 12, group: 2 },
  { verb: "diff", title: "Diff", says: "the knobs that differ between these runs, or from the recipe on the left", most: 12, group: 2 },
  { verb: "report", title: "Report", says: "the pictures and tables of these runs as one page", most: 6, group: 3 },
  { verb: "score", title: "Score…", says: "measure the model on benchmarks, in the background", most: 1, group: 3 },
  { verb: "finetune", title: "Fine-tune…", says: "train its encoder on a task, beside an untrained twin", most: 1, group: 3 },
  { verb: "export", title: "Export…", says: "write the model as a folder that transformers loads", most: 1, group: 3 },
  { verb: "rename", title: "Rename…", says: "give it another name; an empty one brings its recipe's back", most: 1, group: 4, key: "F2" },
  { verb: "tag", title: "Tag…", says: "add and remove tags", group: 4, key: "T" },
  { verb: "delete", title: "Delete…", says: "move to the trash, from which it can come back", states: FINAL, group: 4, key: "Delete" },
];

export const TRASH_ACTIONS = [
  { verb: "restore", title: "Restore", says: "bring back to the list of runs", group: 0 },
  { verb: "empty", title: "Empty trash…", says: "remove all deleted runs for good", least: 0, group: 0 },
];

const GOING = { next: "do not wait for this machine", checkpoint: "are not running", evaluate: "are not running", pause: "are not running", stop: "have ended", resume: "are training or waiting, or have finished", delete: "are training or waiting: stop them first" };
const GOES = { next: "does not wait for this machine", checkpoint: "is not running", evaluate: "is not running", pause: "is not running", stop: "has ended", resume: "is training or waiting, or has finished", delete: "is training or waiting: stop it first" };

/**
 * Which of the selected runs an action would reach.
 * @param {object} action of ACTIONS
 * @param {object[]} rows the selected ones that are seen
 * @param {string[]} partly closed groups of which some runs are selected
 * @param {number} trashed deleted runs
 * @returns {{ids: string[], why: string}} `why` it cannot be done, empty when it can
 */
export function possible(action, rows, partly = [], trashed = 0) {
  const { least = 1, most = Infinity, states = ASKABLE[action.verb] } = action;
  if (action.verb === "empty" && !trashed) return { ids: [], why: "there is nothing in it" };
  if (rows.length < least && partly.length) return { ids: [], why: `unfold the group ${partly[0]}, of which some runs are selected, or select all of it` };
  if (rows.length < least) return { ids: [], why: least > 1 ? `select at least ${least} runs` : "select a run" };
  const able = states ? rows.filter((row) => states.includes(row.status)) : rows;
  const fit = action.verb === "resume" ? able.filter((row) => !whyNotResumed(row)) : able;
  if (able.length && !fit.length) return { ids: [], why: whyNotResumed(able[0]) };
  // A mixed selection is asked as far as it can be.
  if (states && !fit.length) return { ids: [], why: rows.length === 1 ? `it ${GOES[action.verb]}` : `they ${GOING[action.verb]}` };
  if (fit.length > most) return { ids: [], why: most === 1 ? "select one run alone" : `select at most ${most} runs` };
  return { ids: fit.map((row) => row.id), why: "" };
}

/**
 * A selection in words: "3 selected, 2 hidden by the filter".
 * @param {number} selected in all
 * @param {number} filtered of them, those that the filter hides
 * @param {number} folded those in closed groups of which others are not selected
 */
export function selectionText(selected, filtered = 0, folded = 0) {
  if (!selected) return "none selected";
  return [`${selected} selected`, filtered && `${filtered} hidden by the filter`, folded && `${folded} in closed groups`].filter(Boolean).join(", ");
}

/** What an action is called: what has not begun is cancelled, not stopped. */
export function titleOf(action, rows) {
  return action.verb === "stop" && rows.length && rows.every((row) => row.status === "queued") ? "Cancel…" : action.title;
}

/** What of a run is edited in the place of a cell: the text that stands there, what goes with the request. */
export const EDITED = {
  name: { verb: "rename", label: (row) => `name of ${row.name}`, hint: "the recipe's name", text: (row) => row.name, change: (name) => ({ name }) },
  tags: { verb: "tag", label: (row) => `tags of ${row.name}, separated by spaces`, hint: "baseline good", text: (row) => row.tags.join(" "), change: (text, row) => tagsAs(text, row.tags) },
  note: { label: (row) => `note on ${row.name}`, hint: "what you saw", text: (row) => row.notes, change: (notes) => ({ notes }) },
};

/** A few runs by their names, more by their number. */
export function namesOf(rows) {
  return rows.length <= 3 ? rows.map((row) => row.name).join(", ") : `${rows.length} runs`;
}

/**
 * The question before runs are deleted, and which of the selected ones are not, and why.
 * @param {object[]} rows that are deleted
 * @param {object[]} chosen rows that are selected and seen
 * @param {number} unseen selected ones that are not seen
 */
export function deleteQuestion(rows, chosen, unseen) {
  const stay = chosen.length - rows.length;
  const living = stay ? ` ${stay} that ${stay === 1 ? "trains or waits stays: stop it" : "train or wait stay: stop them"} first.` : "";
  return { text: `Move ${namesOf(rows)} to the trash?${living}${unseen ? " Selected runs that are not shown stay." : ""}`, yes: "Move to trash" };
}

/** Tags from what people type, as the command line takes them: `new +another -old`. */
export function tagChanges(text) {
  const words = text.split(/[\s,]+/).filter(Boolean);
  return {
    add: words.filter((word) => !word.startsWith("-")).map((word) => word.replace(/^\+/, "")),
    remove: words.filter((word) => word.startsWith("-")).map((word) => word.slice(1)),
  };
}

/** What must change so that a run has exactly the tags of a text. */
export function tagsAs(text, present) {
  const wanted = tagChanges(text).add;
  return { add: wanted.filter((tag) => !present.includes(tag)), remove: present.filter((tag) => !wanted.includes(tag)) };
}
