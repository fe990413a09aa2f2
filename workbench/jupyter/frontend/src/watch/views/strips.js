// What the layer map's columns and rows add up to: layers at work at each time, share of the run per layer.

import { LEFT_AXIS } from "../curves.js";
import { WORK_PARTS } from "../../palette.js";

const GAP = 8;
const STRIP = 44;
/** Room below the layer map. */
export const COUNTS_HEIGHT = GAP + STRIP;

/**
 * Layers computed forward (light) and backward as well (dark), over time; empty up to the top is work saved.
 * @param {object} g geometry of the map, `top` where its lowest row ends
 * @param {Int32Array} columns record per pixel of the device
 * @param {object} done as workOf gives it
 */
export function drawCounts(ctx, g, columns, done, theme) {
  const base = g.top + GAP + STRIP;
  const width = g.inner / columns.length;
  [done.counts.forward, done.counts.trained].forEach((counts, part) => {
    ctx.fillStyle = WORK_PARTS[part].colour;
    ctx.beginPath();
    // One shape from run to run of equal columns: a rectangle per pixel would leave seams.
    for (let p = 0; p < columns.length; ) {
      let next = p + 1;
      while (next < columns.length && columns[next] === columns[p]) next++;
      const height = columns[p] < 0 ? 0 : (counts[columns[p]] / g.layers) * STRIP;
      ctx.rect(LEFT_AXIS + p * width, base - height, (next - p) * width, height);
      p = next;
    }
    ctx.fill();
  });
  ctx.strokeStyle = theme.grid;
  ctx.strokeRect(LEFT_AXIS - 0.5, base - STRIP - 0.5, g.inner + 1, STRIP + 1);
  ctx.font = theme.font;
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  ctx.fillText(String(g.layers), LEFT_AXIS - 8, base - STRIP + 5);
  ctx.fillText("at work", LEFT_AXIS - 8, base - STRIP / 2);
  ctx.fillText("0", LEFT_AXIS - 8, base - 4);
}

/** Per layer, the share of the run in which it was trained (dark) and computed (light); `left` where the map ends. */
export function drawShares(ctx, g, done, theme) {
  const [left, width] = [g.left + GAP, 58];
  const bar = Math.max(1, Math.round(g.row * 0.7));
  [done.perLayer.forward, done.perLayer.trained].forEach((shares, part) => {
    ctx.fillStyle = WORK_PARTS[part].colour;
    shares.forEach((share, layer) => {
      ctx.fillRect(left, g.top + (g.layers - layer - 1) * g.row + (g.row - bar) / 2, share * width, bar);
    });
  });
  ctx.strokeStyle = theme.grid;
  ctx.strokeRect(left - 0.5, g.top - 0.5, width + 1, g.layers * g.row + 1);
  ctx.font = theme.font;
  ctx.fillStyle = theme.muted;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "right";
  ctx.fillText("of the run", left + width, g.top - 5);
  const below = g.top + g.layers * g.row + 13;
  ctx.fillText("100%", left + width, below);
  ctx.textAlign = "left";
  ctx.fillText("0", left, below);
}
