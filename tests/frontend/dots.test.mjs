import assert from "node:assert/strict";
import { test } from "node:test";

import { bindDots, dotOf, lineOf, placeOfDot, ringDot } from "../../workbench/jupyter/frontend/src/watch/dots.js";

const LINES = [{ type: "parcoords", customdata: ["4", "2", "7"] }];

test("a dot tells its setting or run, a line that joins dots or a level none", () => {
  assert.equal(dotOf({ points: [{ customdata: "0" }] }), "0");
  assert.equal(dotOf({ points: [{}, { customdata: "mine seed 3" }] }), "mine seed 3");
  assert.equal(dotOf({ points: [{}] }), null);
  assert.equal(dotOf({ points: [{ customdata: 3 }] }), null, "a number is a value of a picture of layers");
  assert.equal(dotOf(undefined), null);
});

test("a line of parallel coordinates tells the point in its place", () => {
  assert.equal(lineOf(LINES, { curveNumber: 1 }), "2");
  assert.equal(lineOf(LINES, { curveNumber: 9 }), null);
  assert.equal(lineOf([{ type: "scatter" }], { curveNumber: 0 }), null);
  assert.equal(lineOf(LINES, { curveNumber: 1, points: [] }), null, "a dot that is hovered is no line");
});

/** What Plotly draws into, as far as a click goes. */
function drawn(data) {
  const heard = {};
  const on = (name, handler) => (heard[name] = handler);
  return { data, on, addEventListener: on, heard };
}

test("a click on a line or beside it picks it, a stretch dragged along an axis does not", () => {
  const picked = [];
  const node = drawn(LINES);
  bindDots(node, (point) => picked.push(point));
  const at = (clientX, clientY) => ({ clientX, clientY });
  const press = (x, y) => (node.heard.pointerdown(at(x, y)), node.heard.click(at(x, y)));
  press(5, 5);
  node.heard.pointermove(at(5, 5));
  node.heard.plotly_hover({ curveNumber: 2 });
  node.heard.pointerdown(at(5, 5));
  node.heard.click(at(5, 40));
  press(5, 30);
  assert.deepEqual(picked, []);
  press(6, 5);
  node.heard.pointermove(at(5, 8));
  press(5, 8);
  assert.deepEqual(picked, ["7", "7"], "a line is one pixel wide");
  node.heard.plotly_click({ points: [{ customdata: "4" }] });
  assert.deepEqual(picked, ["7", "7", "4"]);
});

test("the dot that is picked has a ring, wherever its picture has it", () => {
  const data = [{ x: [9], y: [9] }, { customdata: ["4", "2"], x: [1, 2], y: [30, 40], xaxis: "x2" }];
  assert.deepEqual(placeOfDot(data, "2"), { x: 2, y: 40, axes: ["x2", "y"] });
  assert.equal(placeOfDot(data, "7"), null);
  assert.equal(placeOfDot(LINES, "4"), null, "a line has no place");
  const axis = (offset, scale) => ({ d2p: (value) => value * scale, _offset: offset, _length: 100 });
  const node = { data, _fullLayout: { xaxis2: axis(50, 10), yaxis: axis(20, 2) } };
  const ring = { style: {} };
  ringDot(node, ring, "2");
  assert.deepEqual(ring, { style: { left: "70px", top: "100px" }, hidden: false });
  ringDot(node, ring, "7");
  assert.equal(ring.hidden, true);
  ringDot({ data, _fullLayout: { xaxis2: axis(50, 10), yaxis: axis(20, 3) } }, ring, "2");
  assert.equal(ring.hidden, true, "zoomed out of sight");
});
