// What may be typed as a number of seeds. Pure.

/** The seeds of a box, or what is wrong with them. */
export function seedsOf(text, most) {
  const seeds = Number(text);
  return Number.isInteger(seeds) && seeds >= 2 && seeds <= most ? { seeds } : { error: `seeds: a whole number from 2 to ${most}` };
}
