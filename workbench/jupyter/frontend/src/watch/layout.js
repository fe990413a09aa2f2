// How somebody has arranged the plots: which are open, how large, with which axes, which as tables. The browser remembers
// it, also under names. Pure but for the storage that it is given.

const CURRENT = "workbench.watch.layout";
const NAMED = "workbench.watch.layouts";
const LONGEST_NAME = 40;
/** Every plot with its title, in the order of the page. */
export const PLOTS = { loss: "Loss", layers: "Layer activity", speed: "Speed", scalar: "Schedules and gauges", events: "Events" };
/** Share of the width that the left column may take, in percent. */
export const MAIN = { least: 30, most: 80, start: 63 };
/** Pixels that a plot may be high. */
export const HEIGHT = { least: 120, most: 1200 };
const AXES = ["step", "tokens", "seconds", "flops"];

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const within = (value, { least, most }) => Number.isFinite(value) && value >= least && value <= most;

/** What can be understood of a stored layout; the rest is as at first. */
export function readable(stored) {
  const given = isObject(stored) ? stored : {};
  const perPlot = (values, fits) => Object.fromEntries(Object.entries(isObject(values) ? values : {}).filter(([name, value]) => name in PLOTS && fits(value)));
  const closed = Array.isArray(given.closed) ? given.closed.filter((name) => name in PLOTS) : [];
  return {
    x: AXES.includes(given.x) ? given.x : "step",
    main: within(given.main, MAIN) ? given.main : MAIN.start,
    // Without any plot there would be no button to bring one back beside.
    closed: closed.length < Object.keys(PLOTS).length ? closed : [],
    heights: perPlot(given.heights, (value) => within(value, HEIGHT)),
    plots: perPlot(given.plots, isObject),
  };
}

/** The layout of one view. */
export class Layout {
  /** @param {Storage | null} storage of the browser, where it lets us */
  constructor(storage) {
    this.storage = storage;
    this.now = readable(this.#read(CURRENT));
  }

  set(changes) {
    this.now = readable({ ...this.now, ...changes });
    this.#write(CURRENT, this.now);
  }

  /** What a plot keeps: its choices, its axis. */
  plot(name) {
    return this.now.plots[name] ?? {};
  }

  setPlot(name, changes) {
    this.set({ plots: { ...this.now.plots, [name]: { ...this.plot(name), ...changes } } });
  }

  /** @param {number | null} pixels null: as high as the page makes it */
  setHeight(name, pixels) {
    const { [name]: _, ...others } = this.now.heights;
    this.set({ heights: pixels === null ? others : { ...others, [name]: Math.min(HEIGHT.most, Math.max(HEIGHT.least, Math.round(pixels))) } });
  }

  setOpen(name, open) {
    const others = this.now.closed.filter((each) => each !== name);
    this.set({ closed: open ? others : [...others, name] });
  }

  /** Names of saved layouts. */
  get names() {
    return Object.keys(this.#named());
  }

  save(name) {
    const short = name.trim().slice(0, LONGEST_NAME);
    if (short) this.#write(NAMED, { ...this.#named(), [short]: this.now });
    return short;
  }

  apply(name) {
    this.set(readable(this.#named()[name]));
  }

  remove(name) {
    const { [name]: _, ...others } = this.#named();
    this.#write(NAMED, others);
  }

  /** As at first. */
  reset() {
    this.now = readable(null);
    this.#write(CURRENT, this.now);
  }

  #named() {
    const stored = this.#read(NAMED);
    return isObject(stored) ? stored : {};
  }

  #read(key) {
    try {
      return JSON.parse(this.storage?.getItem(key) ?? "null");
    } catch {
      return null; // damaged, or not ours to read
    }
  }

  #write(key, value) {
    try {
      this.storage?.setItem(key, JSON.stringify(value));
    } catch {
      // A page without storage, or a full one, forgets it.
    }
  }
}
