// The widget: one session per model (session.js), any number of views of it (panels under one root).

import "uplot/dist/uPlot.min.css";
import "./monitor.css";

import { lacking } from "./detail.js";
import { download, fileName } from "../download.js";
import { el, rowsOf, say, segments, themeOf } from "../dom.js";
import { loss, short, standing } from "../format.js";
import { AXES, palette } from "../palette.js";
import { interpolate } from "./series.js";
import { Session } from "../session.js";
import { EventsView } from "./views/events.js";
import { LayersView } from "./views/layers.js";
import { LossView } from "./views/loss.js";
import { csvOf, extentOf } from "./views/pictures.js";
import { RunsLegend } from "./views/runs_legend.js";
import { ScalarView } from "./views/scalar.js";
import { SpeedView } from "./views/speed.js";
import { StatusView } from "./views/status.js";
import { followed, translated } from "./window.js";

const DRAW_EVERY_MS = 90;
const SPEAK_EVERY_MS = 15000;

/** One view of a session. */
class Monitor {
  constructor(session, model, host) {
    this.session = session;
    this.model = model;
    this.x = "step";
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
  toggleRun(place) {
    if (!this.hidden.delete(place)) this.hidden.add(place);
    this.redraw(true);
  }

  /** Why no figure can be made now; empty when one can. */
  whyNoFigure() {
    const { store } = this.session;
    if (store.kernelAt === -Infinity) return "needs a running kernel: run this cell again";
    return store.strayed ? "the kernel is busy or gone" : "";
  }

  openFigure(request) {
    const runs = this.scene.runs.map((run) => run.id);
    this.session.send({ type: "figure", x: this.x, dark: this.scene.theme.dark, window: this.range, ...request, runs: request.run ? [request.run] : runs });
    this.#note("the figure is being made; it opens below this view");
  }

  /** Numbers of all that was recorded, also where the page holds less. */
  async saveCsv(what, names) {
    const runs = this.scene.runs;
    const thinned = runs.some((run) => names.some((name) => run.series.get(name)?.coarse > -Infinity));
    let whole = null;
    if (thinned) {
      this.#note("asking for all records");
      whole = await this.session.everything(names);
      this.#note(whole ? "" : "nobody answered: the file holds the thinned curve");
    }
    const told = runs.map((run) => {
      const update = whole?.find(({ i }) => i === run.place);
      const held = new Map(names.map((name) => [name, run.series.get(name)?.merged()]).filter(([, series]) => series));
      const at = (steps, kind) => (update ? interpolate(steps, update.clock.step, update.clock[kind]) : run.clock.at(steps, kind));
      return { name: run.name, at, series: update?.series ?? held };
    });
    this.saveText(whole || !thinned ? what : `${what}-thinned`, csvOf(told, names));
  }

  saveText(what, text) {
    download(fileName([what, ...this.scene.runs.slice(0, 2).map((run) => run.name)], "csv"), new Blob([text], { type: "text/csv;charset=utf-8" }));
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
    this.themes.disconnect();
    for (const view of this.views) view.close();
    this.root.remove();
  }

  #build(host) {
    this.status = new StatusView(this);
    this.panels = [LossView, SpeedView, ScalarView, LayersView, EventsView].map((View) => new View(this));
    this.views = [this.status, ...this.panels];
    const [lossView, speed, scalar, layers, events] = this.panels.map((view) => view.panel.root);
    this.axis = segments("Horizontal axis", AXES.map(({ name, short: words }) => [name, words]), this.x, (x) => this.#turn(x));
    this.legend = new RunsLegend(this);
    this.all = el("button", { type: "button", class: "wb-quiet", text: "Show all", title: "Show the whole run (Escape)", hidden: true, on: { click: () => this.zoom(null) } });
    this.advice = el("p", { class: "wb-advice", hidden: true });
    this.note = el("span", { class: "wb-said", role: "status" });
    this.spoken = el("div", { class: "wb-spoken", "aria-live": "polite" });
    const hint = el("span", { class: "wb-hint", text: "drag to zoom · Shift-drag to pan · Ctrl-wheel · double-click for all" });
    this.root = el(
      "div",
      { class: "wb-monitor", "data-lm-suppress-shortcuts": "true" },
      this.status.root,
      this.advice,
      el("div", { class: "wb-toolbar" }, this.axis, this.all, this.note, hint),
      this.legend.root,
      el("div", { class: "wb-grid" }, el("div", { class: "wb-main" }, lossView, layers), el("div", { class: "wb-side" }, speed, scalar, events)),
      this.spoken,
    );
    host.append(this.root);
  }

  #heard(notice) {
    if (notice.run === undefined) this.#note(notice.text, notice.error);
    else this.status.notice(notice.run, notice.text, notice.error);
  }

  #note(text, error = false) {
    say(this.note, text);
    this.note.classList.toggle("wb-bad", Boolean(error));
  }

  /** Another horizontal axis, with the same stretch of the run in sight. */
  #turn(x) {
    const widest = this.runs.reduce((most, run) => ((run.clock.extent(this.x)?.[1] ?? -1) > (most?.clock.extent(this.x)?.[1] ?? -1) ? run : most), null);
    this.range = translated(this.range, widest?.clock, this.x, x);
    this.x = x;
    this.extent = null;
    this.redraw(true);
  }

  #watchPage() {
    // Widgets mount at width 0, and their cell changes width with the window and the side bars.
    this.resizes = new ResizeObserver(() => this.redraw());
    this.resizes.observe(this.root);
    this.themes = new MutationObserver(() => this.redraw());
    this.themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  }

  #draw() {
    const theme = themeOf(this.root);
    this.root.dataset.theme = theme.dark ? "dark" : "light";
    const now = Date.now();
    const shown = this.runs.filter((run) => !this.hidden.has(run.place));
    const extent = extentOf(shown, this.x);
    this.range = followed(this.range, this.extent, extent);
    this.extent = extent;
    const scene = {
      runs: this.runs,
      x: this.x,
      window: this.range,
      target: this.model.get("target_loss"),
      theme,
      colours: palette(theme.dark),
      now,
      live: this.live,
      kernelSilentSince: this.session.store.silentSince(now),
    };
    say(this.advice, this.model.get("advice") ?? "");
    this.advice.hidden = !this.advice.textContent;
    this.all.hidden = !this.range;
    this.#offerAxes();
    this.status.draw(scene);
    this.legend.draw(scene);
    this.scene = { ...scene, runs: shown };
    for (const view of this.panels) view.draw(this.scene);
    this.session.detail(lacking(this.runs, [...new Set(this.panels.flatMap((view) => view.names))], this.range, this.x));
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
      (run) => `${run.name}: ${run.status.status}, ${standing(run)}, loss ${loss(run.status.loss)}, ${short(run.status.tokens_per_second)} tokens per second`,
    );
    say(this.spoken, parts.join(". "));
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
