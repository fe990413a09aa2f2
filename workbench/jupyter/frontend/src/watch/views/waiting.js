// What each process of a run waited for the others: names, lines, and who of them is named.

import { percent, short } from "../../format.js";
import { SMOOTHING } from "../../palette.js";
import { smoothed } from "./pictures.js";

const WAITING = "waiting_ms/";
export const SENDING = ["sent_mib", "waited_ms", "step_ms"];

/** Names of what a run says of each of its processes, by number; none where one trains alone. */
export function waitingNames(run) {
  const names = [...run.series.keys(), ...(run.others ?? [])].filter((name) => name.startsWith(WAITING));
  return [...new Set(names)].sort((a, b) => a.slice(WAITING.length) - b.slice(WAITING.length));
}

/** What each process waited; the one for which all others wait, and the one that waits most, are named. */
export function waitsOf(run, x, colours) {
  const lines = waitingNames(run)
    .map((name, place) => ({ name, place, line: run.line(name, x) }))
    .filter(({ line }) => line)
    .map(({ name, place, line }) => ({ ...line, y: smoothed(line, SMOOTHING), smooth: true, name: `process ${name.slice(WAITING.length)}`, stroke: colours.run(place), dash: colours.dash(place), width: 1.8, format: (ms) => `${short(ms)} ms`, median: medianOf(line.y) }));
  const by = [...lines].sort((a, b) => a.median - b.median);
  return lines.map((line) => {
    const word = lines.length < 2 || by[0].median === by.at(-1).median ? "" : line === by[0] ? ", the slowest" : line === by.at(-1) ? ", the fastest" : "";
    return { ...line, told: `${line.name} waits ${short(line.median)} ms (median)${word}` };
  });
}

/** What each process sends in a step, and how much of the step the first one waits for it; "" before it is known. */
export function sendingOf(run) {
  const [sent, waited, step] = SENDING.map((name) => medianOf(run.line(name, "step")?.y ?? []));
  if (!Number.isFinite(sent + waited)) return "";
  return `medians: each sends ${short(sent)} MiB in a step; the first waits ${short(waited)} ms for it${step > 0 ? `, ${percent(waited / step)} of the step` : ""}`;
}

export function medianOf(values) {
  const sorted = Float64Array.from(values.filter(Number.isFinite)).sort();
  return sorted.length ? sorted[sorted.length >> 1] : NaN;
}
