// Times as people search for them: "today", "2026-11-23", "2h" ago. Pure.

/** What can be written. */
export const MOMENTS = "today, yesterday, 2026-11-23, 2026-11-23T14:05, 14:05, or 30min, 2h, 3d, 1w (ago)";

const DAY = /^(\d{4})-(\d\d?)-(\d\d?)$/;
const CLOCK = /^(\d\d?):(\d\d)$/;
const AGO = /^(\d+(?:\.\d+)?)(m|min|h|d|w)$/;
const SECONDS = { m: 60, min: 60, h: 3600, d: 86400, w: 7 * 86400 };

/**
 * The stretch of time that a text names: a day, a minute, or the moment so long ago.
 * @param {string} text
 * @param {number} now milliseconds
 * @returns {{from: number, to: number} | null} Unix seconds, `to` not included; null: no time
 */
export function stretchOf(text, now) {
  const word = text.trim().toLowerCase();
  const ago = AGO.exec(word);
  if (ago) {
    const from = now / 1000 - Number(ago[1]) * SECONDS[ago[2]];
    return { from, to: from };
  }
  const [day, clock] = CLOCK.test(word) ? ["today", word] : word.split(/[t ](?=\d)/);
  const start = dayOf(day, new Date(now));
  if (!start || clock === undefined) return start && { from: start / 1000, to: new Date(start).setDate(start.getDate() + 1) / 1000 };
  const [, hours, minutes] = CLOCK.exec(clock) ?? [];
  if (hours === undefined || hours > 23 || minutes > 59) return null;
  const from = start.setHours(hours, minutes) / 1000;
  return { from, to: from + 60 };
}

/** How a time stands to a stretch, for each sign; ":" and "=" with so long ago ask for all since then. */
export const STANDS = {
  "<": (time, { from }) => time < from,
  ">": (time, { from, to }) => (from === to ? time > to : time >= to),
  "<=": (time, { from, to }) => time < to || time === from,
  ">=": (time, { from }) => time >= from,
  ":": (time, { from, to }) => time >= from && (from === to || time < to),
  "=": (time, stretch) => STANDS[":"](time, stretch),
  "!=": (time, stretch) => !STANDS[":"](time, stretch),
};

function dayOf(word, now) {
  const [year, month, day] = [now.getFullYear(), now.getMonth(), now.getDate()];
  if (word === "today") return new Date(year, month, day);
  if (word === "yesterday") return new Date(year, month, day - 1);
  const found = DAY.exec(word);
  if (!found) return null;
  const date = new Date(Number(found[1]), found[2] - 1, Number(found[3]));
  // The 31st of a month that has 30 days would be read as the first of the next.
  return date.getMonth() === found[2] - 1 && date.getDate() === Number(found[3]) ? date : null;
}
