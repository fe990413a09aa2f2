// The widget: one session per model (session.js), any number of views of it (panels under one root).

import "uplot/dist/uPlot.min.css";
import "./monitor.css";
import "../run_name.css";

import { csvOf } from "./csv.js";
import { lacking } from "./detail.js";
import { download, fileName, whose } from "../download.js";
import { el, rowsOf, say, segments, themeOf, watchTheme } from "../dom.js";
import { loss, short, speedSpan, progressText } from "../format.js";
import { AXES, palette } from "../palette.js";
import { roving } from "../roving.js";
import { separator } from "../separator.js";
import { FigurePlace } from "./figure_place.js";
import { Layout, MAIN } from "./layout.js";
import { heightLeft, paneHeight, paneOf, scrollToTop } from "./pane.js";
import { interpolate } from "./series.js";
import { Session } from "../session.js";
import { outlived } from "../steering.js";
import { EventsView } from "./views/events.js";
import { LayersView } from "./views/layers.js";
import { LayoutMenu } from "./views/layout_menu.js";
import { LossView } from "./views/loss.js";
import { extentOf } from "./views/pictures.js";
import { RunTable } from "./views/run_table.js";
import { ScalarView } from "./views/scalar.js";
import { SpeedView } from "./views/speed.js";
import { Welcome } from "./views/welcome.js";
import { followed, translated } from "./window.js";

const DRAW_EVERY_MS = 90;
const SPEAK_EVERY_MS = 15000;
/** A plot lower than this shows no curve; then it stands beyond the edge of the pane, and is scrolled to. */
const LEAST_PX = 150;
/** Of Watch and Try, which stand above in the Lab's pane (lab/try.css). */
const TABS_PX = 22;

/** One view of a session. */
class Monitor {
  constructor(session, model, host) {
    this.session = session;
    this.model = model;
    this.layout = new Layout(storage());
    this.large = null;
    this.range = null;
    this.extent = null;
    this.hidden = new Set();
    this.zoom = (range) => {
      this.range = range;
      this.redraw(true);
    };
    this.window = () => this.range;
    this.spokenAt = 0;
    this.drawnAt = 0;
    this.pending = 0;
    this.#build(host);
    this.listener = (notice) => (notice ? this.#heard(notice) : this.redraw());
    session.listeners.add(this.listener);
    this.#watchPage();
    session.ask(true);
    this.redraw();
  }

  /** The horizontal axis of all plots. */
  get x() {
    return this.layout.now.x;
  }

  get runs() {
    return this.session.store.runs;
  }

  get live() {
    return this.session.store.live;
  }

  get steering() {
    return this.session.steering;
  }

  /** Ask for scalars that are not sent by themselves; those of no run, and those that are held, cost nothing. */
  want(names) {
    const missing = names.filter((name) => this.runs.some((run) => !run.series.has(name) && run.others.includes(name)));
    if (!missing.length) return;
    for (const name of missing) this.session.extra.add(name);
    this.session.ask(true);
  }

  /** Another plot is to show the same x (null: none). */
  point(x, source) {
    for (const view of this.panels) if (view !== source && view.curves !== source) view.point(x);
  }

  /** Hide a run in all plots, or show it again. */
  toggleRun(id) {
    if (!this.hidden.delete(id)) this.hidden.add(id);
    this.redraw(true);
  }

  /** Give one plot the whole view (its name), or show all again (null). */
  enlarge(name) {
    const pane = paneOf(this.root);
    if (!this.large) this.scrolled = pane.scrollTop;
    this.large = name;
    this.root.dataset.large = name ?? "";
    this.#arrange();
    this.root.scrollIntoView({ block: "nearest" });
    // Once it is drawn as high as it is to be.
    this.settleScroll = () => {
      if (name) scrollToTop(pane, this.panels.find(({ panel }) => panel.large).panel.root);
      else pane.scrollTop = this.scrolled;
    };
    this.redraw(true);
  }

  /**
   * Pixels that a plot is to be high: its panel fills the pane when it is large, else as somebody has dragged it, else as usual, or
   * a little less where that lets it end with the pane.
   */
  heightOf(name, plot, usual = null) {
    if (this.large === name) return Math.max(LEAST_PX, heightLeft(plot.closest(".wb-panel"), plot));
    const chosen = this.layout.now.heights[name];
    if (chosen || usual === null) return chosen ?? null;
    const left = heightLeft(this.root, plot) - (this.root.closest(".lab-watch") ? TABS_PX : 0);
    return left >= LEAST_PX ? Math.min(usual, left) : usual;
  }

  /** Why no figure can be made now; empty when one can. */
  whyNoFigure() {
    const { store } = this.session;
    if (store.kernelAt === -Infinity) return "needs a running kernel: run wb.compare(...) in a new cell";
    return store.strayed ? "the kernel is busy or gone" : "";
  }

  openFigure(request, opener = document.activeElement) {
    this.figured = request;
    const runs = this.scene.runs.map((run) => run.id);
    this.session.send({ type: "figure", x: this.x, dark: this.scene.theme.dark, window: this.range, ...request, runs: request.run ? [request.run] : runs });
    this.figure.expect(opener);
    this.note("the Plotly figure is being made");
  }

  /** Numbers of all that was recorded, also where the page holds less. */
  async saveCsv(what, names) {
    const runs = this.scene.runs;
    const downsampled = runs.some((run) => names.some((name) => run.series.get(name)?.coarse > -Infinity));
    let whole = null;
    if (downsampled) {
      this.note("asking for all records");
      whole = await this.session.everything(names);
      this.note(whole ? "" : "nobody answered: the file holds the downsampled curve");
    }
    const told = runs.map((run) => {
      const update = whole?.find(({ id }) => id === run.id);
      const held = new Map(names.map((name) => [name, run.series.get(name)?.merged()]).filter(([, series]) => series));
      const at = (steps, kind) => (update ? interpolate(steps, update.clock.step, update.clock[kind]) : run.clock.at(steps, kind));
      return { name: run.name, at, series: update?.series ?? held };
    });
    this.saveText(whole || !downsampled ? what : `${what}-downsampled`, csvOf(told, names));
  }

  saveText(what, text, runs = this.scene.runs) {
    download(fileName([what, ...whose(runs.map((run) => run.name))], "csv"), new Blob([text], { type: "text/csv;charset=utf-8" }));
  }

  /** Draw soon: at most every 90 ms for news, at once for what the user does, and never while the page is hidden. */
  redraw(now = false) {
    if (now && this.pending > 0) {
      clearTimeout(this.pending);
      this.pending = 0;
    }
    if (this.pending) return;
    const wait = now ? 0 : Math.max(0, DRAW_EVERY_MS - (performance.now() - this.drawnAt));
    const draw = () => {
      this.pending = -1;
      this.frame = requestAnimationFrame(() => {
        this.pending = 0;
        this.drawnAt = performance.now();
        this.#draw();
      });
    };
    if (wait) this.pending = setTimeout(draw, wait);
    else draw();
  }

  close() {
    clearTimeout(this.pending);
    cancelAnimationFrame(this.frame ?? 0);
    this.pending = -1;
    this.session.listeners.delete(this.listener);
    this.resizes.disconnect();
    this.endThemes();
    for (const view of this.views) view.close();
    this.root.remove();
  }

  #build(host) {
    this.table = new RunTable(this);
    this.panels = [LossView, SpeedView, ScalarView, LayersView, EventsView].map((View) => new View(this));
    this.welcome = new Welcome(() => this.session.send({ type: "example" }));
    this.layoutMenu = new LayoutMenu(this.layout, (whole) => this.#rearranged(whole));
    this.views = [this.table, this.layoutMenu, ...this.panels];
    const [lossView, speed, scalar, layers, events] = this.panels.map((view) => view.panel.root);
    const axes = AXES.map(({ name, short: words }) => [name, words]);
    this.axis = segments("Horizontal axis", axes, this.x, (x) => this.#turn(x));
    this.all = el("button", { type: "button", class: "wb-quiet", text: "Show all", title: "Show the whole run (Escape)", hidden: true, on: { click: () => this.zoom(null) } });
    this.advice = el("p", { class: "wb-advice", hidden: true });
    this.said = el("span", { class: "wb-said", role: "status" });
    this.spoken = el("div", { class: "wb-spoken", "aria-live": "polite" });
    const hint = el("span", { class: "wb-hint", text: "drag to zoom · Shift-drag to pan · double-click for all" });
    this.main = el("div", { class: "wb-main" }, lossView, layers);
    this.side = el("div", { class: "wb-side" }, this.table.steering, speed, scalar, events);
    this.grid = el("div", { class: "wb-grid" }, this.main, this.#border(), this.side);
    this.toolbar = el("div", { class: "wb-toolbar", role: "toolbar", "aria-label": "axis and layout of the plots" }, this.axis, this.all, this.layoutMenu.root, this.said, hint);
    this.settleToolbar = roving(this.toolbar, () => [...this.axis.children, this.all, this.layoutMenu.root.querySelector("button")].filter((one) => !one.hidden && !one.disabled));
    this.root = el("div", { class: "wb-monitor", "data-large": "", "data-lm-suppress-shortcuts": "true" }, this.welcome.root, this.table.root, this.advice, this.toolbar, this.grid, this.spoken);
    this.figure = new FigurePlace(this.root, () => (this.session.send({ type: "close-figure" }), this.note("")));
    this.#arrange();
    host.append(this.root);
  }

  /** Between the two columns. */
  #border() {
    const main = (value) => (this.layout.set({ main: value }), this.#arrange(), this.redraw(true));
    const at = ({ clientX }) => {
      const { left, width } = this.grid.getBoundingClientRect();
      return (100 * (clientX - left)) / width;
    };
    const { least, most, start } = MAIN;
    return separator({ label: "Width of the columns", vertical: true, least, most, step: 2, value: () => this.layout.now.main, at, move: main, reset: () => main(start), class: "wb-border wb-border-width" });
  }

  /** Show what the layout has open, as large as it has it. */
  #arrange() {
    for (const { panel } of this.panels) panel.arrange();
    this.grid.style.setProperty("--main", this.layout.now.main);
    const empty = (column) => [...column.children].every((part) => part.hidden);
    this.main.hidden = empty(this.main);
    this.side.hidden = empty(this.side);
    this.grid.classList.toggle("wb-one-column", this.main.hidden || this.side.hidden);
  }

  /** The layout has changed; `whole`: another one was chosen, in which no plot has the view for itself. */
  #rearranged(whole) {
    const { x } = this;
    if (whole) this.enlarge(null);
    for (const [i, { name }] of AXES.entries()) this.axis.children[i].setAttribute("aria-pressed", String(name === x));
    this.range = this.extent = null;
    this.#arrange();
    this.redraw(true);
  }

  #heard(notice) {
    if (notice.figure) return this.#opened(notice.figure);
    return this.note(notice.text, notice.error);
  }

  /** A line above the plots: what became of a request; of a run it goes with the next change of its state. */
  note(text, error = false, run = null) {
    this.noted = run && { id: run.id, status: run.status.status };
    for (const place of [this.said, this.welcome.said]) say(place, text);
    this.said.title = text;
    this.said.classList.toggle("wb-bad", Boolean(error));
  }

  /** A figure has been made: bring it into sight, and say so. */
  async #opened(title) {
    this.note((await this.figure.reveal(title)) ? `the Plotly figure "${title}" is open below the plots` : "");
  }

  /** Another horizontal axis, with the same stretch of the run in sight. */
  #turn(x) {
    const widest = this.runs.reduce((most, run) => ((run.clock.extent(this.x)?.[1] ?? -1) > (most?.clock.extent(this.x)?.[1] ?? -1) ? run : most), null);
    this.range = translated(this.range, widest?.clock, this.x, x);
    this.layout.set({ x });
    this.extent = null;
    this.redraw(true);
  }

  #watchPage() {
    // Widgets mount at width 0, and their cell changes width with the window and the side bars.
    this.resizes = new ResizeObserver(() => this.redraw());
    this.resizes.observe(this.root);
    this.endThemes = watchTheme(() => this.redraw());
  }

  #draw() {
    const theme = themeOf(this.root);
    this.root.dataset.theme = theme.dark ? "dark" : "light";
    const now = Date.now();
    const shown = this.runs.filter((run) => !this.hidden.has(run.id));
    const none = !this.runs.length;
    this.welcome.draw(none && this.live && this.model.get("example"));
    for (const part of [this.table.root, this.toolbar, this.grid]) part.hidden = none;
    const pane = paneHeight(this.root);
    this.root.style.setProperty("--pane", `${pane}px`);
    const extent = extentOf(shown, this.x);
    this.range = followed(this.range, this.extent, extent);
    this.extent = extent;
    const scene = {
      runs: this.runs,
      x: this.x,
      window: this.range,
      target: this.model.get("target_loss"),
      theme,
      colours: palette(theme.dark, this.runs.length === 1),
      pane,
      now,
      live: this.live,
      kernelSilentSince: this.session.store.silentSince(now),
    };
    say(this.advice, this.model.get("advice") ?? "");
    this.advice.hidden = !this.advice.textContent;
    this.all.hidden = !this.range;
    this.#offerAxes();
    const noted = this.noted && this.runs.find(({ id }) => id === this.noted.id);
    if (noted && outlived(this.noted.status, noted.status.status)) this.note("");
    this.settleToolbar();
    this.table.draw(scene);
    const turned = this.scene && this.scene.theme.dark !== theme.dark;
    this.scene = { ...scene, runs: shown };
    // The kernel writes its colours into it.
    if (turned && this.figure.open) this.openFigure(this.figured, this.figure.opener);
    // A steering panel that opens or closes may have the side column for itself.
    this.#arrange();
    const open = this.panels.filter(({ panel }) => !panel.root.hidden);
    for (const view of open) view.draw(this.scene);
    this.settleScroll?.();
    this.settleScroll = null;
    this.session.detail(lacking(this.runs, [...new Set(open.flatMap((view) => view.names))], this.range, this.x));
    this.#speak(now);
  }

  #offerAxes() {
    const flops = this.axis.querySelectorAll("button")[3];
    const told = this.runs.some((run) => run.clock.has("flops"));
    flops.disabled = this.runs.length > 0 && !told;
    flops.title = flops.disabled ? "these runs have not recorded their FLOPs" : "useful FLOPs of the model since the beginning";
  }

  /** For screen readers, at once: what the keys have just read from a plot. */
  tell(readout) {
    this.spokenAt = Date.now();
    say(this.spoken, rowsOf(readout).join(", "));
  }

  #speak(now) {
    if (now - this.spokenAt < SPEAK_EVERY_MS || !this.runs.length) return;
    this.spokenAt = now;
    const parts = this.runs.map(
      (run) => `${run.name}: ${run.status.status}, ${progressText(run)}, loss ${loss(run.status.loss)}, ${short(run.status.tokens_per_second)} tokens per second (${speedSpan(run)})`,
    );
    say(this.spoken, parts.join(". "));
  }
}

/** What the browser keeps for us; some front ends have nothing of the kind. */
function storage() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}

export default () => {
  let session = null;
  return {
    initialize({ model }) {
      session = new Session(model);
      return () => session.close();
    },
    render({ model, el: host }) {
      const monitor = new Monitor(session, model, host);
      return () => monitor.close();
    },
  };
};
