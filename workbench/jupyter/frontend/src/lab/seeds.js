// What may be typed as a number of seeds. Pure.

/** The seeds of a box, or what is wrong with them. */
export function seedsOf(text, most) {
  const seeds = Number(text);
  return Number.isInteger(seeds) && seeds >= 2 && seeds <= most ? { seeds } : { error: `seeds: a whole number from 2 to ${most}` };
}

/** When a race of at most so many seeds is judged; `looks`: numbers of seeds after which races may end. */
export function looksText(seeds, looks) {
  const early = looks.filter((look) => look < seeds);
  return early.length ? `at most; it ends after ${early.join(" or ")} where that decides` : "judged once, after all of them";
}
