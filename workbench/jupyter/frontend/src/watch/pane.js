// The box in which somebody sees a view: a pane of the Lab, a notebook, a window.

// What a notebook wraps around an output may scroll, but is as high as we are, and says nothing.
const WRAPS = ".jp-Cell, .jp-Cell-outputWrapper, .jp-Cell-outputArea, .jp-OutputArea, .jp-OutputArea-child, .jp-OutputArea-output";
const LEAST = 300;
const SPARE = 16;

/** What scrolls around a node, the closest first. */
function scrollersOf(root) {
  const found = [];
  for (let outer = root.parentElement; outer; outer = outer.parentElement) {
    if (outer.clientHeight >= LEAST && !outer.matches(WRAPS) && /auto|scroll/.test(getComputedStyle(outer).overflowY)) found.push(outer);
  }
  return found;
}

/** Pixels of a node's surroundings that are in sight at once. */
export function paneHeight(root) {
  return Math.min(innerHeight, ...scrollersOf(root).map(({ clientHeight }) => clientHeight));
}

/** What scrolls a view. */
export function paneOf(root) {
  return scrollersOf(root)[0] ?? document.scrollingElement;
}

/** Scrolls the pane, and nothing around it, so that a part of the view begins where the pane does. */
export function scrollToTop(pane, part) {
  const top = pane === document.scrollingElement ? 0 : pane.getBoundingClientRect().top + pane.clientTop;
  pane.scrollTop += part.getBoundingClientRect().top - top;
}

/** Pixels that a plot may be high if it is to end where the pane does, when what it is a part of begins where the pane does. */
export function heightLeft(root, plot) {
  const above = plot.getBoundingClientRect().top - root.getBoundingClientRect().top;
  return Math.floor(paneHeight(root) - above - SPARE);
}

/**
 * How high a table of runs is so that it ends with a whole row.
 * @param {number[]} bottoms of its rows, from the top of its head
 * @param {number} limit pixels that it may take
 * @param {number} always rows that it shows however little that is; `rather`: all rows, when there are no more than these
 */
export function wholeRows(bottoms, limit, always = 3, rather = 4) {
  const fit = Math.max(always, bottoms.filter((bottom) => bottom <= limit).length);
  return bottoms[(bottoms.length <= Math.max(fit, rather) ? bottoms.length : fit) - 1] ?? 0;
}
