// Numbers and states as people read them. Pure.

import { speedSeconds as SPEED_SECONDS } from "./quantities.js";

/** Statuses of a run that nothing of goes on. */
export const FINAL = ["finished", "stopped", "failed", "lost"];

const SUFFIXES = [
  [1e24, "Y"],
  [1e21, "Z"],
  [1e18, "E"],
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Three significant digits with k, M, B: 12,345 -> "12.3k". A minus is that of a keyboard: what is copied from here can be typed. */
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  for (const [size, suffix] of SUFFIXES) {
    if (Math.abs(value) >= size * 0.9995) return trim(value / size) + suffix;
  }
  return trim(value);
}

function trim(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-2) return value.toExponential(1).replace(".0e", "e");
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 4;
  return digits === 4 ? String(Number(value.toPrecision(3))) : stripZeros(value.toFixed(digits));
}

function stripZeros(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A number that somebody has typed or pasted, with the minus of a keyboard, which alone computers read. */
export function plainMinus(text) {
  return text.replaceAll("−", "-");
}

/** A loss: always three decimals, so that columns of numbers do not jump. */
export function loss(value) {
  if (value === null || value === undefined) return "–";
  return Number.isFinite(value) ? value.toFixed(3) : String(value);
}

/** Why a held-out score is marked "~"; empty for one of all held-out tokens. */
export function partScore({ status, heldout_loss: score }) {
  const part = status !== "finished" && Number.isFinite(score);
  return part ? "before the end: on a part of a large held-out set, on all of a small one" : "";
}

/** The held-out score of a run, wherever it stands. */
export function heldout(status) {
  return partScore(status) ? partLoss(status.heldout_loss) : loss(status.heldout_loss);
}

/** A held-out loss before the end: of a large set in part, of a small one whole. */
export function partLoss(value) {
  return `~${loss(value)}`;
}

/** Why resuming a run that has ended early would lead nowhere; empty where it may. */
export function whyNotResumed({ repeats, missing_text: text }) {
  if (repeats) return "it would fail again as it is: choose it as the recipe in the forms, change it and launch that";
  return text ? `the text that it trains on is not there any more: ${text}` : "";
}

/** What kind of experiment a run belongs to, and its name, of what tables call it ("race:mine 20260131-081500"); null where it belongs to none. */
export function experimentParts({ experiment }) {
  const [, noun, name] = /^(\w+):(.*) \S+$/.exec(experiment) ?? [];
  return noun ? { noun, name } : null;
}

/** The same in words: "race mine". */
export function experimentTitle(row) {
  const { noun, name } = experimentParts(row);
  return `${noun} ${name}`;
}

/** Whole numbers with separators: 12345 -> "12,345". */
export function whole(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

/** Which seconds a run's one speed is of, as workbench/telemetry/speed.py has it. */
export function speedSpan({ final }) {
  return final ? "mean" : `last ${SPEED_SECONDS} s`;
}

/** A length of time: "8 s", "3 min 20 s", "2 h 05 min", "3 d 4 h". */
export function duration(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 && s < 600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.round(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** Time of day of a page time in milliseconds: "12:03:11". */
export function clock(milliseconds) {
  const time = new Date(milliseconds);
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
}

/** A share: 0.123 -> "12.3%". */
export function percent(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const value = 100 * share;
  return `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toFixed(value < 10 ? 2 : 1)}%`;
}

/** A share of a budget: in whole percent, rounded down, since 100% is the end; a first percent in hundredths. As share_done of printable.py. */
export function shareDone(progress) {
  if (!Number.isFinite(progress)) return "–";
  // 0.29 is a little less than 29 hundredths.
  const parts = (of) => Math.min(Math.floor(of * progress + 1e-9), progress >= 1 ? of : of - 1);
  return progress > 0 && progress < 0.01 ? `${(parts(10000) / 100).toFixed(2)}%` : `${parts(100)}%`;
}

/** An x value with its unit in words. */
export function xValue(value, kind) {
  if (kind === "seconds") return duration(value);
  if (kind === "flops") return `${short(value)} FLOPs`;
  return kind === "tokens" ? `${short(value)} tokens` : `step ${whole(value)}`;
}

/** Seconds left, from what was spent and the share it bought; null while that would be a guess. */
export function secondsLeft(status) {
  const { seconds, progress } = status;
  if (!(progress > 0.005) || !(seconds > 0) || progress >= 1) return null;
  return (seconds * (1 - progress)) / progress;
}

/** How long a run that has ended trained itself, and what a fork's seconds count elsewhere; the latter empty for any other. */
export function took({ seconds, seconds_before: before = 0 }) {
  const counted = "its steps, tokens and seconds of training count from the beginning of the run that it goes on from";
  return { text: `took ${duration(seconds - before)}`, title: before ? `in its own training; ${counted}: ${seconds.toFixed(1)} s` : "" };
}

/** Where a run stands in its budget: "step 120 of 200", or "step 120, 45% of 90 seconds". */
export function progressText(run) {
  const step = whole(run.status.step ?? 0);
  const { amount, unit } = run.budget ?? {};
  if (unit === "steps") return `${step} / ${whole(amount)} steps`;
  const share = shareDone(run.status.progress ?? 0);
  if (unit === "seconds") return `step ${step} · ${share} of ${duration(amount)}`;
  return unit ? `step ${step} · ${share} of ${short(amount)} ${unit}` : `step ${step}`;
}

/** A turn expected sooner is no matter of seconds: what trains now ends when it ends. As `about` of queue/outlook.py. */
const SOON_SECONDS = 45;

/** Where a run stands in the queue of its machine: "2nd, in 5 min", "2nd in line" where nobody can tell; empty for one that does not wait. */
export function queueText({ queue_position: position, expected_start_seconds: seconds }) {
  if (!position) return "";
  if (!Number.isFinite(seconds)) return `${ordinal(position)} in line`;
  return `${ordinal(position)}, ${seconds < SOON_SECONDS ? "soon" : `in ${duration(seconds)}`}`;
}

/** The same where there is room: "queued, 2nd in line, expected to start in 5 min". */
export function queueSentence({ queue_position: position, expected_start_seconds: seconds }) {
  if (!position) return "queued";
  if (!Number.isFinite(seconds)) return `queued, ${ordinal(position)} in line, when it starts is not known`;
  const start = `expected to start ${seconds < SOON_SECONDS ? "within a minute" : `in ${duration(seconds)}`}`;
  return `queued, ${ordinal(position)} in line, ${start}`;
}

function ordinal(position) {
  const ending = { 1: "st", 2: "nd", 3: "rd" }[position % 10];
  return `${position}${ending && Math.floor((position % 100) / 10) !== 1 ? ending : "th"}`;
}
