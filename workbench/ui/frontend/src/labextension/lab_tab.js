// The Lab in a tab, full height: of a kernel of its own (lab_kernel.js), or of a notebook's cell.

import { el, say } from "../dom.js";
import { rendered, WIDGET } from "./lab_kernel.js";

const WORDS = {
  starting: "Starting the Lab. The first time takes some seconds.",
  again: "The Lab's kernel ended. It starts again with what you had composed; runs go on.",
  ended: "The Lab's kernel has ended. What you had composed is kept, and runs go on.",
  none: "Which kernel is the Lab to use? It needs one whose Python has `workbench` installed.",
};

// What a kernel of another Python says.
const ELSEWHERE = /No module named 'workbench'/;

export class LabTab {
  /**
   * @param {object} lab JupyterLab's modules
   * @param {LabKernel} kernel
   * @param {object | null} dialogs JupyterLab's, to choose a kernel
   */
  constructor(lab, kernel, dialogs) {
    Object.assign(this, { lab, kernel, dialogs });
    this.text = el("p", { role: "status" });
    this.why = el("pre", {});
    this.button = el("button", { type: "button", class: "wb-dock-open", on: { click: () => this.#press() } });
    this.cover = el("div", { class: "wb-dock-cover" }, this.text, this.why, this.button);
    this.widget = null;
    this.view = null;
    this.ended = false;
    this.showing = 0;
    const { context } = kernel;
    context.statusChanged.connect((_, status) => this.#heard(status));
    context.sessionChanged.connect((_, { newValue }) => newValue || this.#heard("dead"));
  }

  /** The tab; a new one where it was closed. */
  open(icon) {
    if (this.widget && !this.widget.isDisposed) return this.widget;
    this.panel = new this.lab.widgets.Panel();
    this.panel.node.classList.add("wb-dock-lab", "wb-theme");
    this.panel.node.append(this.cover);
    this.widget = tabOf(this.lab, this.panel, { id: "workbench-lab", label: "Workbench", icon, caption: "Compose, launch and watch runs" });
    this.#show(WORDS.starting);
    return this.widget;
  }

  get #open() {
    return this.widget !== null && !this.widget.isDisposed;
  }

  #heard(status) {
    if (!this.#open || !this.began) return;
    if (status === "restarting" || status === "autorestarting") {
      this.ended = true;
      this.#say(WORDS.again);
    } else if (status === "dead" || status === "terminating") {
      this.ended = true;
      this.#say(WORDS.ended, "", "Start it again");
    } else if (status === "idle" && this.ended && !this.#starting) {
      this.#show(WORDS.again);
    }
  }

  /** Connects, and draws the Lab that the kernel has; the last of several calls counts. */
  async #show(words) {
    this.#say(words);
    const turn = ++this.showing;
    this.#starting = true;
    this.ended = false;
    const answer = await this.#asked();
    if (turn !== this.showing) return;
    this.#starting = false;
    this.began = true;
    if (!this.#open) return;
    // Ended meanwhile, which is said already.
    if (this.ended) this.#heard(this.kernel.context.session?.kernel?.status);
    else if (answer.none || ELSEWHERE.test(answer.error)) this.#say(WORDS.none, "", "Choose a kernel");
    else if (!answer.data) this.#say("The Lab could not be shown.", answer.error, "Try again");
    else this.#draw(await rendered(this.lab, this.kernel.rendermime, answer.data));
  }

  async #asked() {
    try {
      return (await this.kernel.connect()) ? await this.kernel.ask() : { none: true };
    } catch (error) {
      return { error: String(error?.message ?? error) };
    }
  }

  #draw(renderer) {
    this.view?.dispose();
    this.view = renderer;
    this.panel.addWidget(renderer);
    this.cover.hidden = true;
  }

  #say(text, why = "", button = "") {
    say(this.text, text);
    say(this.why, why);
    say(this.button, button);
    this.why.hidden = !why;
    this.button.hidden = !button;
    this.cover.hidden = false;
  }

  async #press() {
    const { context } = this.kernel;
    if (this.button.textContent === "Choose a kernel") await this.dialogs?.selectKernel(context);
    this.#show(WORDS.starting);
  }

  #starting = false;
}

/** A main-area tab around a widget of lumino. */
export function tabOf({ apputils: { MainAreaWidget } }, content, { id, label, icon, caption }) {
  const tab = new MainAreaWidget({ content });
  tab.id = id;
  Object.assign(tab.title, { label, icon, caption, closable: true });
  tab.toolbar.hide();
  return tab;
}

/**
 * The Lab of a notebook's cell, a second time in a tab beside the notebook.
 * @param {object} notebook the panel whose kernel the Lab lives in
 * @param {string} model id of the Lab's model
 */
export async function openBeside(lab, shell, notebook, model, icon) {
  const id = `workbench-lab-${model}`;
  const there = [...shell.widgets("main")].find((widget) => widget.id === id);
  if (there) return shell.activateById(id);
  const panel = new lab.widgets.Panel();
  panel.node.classList.add("wb-dock-lab", "wb-theme");
  const renderer = await rendered(lab, notebook.content.rendermime, { [WIDGET]: { model_id: model, version_major: 2, version_minor: 0 } });
  panel.addWidget(renderer);
  const tab = tabOf(lab, panel, { id, label: `Lab in ${notebook.title.label}`, icon, caption: `The Lab of ${notebook.context.path}` });
  // The cell was run again, or its notebook closed: nothing of it is left to show.
  for (const source of [notebook, renderer.widgets[0]]) source?.disposed.connect(() => tab.dispose());
  shell.add(tab, "main", { ref: notebook.id, mode: "tab-after" });
  return shell.activateById(id);
}
