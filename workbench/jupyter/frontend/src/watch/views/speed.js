// Speed: tokens per second and MFU; or where the time of a step goes; or memory; or, of several processes, who waits for whom.

import { dropdown } from "../../dom.js";
import { percent, short, speedSpan } from "../../format.js";
import { axisTitle, faded, faint, helpOf, SMOOTHING, SPEED_SECONDS, STEP_PARTS } from "../../palette.js";
import { interpolate } from "../series.js";
import { CurvesView } from "./curves_view.js";
import { latest, named, ofRun, recentSpeeds, smoothed } from "./pictures.js";
import { medianOf, SENDING, sendingOf, waitingNames, waitsOf } from "./waiting.js";

const MODES = [
  ["rate", "tokens/s, MFU"],
  ["split", "time of a step"],
  ["memory", "memory"],
];
const RANKS = ["ranks", "waiting by process"];
const TITLES = { rate: "Tokens per second", split: "Time of a step (ms)", memory: "Peak memory (GiB)", ranks: "Waiting for other processes (ms)" };
const WAITING_HELP = "in the step before, beyond the sending itself; 0: all others waited for this process";
const NAMES = {
  ranks: [],
  rate: ["tokens_per_second", "mfu"],
  split: STEP_PARTS.map(({ name }) => `${name}_ms`),
  memory: ["memory_gib"],
};

export class SpeedView extends CurvesView {
  constructor(monitor) {
    const choice = dropdown("What the speed panel shows", (mode) => this.keep({ mode, axis: undefined }));
    const runChoice = dropdown("Run whose step is shown", (id) => {
      this.run = id;
      monitor.redraw(true);
    });
    const panel = {
      title: "Speed",
      name: "speed",
      tools: [runChoice.node, choice.node],
      figure: () => ({ view: this.mode === "ranks" ? "ranks" : "speed" }),
      caption: () => TITLES[this.mode],
      height: 320,
      shows: () => this.shown,
      csv: () => monitor.saveCsv(this.mode === "rate" ? "speed" : this.mode, this.names),
    };
    super(monitor, panel, { heights: [180, 380] });
    Object.assign(this, { choice, runChoice });
    this.run = null;
    this.waiting = [];
  }

  get mode() {
    const { mode } = this.kept;
    return mode in NAMES ? mode : "rate";
  }

  get names() {
    return this.mode === "ranks" ? this.waiting.concat(this.waiting.length ? SENDING : []) : NAMES[this.mode];
  }

  draw(scene) {
    const { runs, x, colours, theme } = scene;
    this.scene = scene;
    const stepOf = runs.find((run) => run.id === this.run) ?? runs[0];
    const oneRun = ["split", "ranks"].includes(this.mode);
    this.waiting = stepOf ? waitingNames(stepOf) : [];
    this.monitor.want(this.names);
    const together = this.mode === "ranks" || runs.some((run) => waitingNames(run).length);
    this.choice.set(together ? [...MODES, RANKS] : MODES, this.mode);
    this.runChoice.node.hidden = !oneRun || runs.length < 2;
    this.runChoice.set(runs.map((run) => [run.id, run.name]), stepOf?.id);
    this.shown = oneRun ? [stepOf].filter(Boolean) : runs;
    const { shown } = this;
    const linesOf = { split: (run) => splitOf(run, x), ranks: (run) => waitsOf(run, x, colours) }[this.mode];
    this.lines = linesOf ? shown.flatMap(linesOf) : shown.flatMap((run) => this.#linesOf(run, scene));
    // A table lists each part alone, not stacked.
    this.own = this.lines.filter((line) => !line.quiet).map((line) => (line.own ? { ...line, y: line.own } : line));
    const mfu = this.lines.some((line) => line.scale === "right");
    this.#legend(runs.length === 1 ? colours.run(runs[0].place) : theme.muted, mfu);
    const picture = {
      left: { format: short, title: this.mode === "ranks" ? "ms" : axisTitle(this.names[0]), zero: true },
      // More headroom than on the left: both follow the step time, and would lie on each other.
      right: mfu ? { format: (share) => `${short(100 * share)}%`, zero: true, headroom: 1.6, ticks: 4 } : null,
      label: this.#label(runs),
      nothing: this.nothing(runs, `${TITLES[this.mode]} will appear here step by step.`),
    };
    this.show(scene, picture, shown);
  }

  #linesOf(run, { runs, x, colours }) {
    const stroke = colours.run(run.place);
    const dash = colours.dash(run.place);
    const whose = ofRun(runs, run);
    if (this.mode === "memory") {
      const memory = run.line("memory_gib", x);
      return memory ? [{ ...memory, ...whose, name: named(runs, run, "memory"), stroke, dash, width: 1.8, format: gib }] : [];
    }
    const lines = [];
    const tokens = run.line("tokens_per_second", x);
    const mfu = run.line("mfu", x);
    if (tokens) {
      lines.push({ ...tokens, ...whose, name: named(runs, run, "tokens/s, each record"), stroke: faded(stroke, faint(runs.length, colours.dark)), edge: stroke, width: 1, format: short, quiet: runs.length > 1 });
      lines.push({ ...tokens, ...whose, y: recentSpeeds(run.clock, tokens), smooth: true, name: named(runs, run, `tokens/s, last ${SPEED_SECONDS} s`), stroke, dash, width: 1.8, format: short });
    }
    if (mfu) {
      const y = smoothed(mfu, SMOOTHING, true);
      lines.push({ ...mfu, ...whose, y, smooth: true, what: "MFU", name: named(runs, run, "MFU"), stroke: faded(stroke, 0.8), dash: [2, 3], width: 1.2, scale: "right", format: percent });
    }
    return lines;
  }

  #legend(stroke, mfu) {
    if (this.mode === "split") {
      const drawn = this.lines.filter((line) => line.fill).reverse();
      return this.panel.setLegend(drawn.map((line) => ({ line: { fill: line.fill }, text: `${line.name} ${short(line.median)} ms`, help: helpOf(`${line.name}_ms`) })));
    }
    if (this.mode === "ranks") {
      const items = this.lines.map((line) => ({ line: { stroke: line.stroke, dash: line.dash, width: 1.8 }, text: line.told, help: WAITING_HELP }));
      const sending = this.shown.map(sendingOf).filter(Boolean);
      return this.panel.setLegend([...items, ...sending.map((text) => ({ text, help: helpOf("sent_mib") }))]);
    }
    if (this.mode === "memory") return this.panel.setLegend([{ line: { stroke, width: 1.8 }, text: "peak memory so far (GiB)", help: helpOf("memory_gib") }]);
    const items = [
      { line: { stroke: faded(stroke, 0.6), width: 1 }, text: "tokens/s, each record", help: helpOf("tokens_per_second") },
      { line: { stroke, width: 2.2 }, text: `over the last ${SPEED_SECONDS} s` },
    ];
    if (mfu) items.push({ line: { stroke, width: 1.2, dash: [2, 3] }, text: "MFU (right axis)", help: helpOf("mfu") });
    return this.panel.setLegend(items);
  }

  #label(runs) {
    const texts = {
      rate: (run) => `${short(run.status.tokens_per_second)} tokens per second (${speedSpan(run)}), MFU ${percent(latest(run, "mfu"))}`,
      split: (run) => STEP_PARTS.map(({ name }) => `${name} ${short(latest(run, `${name}_ms`))} ms`).join(", "),
      memory: (run) => gib(latest(run, "memory_gib")),
      ranks: (run) => (run === this.shown[0] ? this.lines.map(({ told }) => told).join(", ") : ""),
    };
    return `${TITLES[this.mode]}. ${runs.map((run) => `${run.name}: ${texts[this.mode](run)}`).join("; ")}.`;
  }
}

/** Parts of a step stacked, the topmost first, so that each is drawn below the next. */
function splitOf(run, x) {
  const parts = STEP_PARTS.map((part) => ({ ...part, line: run.line(`${part.name}_ms`, x) })).filter(({ line }) => line);
  if (!parts.length) return [];
  const base = parts[0].line;
  const sum = new Float64Array(base.x.length);
  const lines = parts.map(({ name, colour, line }) => {
    // Downsampled, each part has kept records of its own: all are read at those of the first.
    const smooth = smoothed(line, SMOOTHING);
    const own = line === base ? smooth : interpolate(base.steps, line.steps, smooth);
    own.forEach((value, i) => (sum[i] += Number.isFinite(value) ? value : 0));
    return { x: base.x, y: sum.slice(), own, steps: base.steps, name, stroke: colour, fill: colour, width: 0.5, format: (ms) => `${short(ms)} ms`, median: medianOf(line.y) };
  });
  return lines.reverse();
}


function gib(value) {
  return value === null ? "–" : `${short(value)} GiB`;
}
