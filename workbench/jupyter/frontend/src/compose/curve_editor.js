import "./curve_editor.css";

import { el } from "../dom.js";
import { brief, clamp, heightAt, held, keyed, line, numeral, placeWords, spread, tidy, ticks, valueWords } from "./curve_geometry.js";

// A schedule as a curve whose handles move. The kernel says what the curve is and what may move (trait `picture`); the
// page moves the handle at once, tells where it went, and draws the curve that comes back.
const SPACE = "http://www.w3.org/2000/svg";
const EDGE = { left: 40, right: 14, top: 12, bottom: 32 };
const HANDLE = 14;
// Longer than any answer of a kernel that lives: a lost one must not keep the next move back for good.
const PATIENCE_MS = 3000;

function svg(tag, attributes, text) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/** One move is on its way at a time, and only the latest waits: a slow kernel is not flooded. */
class Line {
  constructor(model, done) {
    this.model = model;
    this.done = done;
    this.turn = 0;
    this.waiting = null;
    this.next = null;
    this.timer = 0;
  }

  send(message) {
    if (this.waiting !== null) {
      this.next = message;
      return;
    }
    this.waiting = ++this.turn;
    this.model.send({ ...message, turn: this.waiting });
    this.timer = setTimeout(() => this.answered(this.waiting), PATIENCE_MS);
  }

  answered(turn) {
    if (turn !== this.waiting) return;
    clearTimeout(this.timer);
    this.waiting = null;
    const next = this.next;
    this.next = null;
    if (next) this.send(next);
    else this.done();
  }

  get idle() {
    return this.waiting === null && this.next === null;
  }
}

class Editor {
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.line = new Line(model, () => this.settle());
    this.active = 0;
    this.used = false;
    this.grip = null;
    this.moving = null;
    this.focusNext = null;
    this.drawing = svg("svg", { "aria-hidden": "true" });
    this.plot = el("div", { class: "lab-curve-plot" }, this.drawing);
    this.readout = el("span", { class: "lab-curve-readout" });
    const button = (text, title, click) => el("button", { type: "button", text, title, "aria-label": title, on: { click } });
    this.more = button("+ point", "add a point after the chosen one", () => this.addAfter());
    this.less = button("− point", "remove the chosen point", () => this.remove(this.active));
    this.foot = el("div", { class: "lab-curve-foot" }, this.readout, this.more, this.less);
    root.className = "lab-curve";
    root.setAttribute("role", "group");
    root.append(this.plot, this.foot);
    this.handles = [];
    this.plot.addEventListener("dblclick", (event) => this.addAt(event));
    this.plot.addEventListener("pointermove", (event) => this.hover(event));
    this.plot.addEventListener("pointerleave", () => this.say());
  }

  /** The picture as it is drawn: while a hand or key moves a handle, its axes stay and the handle is where the hand is. */
  get picture() {
    const now = this.model.get("picture");
    if (!this.moving || !now.handles) return now;
    const { index, axes, x, y } = this.moving;
    return { ...now, ...axes, handles: now.handles.map((handle, i) => (i === index ? { ...handle, x, y } : handle)) };
  }

  draw() {
    const picture = this.picture;
    const empty = !picture.handles;
    this.root.hidden = empty;
    if (empty) return;
    this.root.setAttribute("aria-label", this.model.get("title"));
    this.root.classList.toggle("lab-curve-stale", this.model.get("stale"));
    const [width, height] = [this.plot.clientWidth || 300, this.plot.clientHeight || 140];
    this.box = { left: EDGE.left, right: width - EDGE.right, top: EDGE.top, bottom: height - EDGE.bottom };
    this.scales = { x: line(picture.x), y: line(picture.y) };
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawing.replaceChildren(...this.axes(picture), ...this.curve(picture));
    this.place(picture);
    const chosen = picture.handles[this.active];
    this.more.hidden = this.less.hidden = !picture.growable && !picture.handles.some((handle) => handle.removable);
    this.more.disabled = !picture.growable;
    this.less.disabled = !chosen?.removable;
    if (!this.hovering) this.say();
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
    const points = picture.line.filter(([x]) => x <= picture.x.high).map(([x, y]) => {
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
    while (this.handles.length < picture.handles.length) this.handles.push(this.newHandle(this.handles.length));
    for (const spare of this.handles.splice(picture.handles.length)) spare.remove();
    const places = picture.handles.map(({ x, y }) => this.px(x, y));
    const shown = spread(places, HANDLE + 4, this.box.right);
    // Side by side with another one: a thin tie leads back to where it belongs.
    const moved = places.map((place, i) => [place, shown[i]]).filter(([place, there]) => place.x !== there.x);
    this.drawing.append(...moved.map(([place, there]) => svg("line", { class: "tie", x1: place.x, y1: place.y, x2: there.x, y2: there.y })));
    picture.handles.forEach((handle, index) => {
      const node = this.handles[index];
      node.style.transform = `translate(${shown[index].x}px, ${shown[index].y}px)`;
      node.dataset.moves = handle.moves;
      const [main, reach] = handle.x_reach ? [handle.x, handle.x_reach] : [handle.y, handle.y_reach ?? [handle.y, handle.y]];
      const words = `${placeWords(handle.x, picture.x)}, value ${valueWords(handle.y, picture.y)}`;
      const said = {
        "aria-label": handle.name, "aria-valuetext": words, "aria-valuenow": tidy(main), "aria-valuemin": tidy(reach[0]), "aria-valuemax": tidy(reach[1]),
        "aria-orientation": handle.x_reach ? "horizontal" : "vertical", "aria-disabled": String(this.model.get("stale")),
      };
      for (const [name, value] of Object.entries(said)) if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
    });
    if (this.focusNext !== null && this.line.idle) {
      const wanted = Math.min(this.focusNext, this.handles.length - 1);
      this.focusNext = null;
      this.handles[wanted]?.focus();
    }
  }

  newHandle(index) {
    const end = (event) => this.release(event);
    const on = {
      focus: () => this.choose(index),
      keydown: (event) => this.key(event, index),
      pointerdown: (event) => this.grab(event, index),
      pointermove: (event) => this.drag(event),
      pointerup: end,
      pointercancel: end,
    };
    const node = el("div", { class: "lab-curve-handle", tabindex: "0", role: "slider", on });
    this.plot.append(node);
    return node;
  }

  choose(index) {
    this.active = index;
    this.used = true;
    this.handles.forEach((node, i) => node.classList.toggle("lab-curve-chosen", i === index));
    this.draw();
  }

  /** Under the plot: the place under the pointer, else the chosen handle. */
  say(text) {
    this.hovering = Boolean(text);
    const handle = this.picture.handles?.[this.active];
    const growing = this.picture.growable ? "; a double click adds one" : "";
    const own = () => !this.used ? `drag points, or use arrow keys (shift: further)${growing}` : `${handle.name}: ${valueWords(handle.y, this.picture.y)} at ${placeWords(handle.x, this.picture.x)}`;
    const words = text ?? (handle ? own() : "");
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
    const { x: px } = this.px(x, 0);
    this.say(`${valueWords(heightAt(this.picture.line, x), this.picture.y)} at ${placeWords(x, this.picture.x)}`);
    const cross = this.drawing.querySelector(".cross");
    cross?.setAttribute("transform", `translate(${px})`);
    cross?.setAttribute("visibility", "visible");
  }

  grab(event, index) {
    if (event.button !== 0 || this.model.get("stale")) return;
    event.preventDefault();
    const node = this.handles[index];
    node.focus();
    node.setPointerCapture(event.pointerId);
    // The handle stays under the finger where it was touched; handles side by side are not where they are drawn.
    const { x, y } = this.picture.handles[index];
    const [from, inside] = [this.px(x, y), this.plot.getBoundingClientRect()];
    this.grip = { index, dx: from.x + inside.left - event.clientX, dy: from.y + inside.top - event.clientY };
  }

  drag(event) {
    if (!this.grip) return;
    const { index, dx, dy } = this.grip;
    const place = this.at({ clientX: event.clientX + dx, clientY: event.clientY + dy });
    this.moveTo(index, held(this.picture.handles[index], this.picture, place.x, place.y));
  }

  release(event) {
    if (!this.grip) return;
    this.handles[this.grip.index].releasePointerCapture?.(event.pointerId);
    this.grip = null;
    this.settle();
  }

  key(event, index) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.model.get("stale")) return;
    const handle = this.picture.handles[index];
    if ((event.key === "Delete" || event.key === "Backspace") && handle.removable) this.remove(index);
    else if ((event.key === "+" || event.key === "Insert") && this.picture.growable) this.addAfter();
    else {
      const place = keyed(handle, this.picture.x, this.picture.y, event.key, event.shiftKey);
      if (!place) return;
      this.moveTo(index, place);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  moveTo(index, { x, y }) {
    const now = this.picture.handles[index];
    if (now.x === x && now.y === y) return;
    const axes = this.moving?.axes ?? { x: this.picture.x, y: this.picture.y };
    this.moving = { index, axes, x, y };
    this.hovering = false;
    this.line.send({ type: "move", handle: index, x, y });
    this.draw();
  }

  addAfter() {
    const { handles, x } = this.picture;
    const from = handles[this.active]?.x ?? 0;
    // In the middle of the piece that follows; after the last handle, of the one before it.
    const places = [...handles.map((handle) => handle.x), x.end ?? x.high];
    const next = places.find((place) => place > from) ?? Math.max(0, ...places.filter((place) => place < from));
    this.add((from + next) / 2);
  }

  addAt(event) {
    if (!this.picture.growable || event.target.classList.contains("lab-curve-handle")) return;
    const { x } = this.picture;
    this.add(held({ x_reach: [x.low, x.high], y_reach: null }, this.picture, this.at(event).x, 0).x);
  }

  add(x) {
    this.focusNext = this.picture.handles.filter((handle) => handle.x <= x).length;
    this.line.send({ type: "add", x });
  }

  remove(index) {
    this.focusNext = Math.max(0, index - 1);
    this.line.send({ type: "remove", handle: index });
  }

  /** Once nobody holds a handle and every answer is there, the kernel's picture is the whole truth again. */
  settle() {
    if (this.grip || !this.line.idle) return;
    this.moving = null;
    this.draw();
  }
}

function render({ model, el: root }) {
  const editor = new Editor(model, root);
  const redraw = () => editor.draw();
  const heard = (message) => {
    if (message?.type === "done") editor.line.answered(message.turn);
  };
  model.on("change:picture change:title change:stale", redraw);
  model.on("msg:custom", heard);
  const watcher = new ResizeObserver(redraw);
  watcher.observe(editor.plot);
  redraw();
  return () => {
    watcher.disconnect();
    model.off("change:picture change:title change:stale", redraw);
    model.off("msg:custom", heard);
  };
}

export default { render };
