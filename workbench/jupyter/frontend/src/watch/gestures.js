// Zooming and panning with pointer, wheel and keys, the same over every plot.

import { el } from "../dom.js";
import { limited, panned, zoomed } from "./window.js";

const ZOOM_STEP = 1.25;
const PAN_STEP = 0.1;
// Closer than this, two ends of a drag are a click.
const CLICK_PX = 4;
const KEYS = { "+": "in", "=": "in", "-": "out", _: "out" };

export class Gestures {
  /**
   * @param {HTMLElement} host the plot with its axes
   * @param {() => {left: number, width: number, from: number, to: number, extent: [number, number] | null} | null}
   *   geometry the plot area in pixels of the host, and the x at its edges
   * @param {{window: () => [number, number] | null, zoom: (window: [number, number] | null) => void}} view
   */
  constructor(host, geometry, view) {
    Object.assign(this, { host, geometry, view });
    this.band = el("div", { class: "wb-band", hidden: true });
    host.append(this.band);
    host.addEventListener("pointerdown", (event) => this.#down(event));
    host.addEventListener("pointermove", (event) => this.#move(event));
    host.addEventListener("pointerup", (event) => this.#up(event));
    host.addEventListener("pointercancel", () => this.#end());
    host.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    host.addEventListener("dblclick", () => view.zoom(null));
  }

  /** Takes a key that zooms or pans; true when it did. `at`: x of the reading, which then keeps its place. */
  key(event, at) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const g = this.geometry();
    const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape" || event.key === "0") this.view.zoom(null);
    else if (event.key in KEYS && g) {
      this.#zoom(g, KEYS[event.key] === "in" ? 1 / ZOOM_STEP : ZOOM_STEP, at ?? (g.from + g.to) / 2);
    } else if (sign && event.shiftKey && g) this.#pan(g, sign * PAN_STEP);
    else return false;
    event.preventDefault();
    return true;
  }

  #x(event, g) {
    const px = event.clientX - this.host.getBoundingClientRect().left;
    const inside = Math.min(g.left + g.width, Math.max(g.left, px));
    return { px: inside, x: g.from + ((inside - g.left) / g.width) * (g.to - g.from), within: inside === px };
  }

  #down(event) {
    const g = this.geometry();
    if (!g || !(event.button === 0 || event.button === 1)) return;
    const { px, x, within } = this.#x(event, g);
    if (!within) return;
    const pan = event.shiftKey || event.button === 1;
    // A middle button would scroll, and a drag select text.
    if (pan) event.preventDefault();
    this.drag = { pan, px, x, window: this.view.window() ?? g.extent };
  }

  #move(event) {
    const g = this.drag && this.geometry();
    if (!g) return;
    const { px, x } = this.#x(event, g);
    if (Math.abs(px - this.drag.px) > CLICK_PX && !this.drag.moved) {
      this.drag.moved = true;
      this.host.setPointerCapture(event.pointerId);
    }
    if (!this.drag.moved) return;
    if (this.drag.pan) this.#panTo(g, px);
    else this.#select(px);
    this.drag.to = x;
  }

  #up() {
    const { drag } = this;
    this.#end();
    if (!drag?.moved || drag.pan) return;
    const g = this.geometry();
    if (g?.extent) this.view.zoom(limited([drag.x, drag.to], g.extent));
  }

  #end() {
    this.drag = null;
    this.band.hidden = true;
  }

  #select(px) {
    const [left, right] = px < this.drag.px ? [px, this.drag.px] : [this.drag.px, px];
    this.band.hidden = false;
    this.band.style.left = `${left}px`;
    this.band.style.width = `${right - left}px`;
  }

  #panTo(g, px) {
    const { window } = this.drag;
    if (window && g.extent) this.view.zoom(panned(window, g.extent, (this.drag.px - px) / g.width));
  }

  #wheel(event) {
    const g = this.geometry();
    // Without a modifier the wheel scrolls the notebook, as everywhere.
    if (!g || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    const delta = (event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 16 : 1);
    if (event.shiftKey) this.#pan(g, (delta / 100) * PAN_STEP);
    else this.#zoom(g, Math.exp(Math.max(-1, Math.min(1, delta / 300))), this.#x(event, g).x);
  }

  #zoom(g, factor, at) {
    if (g.extent) this.view.zoom(zoomed(this.view.window(), g.extent, factor, at));
  }

  #pan(g, share) {
    if (g.extent && this.view.window()) this.view.zoom(panned(this.view.window(), g.extent, share));
  }
}
