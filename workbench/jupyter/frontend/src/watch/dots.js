// Which setting of a sweep, or run of a race, a Plotly figure was clicked at. Plotly tells of clicks on dots; on parallel coordinates it tells
// only which line is under the pointer.

// A stretch dragged along an axis is no click.
const STILL_PX = 4;
// Plotly's lines are one pixel wide to the pointer; whoever has just crossed one means it.
const NEAR_PX = 5;

/** What a click that Plotly tells picks, or null. */
export function dotOf(event) {
  const found = event?.points?.find(({ customdata }) => typeof customdata === "string");
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
 * @param {(pick: string) => void} pick
 */
export function bindDots(node, pick) {
  let at = null;
  let crossed = null;
  let down = null;
  node.on("plotly_click", (event) => {
    const point = dotOf(event);
    if (point !== null) pick(point);
  });
  node.on("plotly_hover", (event) => {
    const line = lineOf(node.data, event);
    if (line !== null) crossed = { line, at };
  });
  // Before Plotly hears of it and tells what is there.
  node.addEventListener("pointermove", ({ clientX, clientY }) => {
    at = { clientX, clientY };
  }, true);
  node.addEventListener("pointerdown", ({ clientX, clientY }) => {
    down = { clientX, clientY };
  }, true);
  node.addEventListener("click", ({ clientX, clientY }) => {
    const within = (place, px) => place && Math.hypot(clientX - place.clientX, clientY - place.clientY) < px;
    if (within(down, STILL_PX) && within(crossed?.at, NEAR_PX)) pick(crossed.line);
  }, true);
}

/**
 * Where the dot of a setting or run lies, or null: {x, y} as its picture has them, and its trace's axes.
 * @param {object[]} data of the figure
 * @param {string | null} pick
 */
export function placeOfDot(data, pick) {
  for (const trace of data ?? []) {
    const at = trace.type === "parcoords" ? -1 : Array.from(trace.customdata ?? []).indexOf(pick);
    if (at >= 0 && trace.x?.[at] !== undefined) return { x: trace.x[at], y: trace.y[at], axes: [trace.xaxis ?? "x", trace.yaxis ?? "y"] };
  }
  return null;
}

/** Puts a ring around the dot that is picked; away where it is not in the picture, or out of sight. */
export function ringDot(node, ring, pick) {
  const place = placeOfDot(node.data, pick);
  const axis = (name) => node._fullLayout?.[`${name[0]}axis${name.slice(1)}`];
  const [across, up] = place ? place.axes.map(axis) : [];
  const [left, top] = across?.d2p && up?.d2p ? [across.d2p(place.x), up.d2p(place.y)] : [NaN, NaN];
  ring.hidden = !(left >= 0 && left <= across?._length && top >= 0 && top <= up?._length);
  if (ring.hidden) return;
  ring.style.left = `${across._offset + left}px`;
  ring.style.top = `${up._offset + top}px`;
}
