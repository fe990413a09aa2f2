import "./page.css";

import { Typing } from "./compose/typing.js";
import { whenThere } from "./dom.js";

// The first child of each root: the keyboard, the line of help, and words for screen readers.
const names = { "lab-whole": "Lab", "lab-composer": "Compose a recipe" };
const MARKED_MS = 1600;
const WALKED_MS = 2000;

// The control of a row; a row within it has its own.
const controlOf = (row) => row.querySelector("input, select, textarea");

// What a row's tooltip says: help on the first line, facts on the second (compose/knob_help.py).
function helpOf(row) {
  const control = controlOf(row);
  if (!control || control.closest(".lab-knob") !== row) return headingHelp(row);
  const label = control.id && row.querySelector(`label[for="${control.id}"]`);
  // Of a checkbox's label ipywidgets makes a title with the markup in it; what is meant stands within.
  const titled = [control, label, ...row.querySelectorAll("[title]")];
  return titled.find((part) => part?.title?.includes("\n") && !part.title.startsWith("<") && part.closest(".lab-knob") === row)?.title ?? "";
}

// The knob of an axis: its drop-down stands in the heading of the section.
function headingHelp(row) {
  return row.classList.contains("lab-heading") ? row.querySelector("select")?.title ?? "" : "";
}

const childOf = (row, classes) => [...row.children].find((child) => child.matches(classes));
const errorOf = (row) => childOf(row, ".lab-error");

// Of the knob of a row or heading: knob_help.path_class.
const PATH = "lab-path:";
const pathOf = (row) => [...row.classList].find((name) => name.startsWith(PATH))?.slice(PATH.length) ?? "";

// Screen readers hear a knob's help, and what is wrong with it or speaks against it, after its name.
function describeRow(row, words) {
  const control = controlOf(row);
  if (!control || control.closest(".lab-knob") !== row) return;
  const help = helpOf(row);
  // ipywidgets shows the markup of a checkbox's label when it is hovered.
  if (control.type === "checkbox") for (const part of row.querySelectorAll("[title^='<']")) part.title = help;
  control.id ||= `lab-control-${Math.random().toString(36).slice(2)}`;
  const own = [...row.querySelectorAll("label.widget-label")].find((one) => one.closest(".lab-knob") === row && one.textContent);
  if (own && !own.contains(control)) set(own, "for", control.id);
  const ids = [];
  if (help) {
    let text = words.get(control.id);
    if (!text?.isConnected) {
      text = Object.assign(document.createElement("span"), { id: `${control.id}-help` });
      words.box.append(text);
      words.set(control.id, text);
    }
    if (text.textContent !== help) text.textContent = help;
    ids.push(text.id);
  }
  const note = childOf(row, ".lab-error, .lab-doubt");
  const wrong = note !== undefined && note === errorOf(row);
  if (note) {
    note.id ||= `lab-note-${Math.random().toString(36).slice(2)}`;
    set(note, "role", wrong ? "alert" : "status");
    ids.push(note.id);
  }
  set(control, "aria-invalid", wrong ? "true" : null);
  set(control, "aria-describedby", ids.join(" ") || null);
  const label = control.id && row.querySelector(`label[for="${control.id}"]`);
  const name = (label?.textContent || pathOf(row)).trim();
  // Beside a drop-down ("constant"), the number has no label of its own.
  if (!label?.textContent && name) set(control, "aria-label", name);
  for (const handle of row.querySelectorAll(":scope > .lab-slid .noUi-handle")) {
    // The box beside it says the same and takes Arrow keys: one stop of the keyboard for one knob.
    set(handle, "tabindex", "-1");
    set(handle, "aria-label", `${name}, slider`);
    set(handle, "aria-valuetext", control.value);
  }
}

function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function describe(root, words) {
  for (const row of root.querySelectorAll(".lab-knob")) describeRow(row, words);
  for (const [id, text] of words) {
    if (document.getElementById(id)) continue;
    text.remove();
    words.delete(id);
  }
  for (const button of root.querySelectorAll(".lab-toggle, .lab-help")) {
    set(button, "aria-expanded", String(button.classList.contains("mod-active")));
  }
  for (const heading of root.querySelectorAll(".lab-heading")) {
    const title = heading.querySelector(".lab-toggle");
    const pick = heading.querySelector("select");
    if (pick) set(pick, "aria-label", `choice of ${title.textContent.toLowerCase()}`);
    const help = heading.querySelector(".lab-help");
    if (help) set(help, "aria-label", title.title ? `about ${title.textContent}` : "about");
  }
  for (const button of root.querySelectorAll(".lab-reset, .lab-tool, .lab-close")) set(button, "aria-label", button.title);
  for (const button of root.querySelectorAll(".lab-tool")) set(button, "aria-disabled", String(button.classList.contains("lab-dim")));
  for (const button of root.querySelectorAll(".lab-show button")) {
    const active = button.classList.contains("mod-active");
    set(button, "aria-pressed", String(active));
    set(button, "tabindex", active ? "0" : "-1");
  }
  // Arrows go from heading to heading, as in an accordion.
  const heads = [...root.querySelectorAll(".lab-toggle")];
  const entered = heads.find((head) => head.dataset.entered) ?? heads[0];
  for (const head of heads) set(head, "tabindex", head === entered ? "0" : "-1");
  // F1 opens the card of what has the focus, Ctrl+Z undoes: these need no stop of their own.
  for (const button of root.querySelectorAll(".lab-help, .lab-more, .lab-tool")) set(button, "tabindex", "-1");
  // Glyphs of the icon font would be read out as part of a button's name.
  for (const icon of root.querySelectorAll("button > i.fa, button > i.fas")) set(icon, "aria-hidden", "true");
  for (const box of root.querySelectorAll(".lab-search input")) set(box, "aria-label", "find a knob by its name or help (/)");
  for (const live of root.querySelectorAll(".lab-verdict, .lab-found")) set(live, "aria-live", "polite");
  for (const card of root.querySelectorAll(".lab-card-panel")) {
    set(card, "role", "region");
    set(card, "aria-label", card.querySelector("h3")?.textContent ?? "about");
    // Focusable, since text longer than its box can otherwise not be scrolled with the keyboard.
    const text = card.lastElementChild;
    if (text) set(text, "tabindex", "0");
  }
}

// JupyterLab's bindings match the focused element itself, before it looks at any ancestor: a mark on the root alone
// does not keep "b" from inserting a cell, the control that has the focus must carry it.
function keepKeys({ target }) {
  target.setAttribute("data-lm-suppress-shortcuts", "true");
}

// Whether undo belongs to the text that is being typed rather than to the recipe.
const typing = (target) => target.dataset.labEdited === "true";

// The choice that the card of F1 is about: that of the knob with the focus, else of the section.
function pathOfChoice(target) {
  const row = target.closest(".lab-knob:has(> .lab-nested .lab-more), .lab-heading");
  const path = (row && pathOf(row)) || target.closest(".lab-section")?.querySelector(".lab-heading")?.classList.toString().split(PATH)[1];
  return path?.split(" ")[0] ?? "";
}

// Arrow keys where they have no other use: a number's slider beside its box, and the views of the recipe.
function step(event) {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
  const handle = (key === "ArrowUp" || key === "ArrowDown") && target.matches("input") && target.closest(".lab-slid")?.querySelector(".noUi-handle");
  if (handle) return handle.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: false })), true;
  const heads = target.matches(".lab-toggle") ? [...target.closest(".lab-sections").querySelectorAll(".lab-toggle")] : [];
  const head = { ArrowUp: heads[heads.indexOf(target) - 1], ArrowDown: heads[heads.indexOf(target) + 1], Home: heads[0], End: heads.at(-1) }[key];
  if (head) return head.focus(), true;
  const views = (key === "ArrowLeft" || key === "ArrowRight") && target.closest(".lab-show") ? [...target.closest(".lab-show").querySelectorAll("button")] : [];
  const next = views[views.indexOf(target) + (key === "ArrowLeft" ? -1 : 1)];
  if (next) (next.click(), next.focus());
  return views.length > 0;
}

function undoKey(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || typing(event.target)) return "";
  const key = event.key.toLowerCase();
  if (key === "z") return event.shiftKey ? "redo" : "undo";
  return key === "y" && !event.shiftKey ? "redo" : "";
}

// Everything that only a composer has; returns what takes it away again.
function compose(model, root, line) {
  const gone = new AbortController();
  // On the way down: text boxes keep most of what they hear to themselves.
  const on = (type, hear) => root.addEventListener(type, hear, { signal: gone.signal, capture: true });
  const [what, facts] = line.querySelector("p > span").children;
  let focused = null;
  let opener = "";
  let walked = -Infinity;
  const explain = (row) => {
    const [help, rest = ""] = (row && helpOf(row) ? helpOf(row) : model.get("resting")).split("\n");
    const wrong = row && errorOf(row)?.textContent.trim();
    what.textContent = wrong || help;
    facts.textContent = rest;
    // It has two or three lines, and some help is longer.
    line.title = [what.textContent, rest].filter(Boolean).join("\n");
    line.classList.toggle("lab-wrong", Boolean(wrong));
  };
  const rowOf = (target) => target.closest?.(".lab-knob, .lab-heading");
  let pointed = null;
  // What is wrong with the knob that is typed into comes before help on what the pointer happens to rest on.
  const rest = () => explain([focused && errorOf(focused) && focused, pointed, focused].find((row) => row?.isConnected));
  on("focusin", ({ target }) => ((focused = rowOf(target)), (pointed = null), rest()));
  on("focusout", () => ((focused = null), rest()));
  on("focusin", ({ target }) => {
    if (!target.matches(".lab-toggle")) return;
    for (const head of root.querySelectorAll(".lab-toggle")) {
      if (head === target) head.dataset.entered = "true";
      else delete head.dataset.entered;
      set(head, "tabindex", head === target ? "0" : "-1");
    }
  });
  on("pointerover", ({ target }) => ((pointed = rowOf(target)), rest()));
  on("pointerleave", () => ((pointed = null), rest()));
  model.on("change:resting", rest);
  rest();

  const boxOf = (path, type) => [...root.querySelectorAll(".lab-knob")].filter((row) => pathOf(row) === path).map(controlOf).find((box) => box?.type === type);
  const typed = new Typing(({ type }, path) => boxOf(path, type));
  on("input", ({ target }) => {
    target.dataset.labEdited = "true";
    const row = target.closest(".lab-knob");
    if (row && target.matches("input[type=text], textarea")) typed.begin(target, pathOf(row));
    // What is said of the text before is not said of this one.
    row?.classList.add("lab-being-typed");
  });
  const settled = ({ target }) => target.closest(".lab-knob")?.classList.remove("lab-being-typed");
  on("change", (event) => (delete event.target.dataset.labEdited, settled(event), typed.sent()));
  on("focusout", (event) => (settled(event), typed.left()));
  on("keydown", (event) => {
    const verb = undoKey(event);
    const card = root.querySelector(".lab-card-panel");
    if (verb) {
      model.send({ do: verb });
      walked = performance.now();
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && event.target.closest(".lab-search")) {
      const first = [...root.querySelectorAll(".lab-sections .lab-knob")].find((row) => row.querySelector(":scope > :is(.widget-inline-hbox, .lab-slid)"));
      controlOf(first ?? root.querySelector(".lab-sections .lab-heading") ?? event.target.parentElement)?.focus();
    } else if (event.key === "Escape" && card) model.send({ do: "close" });
    else if (event.key === "F1" && pathOfChoice(event.target)) model.send({ card: (opener = event.target, pathOfChoice(event.target)) });
    else if (!step(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  on("click", ({ target }) => {
    const button = target.closest?.("button");
    if (!button) return;
    if (button.classList.contains("lab-more")) model.send({ card: (opener = button.dataset.path) });
    else if (button.classList.contains("lab-go")) model.send({ go: button.dataset.path });
    else if (button.classList.contains("lab-all")) {
      model.send({ do: "reset" });
      walked = performance.now();
    }
    else if (button.classList.contains("lab-help")) opener = button;
    // The button goes away with the change that it takes back.
    else if (button.classList.contains("lab-reset")) controlOf(rowOf(button) ?? button)?.focus();
  });

  // The focus follows a card in and, when it is closed, goes back to what opened it. A panel is there once its last part
  // is: before, something empty holds that part's place.
  const panelThere = () => root.querySelector(".lab-card-panel:has(> .jupyter-widgets:last-child)");
  let open = panelThere() !== null;
  const card = () => {
    const panel = panelThere();
    for (const wider of [root, root.closest(".lab-body")]) wider?.classList.toggle("lab-card-open", panel !== null);
    if (panel && !open) {
      opener ||= document.activeElement;
      panel.lastElementChild.focus({ preventScroll: true });
    }
    if (!panel && open) {
      const back = typeof opener === "string" ? root.querySelector(`.lab-more[data-path="${CSS.escape(opener)}"]`) : opener;
      if (back?.isConnected) back.focus();
      opener = "";
    }
    open = panel !== null;
  };
  card();

  // Lines that come above it push what is edited down, at the worst out of the form.
  let notes = 0;
  const inSight = () => {
    const now = root.querySelectorAll(".lab-error, .lab-doubt").length;
    if (now > notes && document.activeElement?.matches("input, select, textarea")) {
      const row = document.activeElement.closest(".lab-sections .lab-knob");
      row?.scrollIntoView({ block: "nearest" });
    }
    notes = now;
  };

  // What had the focus may be gone with the change that was undone; the next key must not go to the notebook.
  const keep = () => {
    if (performance.now() - walked > WALKED_MS || root.contains(document.activeElement)) return;
    root.querySelector(".lab-tool")?.focus({ preventScroll: true });
  };

  // Views follow the kernel's messages by some frames, so look until the row is there.
  const point = (path, focus) => {
    // The drop-down of an axis stands in its heading, the rest of that knob in a row below.
    const find = () => [...root.querySelectorAll(".lab-heading"), ...root.querySelectorAll(".lab-knob")].find((each) => pathOf(each) === path);
    const mark = (place) => {
      place.scrollIntoView({ block: "nearest" });
      place.classList.add("lab-pointed");
      setTimeout(() => place.classList.remove("lab-pointed"), MARKED_MS);
      if (focus) controlOf(place)?.focus();
    };
    whenThere(find, mark, 60);
  };
  const told = (content) => content.point && point(content.point, content.focus);
  model.on("msg:custom", told);
  return {
    seen: () => {
      typed.follow();
      rest();
      inSight();
      card();
      keep();
    },
    end: () => {
      gone.abort();
      model.off("change:resting", rest);
      model.off("msg:custom", told);
    },
  };
}

function render({ model, el }) {
  el.classList.add("lab-page");
  el.hidden = true;
  const line = document.createElement("div");
  line.className = "lab-hint";
  // Screen readers hear the same from the control itself.
  line.ariaHidden = "true";
  // Within one inner line: what is cut after two lines is cut as a whole.
  const text = document.createElement("span");
  text.append(document.createElement("span"), document.createElement("b"));
  line.append(document.createElement("p"));
  line.firstChild.append(text);
  const words = new Map();
  words.box = Object.assign(document.createElement("div"), { hidden: true });
  el.append(line, words.box);
  let watcher = null;
  let marked = null;
  let composer = null;
  const attach = (root) => {
    marked = root;
    root.addEventListener("focusin", keepKeys);
    root.setAttribute("role", "group");
    for (const [name, label] of Object.entries(names)) {
      if (root.classList.contains(name)) root.setAttribute("aria-label", label);
    }
    if (root.classList.contains("lab-composer")) {
      el.hidden = false;
      composer = compose(model, root, line);
    }
    let planned = false;
    watcher = new MutationObserver((changes) => {
      if (planned || changes.every(({ target }) => el.contains(target))) return;
      planned = true;
      requestAnimationFrame(() => {
        planned = false;
        describe(root, words);
        composer?.seen();
      });
    });
    watcher.observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["class", "title"] });
    describe(root, words);
  };
  const endWait = whenThere(() => el.closest(".lab-root"), attach);
  return () => {
    endWait();
    watcher?.disconnect();
    marked?.removeEventListener("focusin", keepKeys);
    composer?.end();
  };
}

export default { render };
