// The panel that steers one run, behind a disclosure: who steers it, save and evaluate now, a knob, a fork.

import "./steer.css";

import { dropdown, el, say } from "../../dom.js";
import { short } from "../../format.js";
import { icon } from "../icons.js";
import { brief, editsOf, forkStep, legalInWords, NEWEST, read, textOf } from "../knobs.js";
import { Question } from "../../question.js";
import { DONE } from "../../server.js";
import { answerInWords, ASKABLE, heldByOther, leaseInWords, outlived } from "../../steering.js";

const CHECK_AFTER_MS = 350;
let panels = 0;

export class SteerPanel {
  /**
   * @param {Steering} steering of the session
   * @param {string} name of the run, for labels
   * @param {() => void} redraw something here changed
   * @param {(made: object) => void} watch show the run that a fork made
   * @param {Element} sample of its line in the plots
   * @param {() => void} opening this panel is about to open
   */
  constructor(steering, name, redraw, watch, sample, opening) {
    Object.assign(this, { steering, redraw, watch, opening });
    this.id = `wb-steer-${(panels += 1)}`;
    this.who = el("span", { class: "wb-who-steers", role: "status" });
    this.take = el("button", { type: "button", text: "Take over…", "aria-label": `Take over: ${name}`, hidden: true, on: { click: () => this.#askTake() } });
    this.question = new Question(() => this.toggle.focus());
    this.now = new Line(["checkpoint", "evaluate"].map((verb) => this.#button(verb, name)), el("span", { class: "wb-label", text: "Now" }));
    this.#buildKnob(name);
    this.#buildFork(name);
    this.body = el("div", { class: "wb-steer-body", id: this.id, hidden: true }, this.now.root, this.knobLine.root, this.forkLine.root, this.made);
    this.toggle = el(
      "button",
      { type: "button", class: "wb-tiny wb-steer-toggle", "aria-expanded": "false", "aria-controls": this.id, "aria-label": `Steer: ${name}`, title: "Steer: checkpoint, evaluate, change a knob, fork", on: { click: () => this.#flip() } },
      icon("steer"),
    );
    const shut = () => (this.#flip(false), this.toggle.focus());
    this.shut = el("button", { type: "button", class: "wb-tiny", title: "Close (Escape)", "aria-label": `Close the panel that steers ${name}`, hidden: true, on: { click: shut } }, icon("close"));
    const title = el("h3", { class: "wb-steer-title" }, sample, el("span", { text: `Steer ${name}`, title: name }));
    // Its toggle stands among the buttons of the run.
    this.root = el("section", { class: "wb-steer wb-panel", "aria-label": `Steer ${name}`, hidden: true }, el("header", {}, title, this.shut), el("div", { class: "wb-steer-head" }, this.who, this.take), this.question.node, this.body);
    for (const kind of ["pointerdown", "keydown"]) this.root.addEventListener(kind, () => this.run && steering.touched(this.run.id));
    for (const node of [this.toggle, this.root]) node.addEventListener("keydown", (event) => this.#key(event));
    this.leave = () => this.run && steering.release(this.run, true);
    window.addEventListener("pagehide", this.leave);
  }

  get open() {
    return !this.body.hidden;
  }

  draw(run, { now, live }) {
    this.run = run;
    this.clock = now;
    this.toggle.hidden = !live;
    this.#drawLease(run, now);
    // Closed, it stands there for as long as somebody else steers.
    this.root.hidden = !live || !(this.open || !this.take.hidden || this.question.open);
    if (!this.open) return;
    const trains = ASKABLE.evaluate.includes(run.status.status);
    if (outlived(this.status, run.status.status)) {
      this.now.said("", false);
      if (!this.dirty) this.knobLine.said("", false);
    }
    this.status = run.status.status;
    for (const button of this.now.controls) button.disabled = !trains;
    this.now.hint(trains ? "" : this.#waiting(run));
    this.#drawKnob(run, trains);
    this.#drawFork(run);
    // Only now it is as high as what it says.
    if (this.comes) requestAnimationFrame(() => this.root.scrollIntoView({ block: "nearest" }));
    this.comes = false;
  }

  close() {
    window.removeEventListener("pagehide", this.leave);
    clearTimeout(this.checking);
    clearTimeout(this.trying);
    this.leave();
  }

  #waiting(run) {
    if (run.status.repeats) return "the run has failed: nothing of it goes on to be steered";
    const over = run.status.status === "finished" ? "its budget is spent" : "resume it to steer it";
    return run.final ? `the run has ended; ${over}` : "when the run trains";
  }

  // Who steers.

  #drawLease(run, now) {
    const { lease } = run.status;
    const mine = this.steering.controller;
    const words = leaseInWords(lease, mine, run.leaseAt ?? now, now);
    const other = heldByOther(lease, mine, run.leaseAt ?? now, now) && !run.final;
    // Whoever was pushed out is told so, and by whom.
    if (this.mine && other) this.lost = `${lease.name || "somebody"} has taken over; `;
    if (!other) this.lost = "";
    this.mine = Boolean(words) && lease?.controller === mine;
    say(this.who, words && !run.final ? `${this.lost}${words}` : "");
    this.take.hidden = !other;
    if (!other) this.question.close();
  }

  /** Asks once: what the other has asked and is not done yet will not happen. `refused`: what is then asked again. */
  #askTake(refused = null) {
    const other = this.run.status.lease?.name || "somebody else";
    const text = `${other} is steering. What they have asked and is not done yet will not happen.`;
    this.question.ask({ text, yes: "Take over", no: "Leave it", danger: true }, () => (refused ? refused(true) : this.#takeOver()));
  }

  #takeOver() {
    this.steering.takeOver(this.run, (answer) => {
      if (answer.text || answer.error) say(this.who, answer.text);
      this.redraw();
    });
  }

  // Requests.

  #button(verb, name) {
    const text = verb === "checkpoint" ? "Checkpoint now" : "Evaluate now";
    return el("button", { type: "button", text, "aria-label": `${text}: ${name}`, on: { click: () => this.#ask({ verb }, this.now, verb) } });
  }

  /** Sends a request and shows beside its controls what becomes of it. */
  #ask(request, line, what, then = () => {}, takeOver = false) {
    line.said(`${what}: asked`, false);
    this.steering.request(this.run, { ...request, hold: true, takeOver }, (answer) => {
      line.said(answerInWords(what, answer), answer.error);
      if (answer.reason === "leased") this.#askTake((again) => this.#ask(request, line, what, then, again));
      if (DONE.includes(answer.state)) then(answer);
      this.redraw();
    });
  }

  // A knob.

  #buildKnob(name) {
    this.which = dropdown(`Knob to set: ${name}`, (path) => this.#choose(path));
    this.value = el("input", { type: "text", class: "wb-value", "aria-label": `New value: ${name}`, autocomplete: "off", spellcheck: false, on: { input: () => this.#typed() } });
    this.apply = el("button", { type: "button", text: "Apply", "aria-label": `Apply the value: ${name}`, on: { click: () => this.#apply() } });
    this.knobLine = new Line([this.which.node, this.value, this.apply], el("span", { class: "wb-label", text: "Set" }));
    this.value.setAttribute("aria-describedby", this.knobLine.describe(`${this.id}-knob`));
  }

  #drawKnob(run, trains) {
    const knobs = run.status.knobs ?? [];
    if (!knobs.some((knob) => knob.path === this.path)) this.path = (knobs.find((knob) => knob.path === "optimizer.lr") ?? knobs[0])?.path;
    this.which.set(knobs.map((knob) => [knob.path, `${knob.path} = ${brief(knob.value)}`]), this.path);
    const knob = knobs.find((each) => each.path === this.path);
    for (const control of [this.which.node, this.value]) control.disabled = !trains || !knob;
    this.knob = knob;
    // What somebody is typing stays, whatever the run says meanwhile.
    const text = knob ? textOf(knob.value) : "";
    if (!this.dirty && this.value.value !== text && document.activeElement !== this.value) this.value.value = text;
    this.apply.disabled = !trains || !knob || Boolean(this.problem) || !this.dirty;
    this.knobLine.hint(knob && trains ? [inForce(run, knob), knob.unit, legalInWords(knob), knob.help].filter(Boolean).join(" · ") : trains ? "the run has not said yet what can be set" : this.#waiting(run));
  }

  #choose(path) {
    this.path = path;
    this.knob = (this.run.status.knobs ?? []).find((knob) => knob.path === path);
    this.value.value = textOf(this.knob?.value);
    this.#settleKnob("");
    this.redraw();
  }

  #settleKnob(problem, dirty = false) {
    this.dirty = dirty;
    this.problem = problem;
    this.value.setAttribute("aria-invalid", String(Boolean(problem)));
    this.knobLine.said(problem, Boolean(problem));
  }

  #typed() {
    clearTimeout(this.checking);
    if (!this.knob) return;
    const found = read(this.knob, this.value.value);
    const same = !found.problem && JSON.stringify(found.value) === JSON.stringify(this.knob.value);
    this.#settleKnob(found.problem ?? "", !same);
    this.apply.disabled = same || Boolean(found.problem);
    if (same || found.problem) return;
    const { path } = this.knob;
    const text = this.value.value;
    // What combinations forbid, the run itself tells, while somebody thinks about it.
    this.checking = setTimeout(() => {
      this.steering.request(this.run, { verb: "check", path, value: found.value }, (answer) => {
        if (!DONE.includes(answer.state) || this.value.value !== text || this.path !== path || !this.dirty) return;
        if (answer.error) this.#settleKnob(answer.text, true);
        else this.knobLine.said(`would set ${answer.text}`, false);
        this.redraw();
      });
    }, CHECK_AFTER_MS);
  }

  #apply() {
    clearTimeout(this.checking);
    if (!this.knob) return;
    const found = read(this.knob, this.value.value);
    if (found.problem) return this.#settleKnob(found.problem, true);
    this.dirty = false;
    return this.#ask({ verb: "set", path: this.knob.path, value: found.value }, this.knobLine, `set ${this.knob.path}`, (answer) => {
      this.value.setAttribute("aria-invalid", String(answer.error));
      this.dirty = answer.error;
    });
  }

  // A fork.

  #buildFork(name) {
    this.from = dropdown(`Checkpoint to fork from: ${name}`, (step) => ((this.step = step), this.#edited()));
    this.edits = el("textarea", { rows: "2", class: "wb-edits", "aria-label": `Edits of the fork, one PATH=VALUE per line: ${name}`, placeholder: "optimizer.lr=1e-4\nbudget=2000 steps", spellcheck: "false", on: { input: () => this.#edited() } });
    this.forkButton = el("button", { type: "button", text: "Fork", "aria-label": `Fork: ${name}`, on: { click: () => this.#fork() } });
    this.forkLine = new Line([this.from.node, this.edits, this.forkButton], el("span", { class: "wb-label", text: "Fork from" }));
    this.edits.setAttribute("aria-describedby", this.forkLine.describe(`${this.id}-fork`));
    this.made = el("p", { class: "wb-made", hidden: true });
    this.step = NEWEST;
    this.steps = [];
  }

  #drawFork(run) {
    const steps = [...(run.status.checkpoints ?? [])].reverse();
    if (this.step !== NEWEST && !steps.includes(Number(this.step))) this.step = NEWEST;
    this.steps = steps;
    this.from.set([[NEWEST, steps.length ? `newest checkpoint (step ${steps[0]})` : "no checkpoint yet"], ...steps.map((step) => [step, `step ${step}`])], this.step);
    for (const control of [this.from.node, this.edits]) control.disabled = !steps.length;
    // What a fork has left to spend is what one asks first, and another checkpoint is another answer.
    if (steps.length && this.tried !== `${run.id} ${steps[0]}`) {
      this.tried = `${run.id} ${steps[0]}`;
      // Budget left from an older checkpoint, beside the name of a newer one, would be wrong.
      if (this.step === NEWEST && this.foretold) this.forkLine.said("", false);
      this.#try();
    }
    this.forkButton.disabled = !steps.length || this.forking || Boolean(this.wrong);
    this.forkLine.hint(steps.length ? "a new run: same weights, optimizer and place in the data; steps so far count against its budget" : run.final ? "it left no checkpoint to go on from" : "save a checkpoint first");
  }

  #edited() {
    clearTimeout(this.trying);
    const { problems } = editsOf(this.edits.value, this.run.status.knobs ?? []);
    this.wrong = problems.join("; ");
    this.forkLine.said(this.wrong, Boolean(this.wrong));
    this.edits.setAttribute("aria-invalid", String(Boolean(this.wrong)));
    this.redraw();
    if (!this.wrong) this.#try();
  }

  /** Has the run say what a fork as it is asked for would be. */
  #try() {
    clearTimeout(this.trying);
    const asked = `${this.step}\n${this.edits.value}`;
    const { edits, problems } = editsOf(this.edits.value, this.run.status.knobs ?? []);
    if (problems.length) return;
    this.trying = setTimeout(() => {
      this.steering.tryFork(this.run, this.#stepAsked(), edits, (answer) => {
        if (!DONE.includes(answer.state) || asked !== `${this.step}\n${this.edits.value}` || this.forking) return;
        // Of a run whose budget is spent it says so before anybody has typed anything wrong.
        const wrong = answer.error && edits.length > 0;
        this.edits.setAttribute("aria-invalid", String(wrong));
        this.forkLine.said(answer.text, wrong);
        this.foretold = true;
      });
    }, CHECK_AFTER_MS);
  }

  #stepAsked() {
    return forkStep(this.step, this.steps);
  }

  #fork() {
    clearTimeout(this.trying);
    const { edits, problems } = editsOf(this.edits.value, this.run.status.knobs ?? []);
    if (problems.length) return;
    this.forking = true;
    this.made.hidden = true;
    this.foretold = false;
    this.forkLine.said("fork: being made", false);
    this.steering.fork(this.run, this.#stepAsked(), edits, (answer) => {
      this.forking = !DONE.includes(answer.state);
      this.forkLine.said(answerInWords("fork", answer), answer.error);
      this.edits.setAttribute("aria-invalid", String(answer.error && !this.forking));
      if (answer.made) this.#show(answer.made);
      this.redraw();
    });
    this.redraw();
  }

  /** Draws the new run beside this one, as one that was launched is. */
  #show(made) {
    const fresh = made.fresh?.length ? `; its optimizer begins without state, since ${made.fresh.join(", ")} changed` : "";
    const code = el("code", { text: `wb.Run("${made.run}").watch()` });
    this.made.replaceChildren(el("span", { text: `New run ${made.name}${fresh}, drawn here; in a cell: ` }), code);
    this.made.hidden = false;
    this.watch(made);
  }

  // The panel.

  /** Of a run that has ended, when another panel opens: it would push that one out of sight. */
  makeRoom() {
    if (this.open && this.run?.final && !this.forking && !this.edits.value.trim()) this.#flip(false);
  }

  #flip(open = !this.open) {
    if (open) this.opening();
    this.body.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    this.shut.hidden = !open;
    this.root.hidden = !open;
    if (open) {
      this.root.parentElement.hidden = false;
      this.comes = true;
      return this.redraw();
    }
    this.question.close();
    return this.steering.release(this.run);
  }

  #key(event) {
    if (event.key === "Enter" && event.target === this.value && !this.apply.disabled) this.#apply();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target === this.edits && !this.forkButton.disabled) this.#fork();
    else if (event.key === "Escape" && event.target === this.value && this.dirty) this.#choose(this.path);
    else if (event.key === "Escape" && this.question.open) this.question.close(true);
    else if (event.key === "Escape" && this.open) (this.#flip(false), this.toggle.focus());
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Controls side by side with what they mean and what became of them underneath. */
class Line {
  constructor(controls, label) {
    this.controls = controls;
    this.help = el("p", { class: "wb-line-hint", hidden: true });
    // Never hidden: a region that appears together with its words is not read out.
    this.words = el("p", { class: "wb-line-said", role: "status" });
    this.root = el("div", { class: "wb-line" }, label, el("div", { class: "wb-line-controls" }, ...controls), this.words, this.help);
  }

  describe(id) {
    this.words.id = `${id}-said`;
    this.help.id = `${id}-help`;
    return `${this.words.id} ${this.help.id}`;
  }

  hint(text) {
    say(this.help, text);
    this.help.hidden = !text;
  }

  said(text, error) {
    say(this.words, text);
    this.words.classList.toggle("wb-bad", Boolean(error));
  }
}

/** What the run is using now, where that follows a shape and so differs from what is set. */
function inForce(run, knob) {
  const series = run.series.get(knob.path) ?? run.series.get(knob.path.split(".").pop());
  const value = series?.values.last;
  const moves = typeof knob.value === "object" || knob.path === "optimizer.lr";
  return moves && Number.isFinite(value) ? `${short(value)} now, by its schedule` : "";
}
