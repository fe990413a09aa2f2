// Which point of a sweep a Plotly figure was clicked at. Plotly tells of clicks on dots; on parallel coordinates it tells
// only which line is under the pointer.

// A stretch dragged along an axis is no click.
const STILL_PX = 4;

/** The point of a click that Plotly tells, or null. */
export function dotOf(event) {
  const found = event?.points?.find(({ customdata }) => Number.isInteger(customdata));
  return found ? found.customdata : null;
}

/** The point of a line of parallel coordinates, or null. */
export function lineOf(data, event) {
  if (event?.points || !Number.isInteger(event?.curveNumber)) return null;
  const trace = data?.find(({ type }) => type === "parcoords");
  return trace?.customdata?.[event.curveNumber] ?? null;
}

/**
 * Has clicks on the dots and lines of a figure told.
 * @param {HTMLElement} node drawn by Plotly
 * @param {(point: number) => void} pick
 */
export function bindDots(node, pick) {
  let line = null;
  let down = null;
  node.on("plotly_click", (event) => {
    const point = dotOf(event);
    if (point !== null) pick(point);
  });
  node.on("plotly_hover", (event) => {
    line = lineOf(node.data, event);
  });
  node.on("plotly_unhover", () => {
    line = null;
  });
  node.addEventListener("pointerdown", ({ clientX, clientY }) => {
    down = { clientX, clientY };
  }, true);
  node.addEventListener("click", ({ clientX, clientY }) => {
    const still = down && Math.hypot(clientX - down.clientX, clientY - down.clientY) < STILL_PX;
    if (line !== null && still) pick(line);
  }, true);
}
