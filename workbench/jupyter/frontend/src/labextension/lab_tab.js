// The Lab in a tab, full height, of a kernel of its own (lab_kernel.js).

import { ENDED } from "../lab/ended.js";
import { Cover } from "./cover.js";
import { rendered } from "./lab_kernel.js";

const WORDS = {
  starting: { title: "Starting the Lab", text: "The first time takes some seconds." },
  again: { title: "The kernel has stopped", text: "It starts again with what you had composed; your runs go on." },
  none: { title: "Which kernel is the Lab to use?", text: "It needs one whose Python has `workbench` installed.", button: "Choose a kernel" },
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
    this.cover = new Cover((button) => this.#press(button), () => (this.view?.isDisposed ? undefined : this.view?.node));
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
    this.panel.node.append(this.cover.node);
    this.widget = tabOf(this.lab, this.panel, { id: "workbench-lab", label: "Workbench", icon, caption: "Compose, launch and watch runs" });
    this.widget.sessionContext = this.kernel.context;
    this.#show(WORDS.starting);
    return this.widget;
  }

  get #open() {
    return this.widget !== null && !this.widget.isDisposed;
  }

  #heard(status) {
    if (!this.#open || !this.began || this.kernel.moving) return;
    if (status === "restarting" || status === "autorestarting") {
      this.ended = true;
      this.cover.say(WORDS.again);
    } else if (status === "dead" || status === "terminating") {
      this.ended = true;
      this.cover.say(ENDED);
    } else if (status === "idle" && this.ended && !this.#starting) {
      this.#show(WORDS.again);
    }
  }

  /** Connects, and draws the Lab that the kernel has; the last of several calls counts. */
  async #show(words) {
    this.cover.say(words);
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
    else if (answer.none || ELSEWHERE.test(answer.error)) this.cover.say(WORDS.none);
    else if (!answer.data) this.cover.say({ title: "The Lab could not be shown", why: answer.error, button: "Try again" });
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
    this.cover.hide();
  }

  async #press(button) {
    const { context } = this.kernel;
    if (button === WORDS.none.button) await this.dialogs?.selectKernel(context);
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
