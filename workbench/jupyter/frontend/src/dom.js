// Elements without innerHTML: names of runs, events and errors are data, and only ever become text.

import { rgb } from "./palette.js";

const FOCUSABLE = new Set(["button", "select", "input", "textarea"]);

/**
 * Makes an element.
 * @param {string} tag
 * @param {object} properties `class`, `text`, `on` (event -> handler), properties of the element, or attributes
 * @param {...(Node|null)} children
 */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  // JupyterLab matches its shortcuts from the focused element upwards, so the attribute on our root is seen too late.
  if (FOCUSABLE.has(tag) || "tabindex" in properties) node.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key === "class") node.className = value;
    else if (key === "text") node.textContent = value;
    else if (key === "on") for (const [name, handler] of Object.entries(value)) node.addEventListener(name, handler);
    else if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter(Boolean));
  return node;
}

/** Sets text only when it differs, so that screen readers and selections are left in peace. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** The words of each row, its parts with a space between them. */
export function rowsOf(node) {
  return [...node.children].map((row) => [...row.childNodes].map((part) => part.textContent.trim()).filter(Boolean).join(" "));
}

/** A group of exclusive buttons. */
export function segments(label, choices, chosen, choose) {
  const buttons = choices.map(([value, text]) =>
    el("button", {
      type: "button",
      text,
      "aria-pressed": String(value === chosen),
      on: {
        click: () => {
          for (const [i, [other]] of choices.entries()) buttons[i].setAttribute("aria-pressed", String(other === value));
          choose(value);
        },
      },
    }),
  );
  return el("div", { class: "wb-segments", role: "group", "aria-label": label }, ...buttons);
}

/** A drop-down; `set` replaces its options and keeps the choice if it is still there. */
export function dropdown(label, choose) {
  const select = el("select", { "aria-label": label, on: { change: () => choose(select.value) } });
  const set = (options, chosen) => {
    const key = JSON.stringify(options);
    if (select.dataset.key !== key) {
      select.dataset.key = key;
      select.replaceChildren(...options.map(([value, text]) => el("option", { value: String(value), text })));
    }
    if (select.value !== String(chosen)) select.value = String(chosen);
    // Cut short where there is little room.
    select.title = select.selectedOptions[0]?.text ?? "";
  };
  return { node: select, set };
}

/** A node of a drawing. */
export function svg(tag, attributes, ...inside) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...inside);
  return node;
}

/** Brings a node into sight, smoothly unless the system asks for calm. */
export function bringUp(node, block) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  node.scrollIntoView({ block, behavior: calm ? "auto" : "smooth" });
}

/** Calls `then` with what `find` finds, as soon as it does: widgets are attached after their render returns, their neighbours later still. Returns what ends the wait. */
export function whenThere(find, then, frames = 600) {
  let waiting = 0;
  const look = (left) => {
    const found = find();
    if (found) then(found);
    else if (left > 0) waiting = requestAnimationFrame(() => look(left - 1));
  };
  look(frames);
  return () => cancelAnimationFrame(waiting);
}

/** Calls `hear` whenever the page's theme may have changed; returns what ends that. */
export function watchTheme(hear) {
  const watcher = new MutationObserver(() => hear());
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  return () => watcher.disconnect();
}

/** Theme as it is drawn: text colours say more than any attribute, in every front end. Colours are #rrggbb. */
export function themeOf(root) {
  const style = getComputedStyle(root);
  const ink = painted(style.color);
  const [r, g, b] = rgb(ink);
  const dark = 0.299 * r + 0.587 * g + 0.114 * b > 128;
  // A system that forces its colours does so to what CSS paints, not to the tokens nor to a canvas.
  const tokens = matchMedia("(forced-colors: active)").matches
    ? [ink, dark ? "#444444" : "#bbbbbb", dark ? "#000000" : "#ffffff"]
    : ["--wb-muted", "--wb-grid", "--wb-ground"].map((name) => painted(style.getPropertyValue(name).trim()));
  const [muted, grid, ground] = tokens;
  return { dark, ink, muted, grid, ground, font: `11px ${style.fontFamily}` };
}

const seen = new Map();
let pixel = null;

// #rrggbb of any CSS colour: a token is a mixture of others, and pictures and files take no mixtures.
function painted(colour) {
  if (!seen.has(colour)) {
    pixel ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    seen.set(colour, `#${[...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((part) => part.toString(16).padStart(2, "0")).join("")}`);
  }
  return seen.get(colour);
}
