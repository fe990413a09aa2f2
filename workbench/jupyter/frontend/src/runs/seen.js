// Which of the selected runs can be seen, and so be acted on: somebody who deletes what stands there means nothing else. Pure.

/**
 * Parts a selection. A closed group that is selected as a whole is seen: its line stands there with its box ticked.
 * @param {Set<string>} selected ids
 * @param {object[]} all rows of the listing
 * @param {({row: object} | {group: {id: string, label: string, rows: object[]}})[]} items lines of the table
 * @param {Set<string>} closed ids of groups
 * @returns {{chosen: object[], filtered: number, folded: number, partly: string[]}} those seen; how many the filter
 *   hides; how many are in closed groups of which others are not selected; the labels of these groups
 */
export function seenOf(selected, all, items, closed) {
  const seen = new Set(items.flatMap(({ row }) => row ?? []));
  const partly = [];
  let folded = 0;
  for (const { label, rows } of items.flatMap(({ group }) => (group && closed.has(group.id) ? group : []))) {
    const count = rows.filter(({ id }) => selected.has(id)).length;
    if (count === rows.length) for (const row of rows) seen.add(row);
    else if (count) partly.push(label) && (folded += count);
  }
  const mine = all.filter(({ id }) => selected.has(id));
  const chosen = mine.filter((row) => seen.has(row));
  return { chosen, filtered: mine.length - chosen.length - folded, folded, partly };
}
