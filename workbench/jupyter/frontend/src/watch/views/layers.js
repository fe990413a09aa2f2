// Layer activity: layers upwards, time to the right; what each layer did, or one number of it in colour.

import { boundaryLabels, columnEnds, columnWords, copiesAt, inkRows, inSight, savesWork, sentence, stagesOf, workOf, workWords } from "../activity.js";
import { csvOfLayers } from "../csv.js";
import { LEFT_AXIS, MAIN_RIGHT } from "../curves.js";
import { dropdown, el, say } from "../../dom.js";
import { duration, short, whole, xValue } from "../../format.js";
import { Gestures } from "../gestures.js";
import { columnsOfPixels, scaleOf } from "../layers.js";
import { LAYER_STATES, PER_LAYER, RAMP_COLOURS, rgb, shades, X_TITLES } from "../../palette.js";
import { Panel } from "../panel.js";
import { placeBeside } from "../readout.js";
import { isTitled, xRange, xTicks } from "../scales.js";
import { canvasSvg } from "../svg.js";
import { emptyWords } from "./empty.js";
import { extentOf, marksOf, shortName } from "./pictures.js";
import { COUNTS_HEIGHT, drawCounts, drawShares } from "./strips.js";

const BOTTOM = 26;
const TITLE_SIZE = 15;
const TOP = 18; // for the names of the stages
const EMPTY = 96;
const workIn = ({ layers }) => layers.memo("work", () => workOf(layers));
const isStill = (layers) =>
  layers.memo("still", () => {
    const told = (name) => layers.values.get(name) ?? [];
    return told("update_ratio").some((vector) => vector.some(Number.isFinite)) && told("state").every((vector) => vector.every((state) => state === 0));
  });
const meaning = (quantity) => `${nameOf(quantity)}: ${PER_LAYER[quantity]?.help ?? ""}`;
const nameOf = (quantity) => PER_LAYER[quantity]?.label ?? quantity;

export class LayersView {
  constructor(monitor) {
    this.monitor = monitor;
    this.run = null;
    this.runChoice = dropdown("Run shown in the layer map", (run) => this.#set({ run }));
    this.choice = dropdown("Quantity shown in the layer map", (quantity) => (monitor.layout.setPlot("layers", { quantity }), this.#set({})));
    this.panel = new Panel({
      title: "Layer activity",
      name: "layers",
      sized: true,
      monitor,
      tools: [this.runChoice.node, this.choice.node],
      table: () => this.#table(),
      figure: () => ({ view: "layers", quantity: this.quantity, run: this.shown?.id }),
      picture: () => this.#picture(),
      shows: () => [this.shown].filter(Boolean),
      csv: () => this.shown && monitor.saveText("layers", csvOfLayers(this.shown.name, this.shown.layers, LAYER_STATES.map(({ name }) => name)), [this.shown]),
    });
    this.canvas = el("canvas", {
      tabindex: "0",
      role: "img",
      on: {
        pointermove: (event) => this.#point(event.offsetX, event.offsetY),
        pointerleave: () => this.#leave(),
        blur: () => this.#leave(),
        keydown: (event) => this.#key(event),
      },
    });
    this.line = el("div", { class: "wb-cursor", hidden: true });
    this.readout = el("div", { class: "wb-readout", hidden: true });
    this.empty = el("p", { class: "wb-empty" });
    this.work = el("p", { class: "wb-note", hidden: true });
    this.panel.plot.append(this.canvas, this.line, this.work, this.readout, this.empty);
    this.gestures = new Gestures(this.panel.plot, () => this.#area(), monitor);
    this.cursor = null;
  }

  /** What is shown of the layers. */
  get quantity() {
    const { quantity } = this.monitor.layout.plot("layers");
    if (quantity in PER_LAYER) return quantity;
    // Where nothing is skipped, frozen or new the states are a wall of one colour.
    return this.shown && isStill(this.shown.layers) ? "update_ratio" : "state";
  }

  /** It draws no scalars. */
  get names() {
    return [];
  }

  draw(scene) {
    this.scene = scene;
    const run = scene.runs.find(({ id }) => id === this.run) ?? scene.runs.find((each) => savesWork(workIn(each))) ?? scene.runs[0];
    this.shown = run;
    this.#offer(scene);
    const vectors = run?.layers.values.get(this.quantity) ?? [];
    this.vectors = vectors;
    this.stages = run ? stagesOf(run.events) : [];
    this.done = this.quantity === "state" && vectors.length ? workIn(run) : null;
    say(this.work, run ? this.#words(run) : "");
    this.work.hidden = !vectors.length;
    this.empty.hidden = vectors.length > 0;
    say(this.empty, vectors.length ? "" : emptyWords(scene.runs, "What each layer does will appear here: which run, which are skipped, which train."));
    this.scale = this.quantity === "state" ? null : run?.layers.memo(this.quantity, () => scaleOf(vectors, PER_LAYER[this.quantity]?.scale === "log")) ?? scaleOf([]);
    this.#legend();
    if (this.panel.asTable) return this.panel.drawTable();
    this.#paint(scene, run);
    this.canvas.setAttribute("aria-label", this.#label(run));
  }

  /** What stands below the map: the work that was done, or what is drawn; and how many steps a column stands for. */
  #words({ layers }) {
    if (this.done) return workWords(this.done) + layers.memo("columns", () => columnWords(layers.steps.view()));
    return meaning(this.quantity) + columnWords(layers.measured(this.quantity));
  }

  /** Another plot's pointer is at this x (null: nowhere any more). */
  point(x) {
    const g = this.geometry;
    const at = x === null || !g ? -1 : this.#place(g, x);
    this.line.hidden = !g || at < LEFT_AXIS || at > LEFT_AXIS + g.inner || this.panel.asTable;
    if (this.line.hidden) return;
    this.line.style.left = `${at}px`;
    this.line.style.top = `${TOP}px`;
    this.line.style.height = `${g.below - TOP}px`;
  }

  close() {
    this.panel.close();
  }

  #area() {
    const { geometry: g, scene } = this;
    return g && { left: LEFT_AXIS, width: g.inner, from: g.from, to: g.to, extent: extentOf(scene.runs, scene.x) };
  }

  #leave() {
    this.readout.hidden = true;
    this.monitor.point(null, this);
  }

  #set(changes) {
    Object.assign(this, changes);
    this.readout.hidden = true;
    this.monitor.redraw(true);
  }

  #offer({ runs }) {
    this.runChoice.node.hidden = runs.length < 2;
    this.runChoice.set(runs.map((run) => [run.id, shortName(run.name)]), this.shown?.id);
    const { layers } = this.shown ?? {};
    const told = (name) => name === "state" || layers.values.get(name).some((vector) => vector.some(Number.isFinite));
    const names = layers ? [...layers.memo("told", () => [...layers.values.keys()].filter(told))] : [];
    if (!names.includes(this.quantity)) names.push(this.quantity);
    this.choice.set(names.map((name) => [name, nameOf(name)]), this.quantity);
  }

  #legend() {
    if (this.quantity === "state") {
      // Only what occurs: a legend of states that this method does not know explains nothing.
      const seen = this.shown?.layers.memo("seen", () => new Set(this.vectors.flatMap((vector) => [...vector]))) ?? new Set();
      const present = LAYER_STATES.filter((_, code) => seen.has(code));
      return this.panel.setLegend(present.map((state) => ({ ink: state, text: state.words })));
    }
    const { low, high, log } = this.scale;
    const text = Number.isFinite(low) ? `${short(low)} to ${short(high)}${log ? ", log" : ""}` : "no values yet";
    return this.panel.setLegend([{ ramp: RAMP_COLOURS, text: `${nameOf(this.quantity)}: ${text}`, help: PER_LAYER[this.quantity]?.help }]);
  }

  #geometry(scene, run) {
    const width = Math.floor(this.panel.plot.clientWidth);
    const layers = run?.layers.layers ?? 0;
    const chosen = this.monitor.heightOf("layers", this.panel.plot);
    const titled = chosen === null || isTitled(chosen);
    const bottom = BOTTOM + (titled ? TITLE_SIZE : 0);
    const around = TOP + bottom + (this.done ? COUNTS_HEIGHT : 0);
    const [room, most] = chosen ? [chosen - around, 80] : [220, 26];
    const row = Math.max(5, Math.min(most, Math.floor(room / Math.max(1, layers))));
    const [from, to] = xRange({ window: scene.window, extent: extentOf(scene.runs, scene.x) });
    return { width, layers, row, from, to, titled, bottom, inner: Math.max(1, width - LEFT_AXIS - MAIN_RIGHT) };
  }

  #paint(scene, run) {
    const g = this.#geometry(scene, run);
    if (g.width < 80) return;
    this.marks = run ? marksOf([run], scene) : [];
    this.geometry = g;
    g.below = TOP + g.layers * g.row + (this.done ? COUNTS_HEIGHT : 0);
    // Without a record yet, room for the line that says what will come.
    const height = this.vectors.length ? g.below + g.bottom : EMPTY;
    const ratio = devicePixelRatio;
    // Assigning a size clears a canvas, even the same one; that is wanted here.
    this.canvas.width = Math.round(g.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const ctx = this.canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    if (!this.vectors.length || !run.clock.has(scene.x)) return;
    const xs = run.clock.at(columnEnds(run.layers.steps.view(), this.stages), scene.x);
    this.columns = columnsOfPixels(xs, Math.round(g.inner * ratio), g.from, g.to);
    ctx.imageSmoothingEnabled = false;
    const image = this.done ? this.#inks(g, ratio) : this.#image(g);
    ctx.drawImage(image, LEFT_AXIS, TOP, g.inner, g.layers * g.row);
    if (!this.done) this.#separate(ctx, g, scene);
    this.#axes(ctx, g, scene);
    if (this.done) {
      drawCounts(ctx, { ...g, top: TOP + g.layers * g.row }, this.columns, this.done, scene.theme);
      drawShares(ctx, { ...g, top: TOP, left: LEFT_AXIS + g.inner }, this.done, scene.theme);
    }
    for (const mark of this.marks) this.#mark(ctx, g, mark);
    this.#names(ctx, g, scene);
    this.#frame(ctx, g, scene);
  }

  /** States in their shapes, in pixels of the device. */
  #inks(g, ratio) {
    const height = Math.round(g.row * ratio);
    const image = new OffscreenCanvas(this.columns.length, g.layers * height);
    const ctx = image.getContext("2d");
    const pixels = ctx.createImageData(image.width, image.height);
    const words = new Uint32Array(pixels.data.buffer);
    const colours = LAYER_STATES.map(({ colour, opacity }) => {
      const [r, g, b] = rgb(colour);
      return new Uint32Array(Uint8Array.of(r, g, b, Math.round(255 * opacity)).buffer)[0];
    });
    const inks = inkRows(height);
    for (let p = 0; p < image.width; p++) {
      const vector = this.vectors[this.columns[p]];
      if (!vector) continue;
      for (let layer = 0; layer < g.layers; layer++) {
        const code = vector[layer];
        // The first layer is the lowest row: that is how a network is drawn.
        const top = (g.layers - 1 - layer) * height;
        for (const y of inks[code] ?? []) words[(top + y) * image.width + p] = colours[code];
      }
    }
    ctx.putImageData(pixels, 0, 0);
    return image;
  }

  #image(g) {
    const image = new OffscreenCanvas(this.columns.length, g.layers);
    const ctx = image.getContext("2d");
    const pixels = ctx.createImageData(image.width, g.layers);
    const words = new Uint32Array(pixels.data.buffer);
    const colours = shades();
    for (let p = 0; p < image.width; p++) {
      const vector = this.vectors[this.columns[p]];
      if (!vector) continue;
      for (let layer = 0; layer < g.layers; layer++) {
        const place = this.scale.place(vector[layer]);
        if (!Number.isNaN(place)) words[(g.layers - 1 - layer) * image.width + p] = colours[Math.round(place * (colours.length - 1))];
      }
    }
    ctx.putImageData(pixels, 0, 0);
    return image;
  }

  #separate(ctx, g, scene) {
    if (g.row < 9) return;
    ctx.fillStyle = scene.theme.ground;
    for (let layer = 1; layer < g.layers; layer++) ctx.fillRect(LEFT_AXIS, TOP + layer * g.row - 0.5, g.inner, 1);
  }

  #axes(ctx, g, scene) {
    ctx.font = scene.theme.font;
    ctx.fillStyle = scene.theme.muted;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const stride = Math.ceil(13 / g.row);
    for (let layer = 0; layer < g.layers; layer += stride) {
      ctx.fillText(String(layer + 1), LEFT_AXIS - 8, TOP + (g.layers - layer - 0.5) * g.row);
    }
    ctx.textBaseline = "alphabetic";
    ctx.fillText("layer", LEFT_AXIS - 8, TOP - 5);
    ctx.textAlign = "center";
    if (g.titled) ctx.fillText(X_TITLES[scene.x], LEFT_AXIS + g.inner / 2, g.below + 17 + TITLE_SIZE);
    for (const tick of xTicks(scene.x, g.from, g.to, g.inner)) {
      const x = LEFT_AXIS + ((tick - g.from) / (g.to - g.from)) * g.inner;
      const text = scene.x === "seconds" ? duration(tick) : short(tick);
      if (x >= LEFT_AXIS && x <= LEFT_AXIS + g.inner) ctx.fillText(text, x, g.below + 17);
    }
  }

  #mark(ctx, g, mark) {
    const x = this.#place(g, mark.x);
    if (x < LEFT_AXIS || x > LEFT_AXIS + g.inner) return;
    ctx.save();
    // Two lines: whatever colours meet there, one of them is seen.
    for (const [stroke, width] of [[this.scene.theme.ground, mark.stage ? 3 : 0], [this.scene.theme.ink, mark.stage ? 1.5 : 1]]) {
      if (!width) continue;
      ctx.strokeStyle = stroke;
      ctx.lineWidth = width;
      ctx.globalAlpha = mark.stage ? 0.9 : 0.6;
      ctx.setLineDash(mark.stage ? [5, 3] : [2, 3]);
      ctx.beginPath();
      ctx.moveTo(x, TOP);
      ctx.lineTo(x, g.below);
      ctx.stroke();
    }
    ctx.restore();
  }

  #names(ctx, g, scene) {
    ctx.font = scene.theme.font;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const inside = inSight(this.marks, (x) => this.#place(g, x), LEFT_AXIS, LEFT_AXIS + g.inner);
    const texts = boundaryLabels(inside, (text) => ctx.measureText(text).width, g.width - (this.done ? MAIN_RIGHT : 0));
    ctx.fillStyle = scene.theme.muted;
    for (const { text, place } of texts) ctx.fillText(text, place + 2, TOP - 5);
  }

  #place(g, x) {
    return LEFT_AXIS + ((x - g.from) / (g.to - g.from)) * g.inner;
  }

  #frame(ctx, g, scene) {
    ctx.strokeStyle = scene.theme.grid;
    ctx.lineWidth = 1;
    ctx.strokeRect(LEFT_AXIS - 0.5, TOP - 0.5, g.inner + 1, g.layers * g.row + 1);
  }

  #point(px, py) {
    const g = this.geometry;
    const inside = g && px >= LEFT_AXIS && px < LEFT_AXIS + g.inner && py >= TOP && py < TOP + g.layers * g.row;
    const column = inside ? this.columns[Math.floor((px - LEFT_AXIS) * devicePixelRatio)] : undefined;
    if (inside) this.monitor.point(g.from + ((px - LEFT_AXIS) / g.inner) * (g.to - g.from), this);
    if (column === undefined || column < 0) {
      this.readout.hidden = true;
      return;
    }
    this.#read(column, g.layers - 1 - Math.floor((py - TOP) / g.row), px, py);
  }

  #key(event) {
    if (this.gestures.key(event)) return;
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!move || !this.vectors?.length) return;
    event.preventDefault();
    const g = this.geometry;
    const [pixel, layer] = this.cursor ?? [this.columns.findLastIndex((c) => c >= 0) / devicePixelRatio, 0];
    const to = [Math.min(g.inner - 1, Math.max(0, pixel + (move[0] * g.inner) / 100)), Math.min(g.layers - 1, Math.max(0, layer + move[1]))];
    this.cursor = to;
    this.#point(LEFT_AXIS + to[0], TOP + (g.layers - to[1] - 0.5) * g.row);
    this.monitor.tell(this.readout);
  }

  #read(column, layer, px, py) {
    const { layers } = this.shown;
    const step = layers.steps.data[column];
    const code = layers.values.get("state")?.[column]?.[layer];
    const said = code === undefined ? "" : `: ${sentence(code, layer + 1, copiesAt(this.stages, step))}`;
    const rows = [el("div", { class: "wb-readout-x", text: `Layer ${layer + 1} at step ${whole(step)}${said}` })];
    if (this.scene.x !== "step") {
      const at = xValue(this.shown.clock.at(Float64Array.of(step), this.scene.x)[0], this.scene.x);
      rows.push(el("div", {}, el("span", { text: "after" }), el("b", { text: at })));
    }
    for (const [name, vectors] of layers.values) {
      const text = name === "state" ? "–" : short(vectors[column]?.[layer]);
      if (text !== "–") rows.push(el("div", {}, el("span", { text: nameOf(name) }), el("b", { text })));
    }
    this.readout.replaceChildren(...rows);
    this.readout.hidden = false;
    placeBeside(this.readout, this.panel.plot, px, py);
  }

  #label(run) {
    const states = run?.layers.values.get("state")?.at(-1);
    if (!states) return "Layer activity. No record yet.";
    const counts = LAYER_STATES.map(({ name }, i) => [name, [...states].filter((s) => s === i).length]).filter(([, n]) => n);
    return `Layer activity of ${run.name}, latest record: ${counts.map(([word, n]) => `${n} ${word}`).join(", ")}. ${this.done ? `${workWords(this.done)}. ` : ""}Arrow keys read values.`;
  }

  #picture() {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    return { title: `Layer activity: ${nameOf(this.quantity)}`, height, body: (full, _, top) => canvasSvg(canvas.toDataURL(), (full - width) / 2, top, width, height) };
  }

  #table() {
    if (!this.shown) return { head: ["layer"], rows: [], note: "Nothing recorded yet.", part: false };
    const { layers } = this.shown;
    const names = [...layers.values.keys()];
    const rows = [];
    for (let layer = layers.layers - 1; layer >= 0; layer--) {
      const cells = names.map((name) => {
        const value = layers.values.get(name).at(-1)?.[layer];
        return name === "state" ? (LAYER_STATES[value]?.words ?? "–") : short(value);
      });
      rows.push([String(layer + 1), ...cells]);
    }
    const note = layers.length ? `Latest record, step ${layers.steps.last}` : "Nothing recorded yet.";
    return { head: ["layer", ...names.map((name) => nameOf(name))], rows, note, part: layers.length > 1 };
  }
}
