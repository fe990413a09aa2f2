import "./curve_editor.css";

import { el, svg } from "../dom.js";
import { brief, clamp, heightAt, keyed, line, numeral, placeWords, reaches, snapped, ticks, valueWords } from "./curve_geometry.js";

// A schedule as a curve (trait `picture`). The points of a `points` schedule can be moved: the page shows its own points
// at once, sends them when the hand rests, and goes by them until the kernel's picture has heard that turn.
const EDGE = { left: 40, right: 14, top: 12, bottom: 32 };
const REST_MS = 150;
const MOST = 64;

class Editor {
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.active = 0;
    this.own = null;
    this.turn = 0;
    this.timer = 0;
    this.grip = null;
    this.drawing = svg("svg", { "aria-hidden": "true" });
    this.plot = el("div", { class: "lab-curve-plot" }, this.drawing);
    this.readout = el("span", { class: "lab-curve-readout" });
    const button = (text, title, click) => el("button", { type: "button", text, title, "aria-label": title, on: { click } });
    this.more = button("+ point", "add a point after the chosen one", () => this.addAfter());
    this.less = button("− point", "remove the chosen point", () => this.remove());
    this.foot = el("div", { class: "lab-curve-foot" }, this.readout, this.more, this.less);
    root.className = "lab-curve";
    root.setAttribute("role", "group");
    root.append(this.plot, this.foot);
    this.handles = [];
    this.plot.addEventListener("dblclick", (event) => {
      if (this.points.length && !this.model.get("stale") && !event.target.classList.contains("lab-curve-handle")) this.add(snapped(this.at(event).x, this.model.get("picture").x));
    });
    this.plot.addEventListener("pointermove", (event) => this.hover(event));
    this.plot.addEventListener("pointerleave", () => this.say());
  }

  get points() {
    return this.own ?? this.model.get("picture").points ?? [];
  }

  /** A picture of the kernel is here: its points are the truth again unless the hand is further. */
  heard() {
    const picture = this.model.get("picture");
    if (this.model.get("stale") || !picture.points?.length || (!this.grip && !this.timer && picture.turn === this.turn)) this.own = null;
    this.draw();
  }

  draw() {
    const picture = this.model.get("picture");
    this.root.hidden = !picture.line;
    if (this.root.hidden) return;
    this.root.setAttribute("aria-label", this.model.get("title"));
    this.root.classList.toggle("lab-curve-stale", this.model.get("stale"));
    const [width, height] = [this.plot.clientWidth || 300, this.plot.clientHeight || 140];
    this.box = { left: EDGE.left, right: width - EDGE.right, top: EDGE.top, bottom: height - EDGE.bottom };
    this.scales = { x: line(picture.x), y: line(picture.y) };
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawing.replaceChildren(...this.axes(picture), ...this.curve(picture));
    this.place(picture);
    const count = this.points.length;
    this.more.hidden = this.less.hidden = !count;
    this.more.disabled = this.model.get("stale") || count >= MOST;
    this.less.disabled = this.model.get("stale") || count < 2;
    this.say();
  }

  px(x, y) {
    const { left, right, top, bottom } = this.box;
    return { x: left + this.scales.x.to(x) * (right - left), y: bottom - this.scales.y.to(y) * (bottom - top) };
  }

  axes(picture) {
    const { left, right, top, bottom } = this.box;
    const made = [];
    for (const value of ticks(picture.y, 3)) {
      const { y } = this.px(0, value);
      made.push(svg("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
      made.push(svg("text", { x: left - 6, y: y + 3.5, "text-anchor": "end" }, brief(value)));
    }
    const { over, budget, end } = picture.x;
    const shared = over === "budget";
    const found = ticks(picture.x, (right - left) / 60);
    found.forEach((value, i) => {
      const { x } = this.px(value, 0);
      const anchor = i === found.length - 1 && x > right - 8 ? "end" : "middle";
      const place = { x: anchor === "end" ? right + 10 : x, "text-anchor": anchor };
      made.push(svg("line", { class: "tick", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
      made.push(svg("text", { ...place, y: bottom + 15 }, shared ? `${numeral(100 * value)}%` : brief(value)));
      const unit = i === found.length - 1 ? ` ${budget?.[1]}` : "";
      if (shared && budget) made.push(svg("text", { ...place, class: "soft", y: bottom + 27 }, brief(value * budget[0]) + unit));
    });
    if (!shared) made.push(svg("text", { class: "soft", x: right + 10, y: bottom + 27, "text-anchor": "end" }, over));
    if (end && end < picture.x.high * (1 - 1e-9)) {
      const { x } = this.px(end, 0);
      made.push(svg("rect", { class: "beyond", x, y: top, width: right - x, height: bottom - top }));
      made.push(svg("line", { class: "end", x1: x, x2: x, y1: top, y2: bottom }));
      made.push(svg("text", { class: "soft", x: x - 4, y: top + 8, "text-anchor": "end" }, "end of the run"));
    }
    made.push(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    return made;
  }

  curve(picture) {
    // What is being dragged is drawn as lines between its points until the kernel's curve is here.
    const { low, high } = picture.x;
    const own = this.own && [[low, this.own[0][1]], ...this.own, [high, this.own.at(-1)[1]]];
    const samples = own ?? picture.line;
    const points = samples.filter(([x]) => x <= picture.x.high).map(([x, y]) => {
      const at = this.px(x, clamp(y, [picture.y.low, picture.y.high]));
      return `${at.x.toFixed(1)},${at.y.toFixed(1)}`;
    });
    const { left, bottom } = this.box;
    const last = points.at(-1).split(",")[0];
    const base = this.px(0, clamp(0, [picture.y.low, picture.y.high])).y;
    return [
      svg("polygon", { class: "under", points: `${left},${base} ${points.join(" ")} ${last},${base}` }),
      svg("polyline", { class: "curve", points: points.join(" ") }),
      svg("line", { class: "cross", x1: 0, x2: 0, y1: this.box.top, y2: bottom, visibility: "hidden" }),
    ];
  }

  // Handles are kept and moved, never made anew: the one that is held must not lose the focus.
  place(picture) {
    const points = this.points;
    while (this.handles.length < points.length) this.handles.push(this.newHandle(this.handles.length));
    for (const spare of this.handles.splice(points.length)) spare.remove();
    this.active = Math.min(this.active, Math.max(0, points.length - 1));
    points.forEach(([x, y], index) => {
      const [node, at] = [this.handles[index], this.px(x, clamp(y, [picture.y.low, picture.y.high]))];
      const [low, high] = reaches(points, index, picture)[0];
      node.style.transform = `translate(${at.x}px, ${at.y}px)`;
      node.classList.toggle("lab-curve-chosen", index === this.active);
      const said = {
        "aria-label": `point ${index + 1} of ${points.length}`, "aria-valuetext": `${placeWords(x, picture.x)}, value ${valueWords(y, picture.y)}`,
        "aria-valuenow": x, "aria-valuemin": low, "aria-valuemax": high, "aria-disabled": String(this.model.get("stale")),
      };
      for (const [name, value] of Object.entries(said)) if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
    });
  }

  newHandle(index) {
    const release = () => {
      this.grip = null;
      this.heard();
    };
    const on = {
      focus: () => {
        this.active = index;
        this.draw();
      },
      keydown: (event) => this.key(event, index),
      pointerdown: (event) => this.grab(event, index),
      pointermove: (event) => this.drag(event),
      pointerup: release,
      pointercancel: release,
    };
    const node = el("div", { class: "lab-curve-handle", tabindex: "0", role: "slider", on });
    this.plot.append(node);
    return node;
  }

  /** Under the plot: the place under the pointer, else what can be done. */
  say(text) {
    const words = text ?? (this.points.length ? "drag points or use arrow keys; a double click adds one" : "");
    if (this.readout.textContent !== words) this.readout.textContent = words;
    if (!text) this.drawing.querySelector(".cross")?.setAttribute("visibility", "hidden");
  }

  at(event) {
    const inside = this.plot.getBoundingClientRect();
    const { left, right, top, bottom } = this.box;
    const share = { x: (event.clientX - inside.left - left) / (right - left), y: (bottom - event.clientY + inside.top) / (bottom - top) };
    return { x: this.scales.x.from(clamp(share.x, [0, 1])), y: this.scales.y.from(clamp(share.y, [0, 1])) };
  }

  hover(event) {
    if (this.grip || event.pointerType === "touch" || event.target.classList.contains("lab-curve-handle")) return;
    const { x } = this.at(event);
    const picture = this.model.get("picture");
    this.say(`${valueWords(heightAt(picture.line, x), picture.y)} at ${placeWords(x, picture.x)}`);
    const cross = this.drawing.querySelector(".cross");
    cross?.setAttribute("transform", `translate(${this.px(x, 0).x})`);
    cross?.setAttribute("visibility", "visible");
  }

  grab(event, index) {
    if (event.button !== 0 || this.model.get("stale")) return;
    event.preventDefault();
    const node = this.handles[index];
    node.focus();
    node.setPointerCapture(event.pointerId);
    // The point stays under the finger where it was touched.
    const [from, inside] = [this.px(...this.points[index]), this.plot.getBoundingClientRect()];
    this.grip = { index, dx: from.x + inside.left - event.clientX, dy: from.y + inside.top - event.clientY };
  }

  drag(event) {
    if (!this.grip) return;
    const { index, dx, dy } = this.grip;
    const picture = this.model.get("picture");
    const { x, y } = this.at({ clientX: event.clientX + dx, clientY: event.clientY + dy });
    const [across, up] = reaches(this.points, index, picture);
    this.change(this.points.with(index, [snapped(x, picture.x, across), snapped(y, picture.y, up)]));
  }

  key(event, index) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.model.get("stale")) return;
    if (event.key === "Delete" || event.key === "Backspace") this.remove();
    else {
      const moved = keyed(this.points, index, this.model.get("picture"), event.key, event.shiftKey);
      if (!moved) return;
      this.change(this.points.with(index, moved));
    }
    event.preventDefault();
    event.stopPropagation();
  }

  addAfter() {
    // In the middle of the piece that follows; after the last point, of the one before it.
    const [points, { end, high }] = [this.points, this.model.get("picture").x];
    const from = points[this.active][0];
    const next = [...points.map(([x]) => x), end ?? high].find((x) => x > from) ?? points[Math.max(0, this.active - 1)][0];
    this.add((from + next) / 2);
  }

  add(x) {
    const points = this.points;
    if (points.length >= MOST) return;
    const index = points.filter(([place]) => place <= x).length;
    this.change(points.toSpliced(index, 0, [x, heightAt(points, x)]));
    this.handles[index].focus();
  }

  remove() {
    if (this.points.length < 2) return;
    this.change(this.points.toSpliced(this.active, 1));
    this.handles[Math.max(0, this.active - 1)].focus();
  }

  change(points) {
    this.own = points;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.turn += 1;
      this.model.send({ turn: this.turn, places: this.own.map(([x]) => x), values: this.own.map(([, y]) => y) });
    }, REST_MS);
    this.draw();
  }
}

function render({ model, el: root }) {
  const editor = new Editor(model, root);
  editor.turn = model.get("picture").turn ?? 0;
  const heard = () => editor.heard();
  model.on("change:picture change:title change:stale", heard);
  const watcher = new ResizeObserver(() => editor.draw());
  watcher.observe(editor.plot);
  editor.draw();
  return () => {
    watcher.disconnect();
    clearTimeout(editor.timer);
    model.off("change:picture change:title change:stale", heard);
  };
}

export default { render };
