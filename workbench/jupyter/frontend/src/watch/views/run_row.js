// One run in one line: its line in the plots, state, latest numbers, and the buttons that reach it.

import { el, say } from "../../dom.js";
import { clock, duration, heldout, loss, partScore, queueText, secondsLeft, shareDone, short, speedSpan, progressText, took, whyNotResumed } from "../../format.js";
import { LEARNED_BRIEFLY } from "../../palette.js";
import { answerInWords, ASKABLE } from "../../steering.js";
import { icon } from "../icons.js";
import { nameNode } from "../../run_name.js";
import { lineSample } from "../samples.js";
import { SteerPanel } from "./steer.js";

const SILENT_MS = 10000;
const BUTTONS = {
  pause: { text: "Pause", title: "Pause training; Resume goes on from here. It keeps its turn: runs in the queue go on waiting" },
  resume: { text: "Resume", title: "Go on training" },
  stop: { text: "Stop", title: "End the run; asks first" },
};
const FROM_START = "Begin again at step 0: it left no checkpoint";

export class RunRow {
  constructor(monitor, run, key) {
    Object.assign(this, { monitor, key });
    // Of its line in the plots: in its row, and in the panel that steers it.
    this.samples = [el("span"), el("span")];
    this.eye = el("button", { type: "button", class: "wb-tiny", on: { click: () => monitor.toggleRun(this.run.id) } });
    this.pill = el("span", { class: "wb-pill" });
    this.place = el("span", { class: "wb-place" });
    this.message = el("span", { class: "wb-message" });
    this.told = el("div", { class: "wb-progress-text" }, this.place, this.message);
    this.fill = el("div", { class: "wb-fill" });
    this.bar = el("div", { class: "wb-bar", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100", "aria-label": `Progress of ${run.name}` }, this.fill);
    this.numbers = Object.fromEntries(["loss", "heldout", "speed", "time"].map((name) => [name, el("span")]));
    this.learned = el("td", { class: "wb-col-learned" });
    this.buttons = el("span", { class: "wb-buttons" });
    this.steer = new SteerPanel(monitor.steering, run.name, () => monitor.redraw(), (made) => monitor.session.watch(made), this.samples[1], () => monitor.table.makeRoom(this));
    this.reason = el("p", { class: "wb-reason" });
    this.edit = el("button", { type: "button", text: "Edit and relaunch", title: "Open its recipe in the forms: change what made it fail, then launch it", on: { click: () => monitor.session.send({ type: "edit", run: this.run.id }) } });
    /** Below the line of a run that failed: why; in whole where it is watched alone, else in one line, for the others to stay in sight. */
    this.why = el("tr", { class: "wb-why", hidden: true }, el("td", { colspan: "10" }, el("div", {}, this.edit, this.reason)));
    this.heldout = el("td", { class: "wb-number wb-col-heldout" }, this.numbers.heldout);
    const name = nameNode(run.name, `${run.name}\n${run.id}`);
    name.classList.add("wb-name");
    this.root = el(
      "tr",
      { class: "wb-run", "data-run": run.id },
      el("td", { class: "wb-col-eye" }, this.eye),
      el("td", { class: "wb-col-name", role: "rowheader" }, el("div", { class: "wb-who" }, this.samples[0], name)),
      el("td", { class: "wb-col-state" }, this.pill),
      el("td", { class: "wb-col-progress" }, el("div", { class: "wb-progress" }, this.told, this.bar)),
      el("td", { class: "wb-number wb-col-loss" }, this.numbers.loss),
      this.heldout,
      this.learned,
      el("td", { class: "wb-number wb-col-speed" }, this.numbers.speed),
      el("td", { class: "wb-number wb-col-time" }, this.numbers.time),
      el("td", { class: "wb-col-buttons" }, el("div", { class: "wb-reach" }, this.buttons, this.steer.toggle)),
    );
  }

  close() {
    this.steer.close();
  }

  /** Draws the samples of its line as it is drawn now. */
  paint(place, colours) {
    this.samples = this.samples.map((old) => {
      const sample = lineSample({ stroke: colours.run(place), dash: colours.dash(place), width: 3 });
      old.replaceWith(sample);
      return sample;
    });
  }

  draw(run, scene) {
    const { status } = run;
    this.run = run;
    say(this.pill, status.status);
    this.pill.dataset.status = status.status ?? "";
    this.#eye(run);
    const share = status.status === "finished" ? 1 : (status.progress ?? 0);
    this.fill.style.transform = `scaleX(${Math.min(1, Math.max(0, share))})`;
    this.bar.setAttribute("aria-valuenow", String(Number.parseInt(shareDone(share), 10)));
    // Before the first step there is nothing to count: what one waits for has the room.
    const begins = status.status === "starting" && Boolean(status.message);
    this.told.classList.toggle("wb-begins", begins);
    say(this.place, begins ? "" : queueText(status) || progressText(run));
    this.bar.setAttribute("aria-valuetext", `${progressText(run)}, ${shareDone(share)}`);
    this.#numbers(run);
    this.#message(run, scene);
    this.#offer(run);
    this.steer.draw(run, scene);
  }

  /** What became of a request stands in the line of the view: rows stay as high and as wide as they are. */
  notice(text, error) {
    const who = this.monitor.runs.length > 1 && text ? `${this.run.name}: ` : "";
    this.monitor.note(who + text, error, this.run);
  }

  #eye({ id, name }) {
    const shown = !this.monitor.hidden.has(id);
    this.root.classList.toggle("wb-unseen", !shown);
    if (this.eye.getAttribute("aria-pressed") === String(shown)) return;
    this.eye.setAttribute("aria-pressed", String(shown));
    this.eye.setAttribute("aria-label", `Show in the plots: ${name}`);
    this.eye.title = shown ? "Hide this run in all plots" : "Show this run in all plots";
    this.eye.replaceChildren(icon(shown ? "shown" : "hidden"));
  }

  #numbers({ status, final }) {
    say(this.numbers.loss, loss(status.loss));
    say(this.numbers.heldout, heldout(status));
    const learned = LEARNED_BRIEFLY[status.learned] ?? "";
    say(this.learned, learned);
    this.heldout.title = this.learned.title = [status.score, partScore(status), learned].filter(Boolean).join("; ");
    say(this.numbers.speed, short(status.tokens_per_second));
    this.numbers.speed.title = `tokens per second, ${speedSpan({ final })}`;
    const time = final ? took(status) : { text: duration(secondsLeft(status)), title: "" };
    say(this.numbers.time, time.text);
    this.numbers.time.title = time.title;
  }

  #message(run, { now, kernelSilentSince, live }) {
    const { status } = run;
    const silence = status.silent_seconds ? run.statusAt - 1000 * status.silent_seconds : null;
    const since = kernelSilentSince ?? (silence !== null && now - silence > SILENT_MS ? silence : null);
    const failed = status.status === "failed";
    this.#why(run, live);
    let text = run.final ? (failed ? "" : status.error || "") : status.message || "";
    if (text === status.status) text = "";
    if (!live) text = "saved picture: the kernel has not answered";
    // Of a run that is followed from elsewhere its message says so.
    else if (!run.final && since !== null && !text.startsWith("no news since")) text = `no news since ${clock(since)}${text ? ` · ${text}` : ""}`;
    // Of one that waits there is room for its place alone.
    say(this.message, queueText(status) ? "" : text);
    // Where there is little room both are cut short.
    const whole = [progressText(run), text].filter(Boolean).join(" · ");
    if (this.told.title !== whole) this.told.title = whole;
    this.message.classList.toggle("wb-bad", Boolean(status.error && run.final));
  }

  /** Why it failed; of one that ended otherwise and is watched alone, what it has learned. */
  #why({ id, status }, live) {
    const shown = live && status.status === "failed";
    const learned = live && !shown && this.monitor.runs.length === 1 ? (status.verdict ?? "") : "";
    this.why.hidden = !shown && !learned;
    this.why.classList.toggle("wb-verdict", Boolean(learned));
    const edits = this.monitor.model.get("edits");
    this.edit.hidden = !edits || !shown;
    const how = status.repeats && !edits ? ` To change its recipe and launch it anew: wb.Lab(wb.Run("${id}").recipe)` : "";
    say(this.reason, shown ? `${status.error || "it did not say why"}${how}` : learned);
    const brief = this.monitor.runs.length > 1;
    this.why.classList.toggle("wb-brief", brief);
    const title = brief ? this.reason.textContent : "";
    if (this.reason.title !== title) this.reason.title = title;
  }

  #offer({ final, status: { status, repeats, missing_text, checkpoints } }) {
    const offers = this.monitor.live && !repeats ? Object.keys(BUTTONS).filter((verb) => ASKABLE[verb].includes(status)) : [];
    const why = final ? whyNotResumed({ missing_text }) : "";
    const fromStart = final && !checkpoints?.length;
    const key = `${offers.join()} ${fromStart} ${why}`;
    if (key === this.buttons.dataset.key) return;
    this.buttons.dataset.key = key;
    const held = this.buttons.contains(document.activeElement);
    this.buttons.replaceChildren(...offers.map((verb) => this.#button(verb, fromStart && verb === "resume" ? FROM_START : undefined, why)));
    if (held) this.buttons.querySelector("button")?.focus();
  }

  /** `why`: it cannot be done. It is still reached and pressed, and then says so. */
  #button(verb, title = BUTTONS[verb].title, why = "") {
    const { text } = BUTTONS[verb];
    const click = () => (why ? this.notice(`${text}: ${why}`, true) : verb === "stop" ? this.monitor.table.ask(this) : this.send(verb));
    return el("button", { type: "button", class: "wb-tiny", title: why ? `${text}: ${why}` : title, "aria-label": `${text}: ${this.run.name}`, "aria-disabled": why ? "true" : null, on: { click } }, icon(verb));
  }

  /** What of its buttons there is. */
  focus() {
    this.root.querySelector(".wb-buttons button:last-child, .wb-steer-toggle")?.focus();
  }

  send(verb) {
    this.monitor.steering.request(this.run, { verb }, (answer) => {
      this.notice(answerInWords(verb, answer), answer.error);
      this.monitor.redraw();
    });
  }
}
