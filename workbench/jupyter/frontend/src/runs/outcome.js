// What became of a verb that several runs were asked for, and of runs that gave way to others, as one line. Pure.

import { DONE } from "../server.js";
import { answerInWords } from "../steering.js";

// More words than this nobody reads in one line.
const MOST_PARTS = 4;

/**
 * @param {string} verb
 * @param {{id: string, name: string, answer: {state: string, text: string, error: boolean, reason?: string}}[]} asked
 * @returns {{text: string, error: boolean, settled: boolean, take_over: {verb: string, runs: string[]} | null}}
 */
export function outcomeOf(verb, asked) {
  const parts = new Map();
  for (const { name, answer } of asked) {
    const words = answerInWords(verb, answer).replace(`${verb}: `, "");
    parts.set(words, [...(parts.get(words) ?? []), name]);
  }
  const told = [...parts].map(([words, names]) => `${names.length > 3 ? `${names.length} runs` : names.join(", ")}: ${words}`);
  const more = told.length - MOST_PARTS;
  const leased = asked.filter(({ answer }) => answer.reason === "leased").map(({ id }) => id);
  return {
    text: `${verb}: ${told.slice(0, MOST_PARTS).join("; ")}${more > 0 ? `; and ${more} more` : ""}`,
    error: asked.some(({ answer }) => answer.error),
    settled: asked.every(({ answer }) => DONE.includes(answer.state)),
    take_over: leased.length ? { verb, runs: leased } : null,
  };
}

/**
 * What to say of runs that are not drawn any more, since others are; empty of none. As gave_way in workbench/jupyter/runs/runs_table.py.
 * @param {string[]} names
 * @param {number} most runs that are drawn
 */
export function gaveWay(names, most) {
  const [it, its] = names.length === 1 ? ["it", "its"] : ["them", "their"];
  return names.length ? `${names.join(", ")} gave way, ${most} runs at most are drawn: to draw ${it} again, take another away, then press Enter on ${its} row` : "";
}
