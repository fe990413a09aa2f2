// Where a Plotly figure appears that a plot was opened as: an output of the notebook near the view, which no code of ours
// has drawn.

const FIGURE = ".js-plotly-plot";
// The front end loads Plotly when it is first needed.
const PATIENCE_MS = 15000;
const LOOK_EVERY_MS = 100;

export class FigurePlace {
  /** @param {HTMLElement} root of the view */
  constructor(root) {
    this.root = root;
    this.before = null;
  }

  /** One was asked for: what is there already is not it. */
  expect() {
    this.before = this.#nearest();
    this.drawn = this.before?.querySelector("svg");
  }

  /**
   * Scrolls to the figure that was asked for.
   * @returns {Promise<boolean>} false when it does not appear
   */
  async reveal() {
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until) {
      const figure = this.#nearest();
      const svg = figure?.querySelector("svg");
      if (svg && (figure !== this.before || svg !== this.drawn)) {
        const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
        figure.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
        return true;
      }
      await new Promise((done) => setTimeout(done, LOOK_EVERY_MS));
    }
    return false;
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
