import { ENDED, showEnded } from "./ended.js";
import "./frame.css";
import { el as element, whenThere } from "../dom.js";
import { DISCONNECTED } from "../connected.js";
import { roving } from "../roving.js";
import { separator } from "../separator.js";
import { TABS } from "../labextension/tabs.js";
import { keep, placeOf, take } from "./kept.js";

// The regions of the Lab: names for screen readers, links and keys that lead to them, borders that move by pointer and
// keyboard; and what becomes of a Lab whose kernel ends.
const REGIONS = [
  ["lab-compose", "Compose"],
  ["lab-watch", "Watch"],
  ["lab-below", "Runs"],
];
// Shares of the whole; a border never takes a region away.
const BORDERS = {
  left: { property: "--lab-left", least: 20, most: 60, start: 31, label: "Width of the forms", vertical: true },
  top: { property: "--lab-top", least: 30, most: 80, start: 69, label: "Height of the upper half", vertical: false },
};
const REMEMBERED = "workbench.lab.borders";
const STEP = 2;

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(REMEMBERED)) ?? {};
  } catch {
    return {}; // no storage here, or not ours
  }
}

function remember(name, share) {
  try {
    localStorage.setItem(REMEMBERED, JSON.stringify({ ...remembered(), [name]: share }));
  } catch {
    // A page without storage forgets it.
  }
}

function border(body, name) {
  const { property, start, ...rest } = BORDERS[name];
  const kept = remembered()[name];
  // Null until it is moved: then the style sheet decides, by the width of the page.
  let share = null;
  const put = (to) => {
    share = to;
    if (to === null) body.style.removeProperty(property);
    else body.style.setProperty(property, `${to}%`);
  };
  if (Number.isFinite(kept)) put(Math.min(rest.most, Math.max(rest.least, kept)));
  /** Where the style sheet has put it; until there is a layout, where it mostly does. */
  const laid = () => {
    const [whole, first] = [body, body.querySelector(".lab-compose")].map((each) => each?.getBoundingClientRect());
    const part = rest.vertical ? first?.width / whole.width : first?.height / whole.height;
    return 100 * part || start;
  };
  const moved = (to) => (put(to), remember(name, to));
  const at = ({ clientX, clientY }) => {
    const box = body.getBoundingClientRect();
    return 100 * (rest.vertical ? (clientX - box.left) / box.width : (clientY - box.top) / box.height);
  };
  const own = { class: `lab-border lab-border-${name}`, "data-lm-suppress-shortcuts": "true" };
  return separator({ ...rest, ...own, step: STEP, value: () => share ?? laid(), at, move: moved, reset: () => moved(null) });
}

function links(root) {
  return REGIONS.map(([name, label]) => {
    const link = document.createElement("button");
    link.type = "button";
    link.textContent = label;
    link.setAttribute("data-lm-suppress-shortcuts", "true");
    link.addEventListener("click", () => {
      const region = root.querySelector(`.${name}`);
      region.scrollIntoView({ block: "nearest" });
      region.focus({ preventScroll: true });
    });
    return link;
  });
}

/** The boxes of a notebook's output that stand around the Lab, marked for the style sheet; returns what unmarks them. */
function markAround(root) {
  const boxes = [];
  for (let box = root.parentElement; box && !box.matches(".jp-Cell"); box = box.parentElement) boxes.push(box);
  const around = boxes.filter((box) => box.matches(".jp-OutputArea, .jp-OutputArea-child, .jp-OutputArea-output"));
  for (const box of around) box.classList.add("lab-around");
  return () => around.forEach((box) => box.classList.remove("lab-around"));
}

/** Where JupyterLab has our extension: a button that shows the Lab a second time, in a tab and at full height. */
function opener(root, model) {
  const tabs = globalThis[TABS];
  const row = root.querySelector(".lab-start");
  if (!tabs?.has(root) || !row) return [];
  const label = "Open this Lab in a tab";
  const icon = element("i", { class: "fa fa-external-link", "aria-hidden": "true" });
  const button = element("button", { type: "button", class: "lab-tool lab-tab", title: label, "aria-label": label, on: { click: () => tabs.open(root, model.get("lab")) } }, icon);
  row.append(button);
  return [button];
}

const TEXT = "input:not([type=checkbox]), textarea";

const SETTLES_WITHIN_MS = 1500;
// As the user pressed, not as a busy kernel heard it.
const TWICE_WITHIN_MS = 1000;

/**
 * Launches or races what is composed once the kernel has taken the last edit: a press of Launch could overtake it, since ipywidgets
 * holds an edit back while the kernel still works on the one before. Each edit changes what the kernel keeps of the Lab; one
 * that changes nothing, or is merged with the next, is waited for in vain.
 */
class Launcher {
  constructor(model, root, signal) {
    Object.assign(this, { model, root });
    this.edits = 0;
    this.presses = [];
    this.pressed = -Infinity;
    const taken = () => this.edits && --this.edits === 0 && this.settle();
    model.on("change:kept", taken);
    signal.addEventListener("abort", () => (clearTimeout(this.waiting), model.off("change:kept", taken)));
  }

  edited() {
    this.edits += 1;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.settle(), SETTLES_WITHIN_MS);
  }

  settle() {
    this.edits = 0;
    for (const press of this.presses.splice(0)) this.model.send(press);
  }

  launch() {
    this.press({ do: "launch", again: performance.now() - this.pressed < TWICE_WITHIN_MS });
    this.pressed = performance.now();
  }

  press(request) {
    // With it what stands in a text view: an edit of it may be held back, too, and changes nothing of what is kept.
    const typed = this.root.querySelector("textarea.lab-draft")?.value;
    this.presses.push(typed === undefined ? request : { ...request, typed });
    if (!this.edits) this.settle();
  }
}

// Keys that work anywhere in the Lab; true where one was meant.
function keyed(event, root, launcher) {
  const { key, target } = event;
  if (key === "Enter" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && !target.matches("textarea")) {
    // What is typed and not sent yet belongs to what is launched.
    if (target.dataset.labEdited) target.dispatchEvent(new Event("change", { bubbles: true }));
    launcher.launch();
    // The answer stands beside Launch, which may be below the edge of the pane.
    root.querySelector(".lab-launching")?.scrollIntoView({ block: "nearest" });
    return true;
  }
  if (key === "/" && !target.matches(TEXT) && target.closest(".lab-compose")) {
    root.querySelector(".lab-search input")?.focus();
    return true;
  }
  if (key !== "F6") return false;
  const regions = REGIONS.map(([name]) => root.querySelector(`.${name}`));
  const here = regions.findIndex((region) => region.contains(target));
  regions.at((here + (event.shiftKey ? -1 : 1)) % regions.length).focus();
  return true;
}

// What of a Lab outlives its kernel; returns what ends the watch.
function watchKernel(model, root) {
  // A tab of a Lab looks after its kernel itself.
  if (root.closest(".wb-dock-lab")) return () => {};
  const place = placeOf(root);
  const before = take(place, model.get("lab"));
  if (before) model.send({ do: "restore", ...before });
  let remove = null;
  const start = () => {
    // Whoever owns the place (JupyterLab's extension of ours) takes the event; a bare notebook has to be told how.
    const taken = !root.dispatchEvent(new CustomEvent("workbench:start-again", { bubbles: true, cancelable: true }));
    return taken ? "" : "Restart the kernel (menu Kernel) and run this cell again.";
  };
  const look = () => {
    const ended = root.classList.contains(DISCONNECTED);
    keep(place, model.get("kept"), ended);
    // Of one that is being taken away, nothing is left to lie over.
    if (ended && root.querySelector(".lab-compose")) remove ??= showEnded(root, ENDED, start);
    else remove = remove?.() ?? null;
  };
  const watcher = new MutationObserver(look);
  watcher.observe(root, { attributes: true, attributeFilter: ["class"] });
  model.on("change:kept", look);
  look();
  return () => (watcher.disconnect(), model.off("change:kept", look), remove?.());
}

function render({ model, el }) {
  let added = [];
  let unwatch = null;
  let unmark = null;
  const gone = new AbortController();
  el.classList.add("lab-links");
  el.setAttribute("role", "toolbar");
  el.setAttribute("aria-label", "regions of the Lab");
  const attach = (root) => {
    const body = root.querySelector(".lab-body");
    for (const [name, label] of REGIONS) {
      const region = body.querySelector(`.${name}`);
      region.setAttribute("role", "region");
      region.setAttribute("aria-label", label);
      region.tabIndex = -1;
    }
    el.replaceChildren(...links(root));
    roving(el, () => [...el.children]);
    added = Object.keys(BORDERS).map((name) => border(body, name));
    body.append(...added);
    added.push(...opener(root, model));
    const button = body.querySelector(".lab-launch");
    const verdict = body.querySelector(".lab-launching .lab-verdict");
    if (button && verdict) {
      verdict.id ||= `lab-verdict-${Math.random().toString(36).slice(2)}`;
      button.setAttribute("aria-describedby", verdict.id);
      button.setAttribute("aria-keyshortcuts", "Control+Enter");
    }
    const on = (type, hear) => root.addEventListener(type, hear, { signal: gone.signal, capture: true });
    const launcher = new Launcher(model, root, gone.signal);
    on("change", ({ target }) => target.closest(".lab-knob, .lab-heading") && launcher.edited());
    on("click", (event) => {
      const button = event.target.closest?.(".lab-launch, .lab-race-button");
      if (!button) return;
      event.stopPropagation();
      if (button.matches(".lab-launch")) launcher.launch();
      else if (!button.disabled) launcher.press({ do: "race" });
    });
    on("keydown", (event) => keyed(event, root, launcher) && (event.preventDefault(), event.stopPropagation()));
    unwatch = watchKernel(model, root);
    unmark = markAround(root);
  };
  const whole = (root) => REGIONS.every(([name]) => root?.querySelector(`.lab-body .${name}`)) && root;
  const endWait = whenThere(() => whole(el.closest(".lab-whole")), attach);
  return () => {
    endWait();
    gone.abort();
    unwatch?.();
    unmark?.();
    for (const node of added) node.remove();
  };
}

export default { render };
