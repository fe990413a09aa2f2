// One line per run: where it stands, its latest numbers, and the buttons that reach it.

import { el, say } from "../../dom.js";
import { clock, duration, loss, percent, secondsLeft, short, standing } from "../../format.js";

import { answerInWords } from "../../steering.js";
import { SteerPanel } from "./steer.js";
import { lineSample } from "../samples.js";

const SILENT_MS = 10000;

export class StatusView {
  constructor(monitor) {
    this.monitor = monitor;
    this.root = el("div", { class: "wb-runs", role: "list" });
    this.lines = [];
    this.key = "";
  }

  draw(scene) {
    const key = JSON.stringify([scene.runs.map((run) => [run.id, run.name]), scene.colours.dark]);
    if (key !== this.key) {
      this.key = key;
      // A line that stays is not made anew: somebody may be typing in it.
      const old = new Map(this.lines.map((line) => [line.key, line]));
      this.lines = scene.runs.map((run, i) => {
        const same = JSON.stringify([run.id, run.name, i, scene.colours.dark]);
        const line = old.get(same) ?? new StatusLine(this.monitor, run, i, scene.colours, same);
        old.delete(same);
        return line;
      });
      for (const line of old.values()) line.close();
      const focused = document.activeElement;
      this.root.replaceChildren(...this.lines.map((line) => line.root));
      // Moving an element takes the focus from what is in it.
      if (this.root.contains(focused)) focused.focus();
    }
    this.lines.forEach((line, i) => line.draw(scene.runs[i], scene));
  }

  notice(i, text, error) {
    const line = this.lines[i] ?? this.lines[0];
    line?.notice(text, error);
  }

  close() {
    for (const line of this.lines) line.close();
  }
}

class StatusLine {
  constructor(monitor, run, i, colours, key) {
    this.monitor = monitor;
    this.key = key;
    this.i = i;
    this.asking = false;
    this.pill = el("span", { class: "wb-pill" });
    this.place = el("span", { class: "wb-place" });
    this.fill = el("div", { class: "wb-fill" });
    this.bar = el("div", { class: "wb-bar", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100", "aria-label": `Progress of ${run.name}` }, this.fill);
    this.numbers = ["loss", "held-out", "tokens/s", "time left"].map((label) => {
      const value = el("b", { text: "–" });
      return { value, label, root: el("div", { class: "wb-number" }, el("span", { text: label }), value) };
    });
    this.buttons = el("div", { class: "wb-buttons" });
    this.message = el("p", { class: "wb-message", hidden: true });
    this.said = el("p", { class: "wb-message", hidden: true, role: "status" });
    const redraw = () => monitor.redraw();
    this.steer = new SteerPanel(monitor.steering, run.name, redraw, (made) => monitor.session.watch(made));
    this.root = el(
      "div",
      { class: "wb-run", role: "listitem" },
      el("div", { class: "wb-who" }, lineSample({ stroke: colours.run(i), dash: colours.dash(i), width: 3 }), el("span", { class: "wb-name", text: run.name, title: run.id }), this.pill),
      el("div", { class: "wb-progress" }, this.bar, this.place),
      el("div", { class: "wb-numbers" }, ...this.numbers.map((number) => number.root)),
      el("div", { class: "wb-reach" }, this.buttons, this.steer.toggle),
      this.message,
      this.said,
      this.steer.root,
    );
  }

  close() {
    this.steer.close();
  }

  draw(run, scene) {
    const { status } = run;
    this.run = run;
    say(this.pill, status.status);
    this.pill.className = `wb-pill wb-${status.status}`;
    const share = status.status === "finished" ? 1 : (status.progress ?? 0);
    this.fill.style.transform = `scaleX(${Math.min(1, Math.max(0, share))})`;
    this.bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    say(this.place, standing(run));
    this.bar.setAttribute("aria-valuetext", `${standing(run)}, ${percent(share)}`);
    this.#numbers(run);
    this.#message(run, scene);
    this.#offer(run);
    this.steer.draw(run, scene);
  }

  notice(text, error) {
    say(this.said, text);
    this.said.hidden = !text;
    this.said.classList.toggle("wb-bad", Boolean(error));
  }

  #numbers(run) {
    const { status } = run;
    const last = run.final ? duration(status.seconds) : duration(secondsLeft(status));
    // Behind the number, with "learned": some words are names of floors, too, and the number is not the floor's.
    const heldout = loss(status.heldout_loss) + (status.learned ? ` · learned: ${status.learned}` : "");
    const texts = [loss(status.loss), heldout, short(status.tokens_per_second), last];
    this.numbers.forEach((number, k) => say(number.value, texts[k]));
    this.numbers[1].root.title = status.score ?? "";
    say(this.numbers[3].root.firstChild, run.final ? "took" : "time left");
  }

  #message(run, { now, kernelSilentSince, live }) {
    const { status } = run;
    const silence = status.silent_seconds ? run.statusAt - 1000 * status.silent_seconds : null;
    const since = kernelSilentSince ?? (silence !== null && now - silence > SILENT_MS ? silence : null);
    let text = run.final ? status.error || "" : status.message || "";
    if (text === status.status) text = "";
    if (!live) text = "saved picture: the kernel has not answered";
    else if (!run.final && since !== null) text = `no news since ${clock(since)}${text ? ` · ${text}` : ""}`;
    say(this.message, text);
    this.message.hidden = !text;
    this.message.classList.toggle("wb-bad", Boolean(status.error && run.final));
  }

  #offer(run) {
    const { status } = run.status;
    let offers = [];
    if (!this.monitor.live) offers = [];
    else if (this.asking && !run.final) offers = ["really", "keep"];
    else if (["starting", "running"].includes(status)) offers = ["pause", "stop"];
    else if (status === "paused") offers = ["resume", "stop"];
    // A stalled run answers when it goes on.
    else if (["queued", "stalled"].includes(status)) offers = ["stop"];
    else if (["stopped", "lost", "failed"].includes(status)) offers = ["resume"];
    const key = offers.join();
    if (key === this.buttons.dataset.key) return;
    this.buttons.dataset.key = key;
    const held = this.buttons.contains(document.activeElement);
    this.buttons.replaceChildren(...offers.map((offer) => this.#button(offer)));
    if (held) this.buttons.querySelector("button")?.focus();
  }

  #button(offer) {
    const does = {
      pause: ["Pause", () => this.#send("pause")],
      resume: ["Resume", () => this.#send("resume")],
      stop: ["Stop…", () => this.#ask(true)],
      really: ["Stop this run", () => this.#ask(false, "stop")],
      keep: ["Keep training", () => this.#ask(false)],
    };
    const [text, click] = does[offer];
    const attributes = { type: "button", text, "aria-label": `${text.replace("…", "")}: ${this.run.name}` };
    if (offer === "really") attributes.class = "wb-danger";
    const keydown = (event) => event.key === "Escape" && this.#ask(false);
    return el("button", { ...attributes, on: { click, keydown } });
  }

  #ask(asking, verb = null) {
    this.asking = asking;
    if (verb) this.#send(verb);
    this.#offer(this.run);
  }

  #send(verb) {
    this.monitor.steering.request(this.run, { verb }, (answer) => {
      this.notice(answerInWords(verb, answer), answer.error);
      this.monitor.redraw();
    });
  }
}
