// Where a Plotly figure appears that a plot was opened as: an output of the notebook near the view, which no code of ours
// has drawn. Above it stands a line of ours that closes it.

import { bringUp, el, say } from "../dom.js";

const FIGURE = ".js-plotly-plot";
// The front end loads Plotly when it is first needed.
const PATIENCE_MS = 15000;
const LOOK_EVERY_MS = 100;

export class FigurePlace {
  /**
   * @param {HTMLElement} root of the view, which ends with the line
   * @param {() => void} clear has the kernel take the figure away
   */
  constructor(root, clear) {
    Object.assign(this, { root, clear, before: null, opener: null, shown: null });
    this.title = el("span");
    this.button = el("button", { type: "button", text: "Close", title: "Close the figure (Escape)", on: { click: () => this.close() } });
    this.bar = el("div", { class: "wb-figure-bar", role: "group", "aria-label": "Plotly figure", hidden: true }, this.title, this.button);
    this.keydown = (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.close();
    };
    this.bar.addEventListener("keydown", this.keydown);
    root.append(this.bar);
  }

  get open() {
    return !this.bar.hidden;
  }

  /**
   * One was asked for: what is there already is not it.
   * @param {Element | null} opener where the focus goes back to
   */
  expect(opener = document.activeElement) {
    this.before = this.#nearest();
    this.drawn = this.before?.querySelector("svg");
    this.opener = opener;
  }

  /** Takes the figure away. */
  close() {
    this.bar.hidden = true;
    // At once: a kernel in the middle of a cell would leave it there until the cell ends.
    if (this.shown) this.shown.style.display = "none";
    this.clear();
    this.opener?.focus();
    this.opener = null;
  }

  /**
   * Scrolls to the figure that was asked for, if it was asked for here, where it can then be closed.
   * @returns {Promise<boolean>} false when it does not appear
   */
  async reveal(title) {
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until) {
      const figure = this.#nearest();
      const svg = figure?.querySelector("svg");
      if (svg && (figure !== this.before || svg !== this.drawn)) {
        // In place of one that is open, as in another theme: whoever is elsewhere stays there.
        const again = this.open;
        if (this.opener) this.#offer(figure, title);
        if (again) return true;
        if (this.opener) this.button.focus({ preventScroll: true });
        bringUp(figure, "nearest");
        return true;
      }
      await new Promise((done) => setTimeout(done, LOOK_EVERY_MS));
    }
    return false;
  }

  #offer(figure, title) {
    say(this.title, `Plotly figure: ${title}`);
    this.bar.hidden = false;
    figure.style.display = "";
    // A click on it gives it the focus, so that Escape is heard there, too.
    figure.tabIndex = -1;
    figure.addEventListener("keydown", this.keydown);
    this.shown = figure;
  }

  /** The closest one around the view: below it in its pane, or among the outputs of its cell. */
  #nearest() {
    for (let outer = this.root.parentElement; outer; outer = outer.parentElement) {
      const found = outer.querySelector(FIGURE);
      if (found) return found;
    }
    return null;
  }
}
