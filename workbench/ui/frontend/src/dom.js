// Elements without innerHTML: names of runs, events and errors are data, and only ever become text.

const FOCUSABLE = new Set(["button", "select", "input"]);

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

/** What an entry of a legend looks like: a piece of a line, the shape of a layer's state, or a ramp of colours. */
export function sampleOf({ line, ink, ramp }) {
  if (line) return lineSample(line);
  if (ink) return inkSample(ink);
  const bar = el("span", { class: "wb-ramp" });
  bar.style.backgroundImage = `linear-gradient(90deg, ${ramp.join(", ")})`;
  return bar;
}

/** The words of each row, its parts with a space between them. */
export function rowsOf(node) {
  return [...node.children].map((row) => [...row.childNodes].map((part) => part.textContent.trim()).filter(Boolean).join(" "));
}

/** A short piece of a line as it is drawn: colour, dash, width, a ring for points, a box for an area. */
export function lineSample({ stroke, dash = [], width = 2, ring = false, fill = null }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "wb-sample");
  svg.setAttribute("width", "24");
  svg.setAttribute("height", "10");
  svg.setAttribute("aria-hidden", "true");
  if (fill) {
    const box = document.createElementNS(svg.namespaceURI, "rect");
    for (const [key, value] of Object.entries({ x: 3, y: 0, width: 18, height: 10, fill })) box.setAttribute(key, value);
    svg.append(box);
    return svg;
  }
  const shape = document.createElementNS(svg.namespaceURI, ring ? "circle" : "line");
  const place = ring ? { cx: 12, cy: 5, r: 3.2, fill: "none" } : { x1: 1, y1: 5, x2: 23, y2: 5 };
  for (const [key, value] of Object.entries(place)) shape.setAttribute(key, value);
  shape.setAttribute("stroke", stroke);
  shape.setAttribute("stroke-width", ring ? 1.8 : width);
  if (dash.length && !ring) shape.setAttribute("stroke-dasharray", dash.join(" "));
  svg.append(shape);
  return svg;
}

/** The shape of a layer's state (see palette.js), as its row in the layer map has it. */
export function inkSample({ colour, shape, opacity }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({ class: "wb-sample", width: 18, height: 14, "aria-hidden": "true" })) svg.setAttribute(key, value);
  const slice = 14 / shape.length;
  // Slices that touch are one rectangle: two would show a seam.
  for (const { index, 0: ink } of shape.matchAll(/#+/g)) {
    const rect = document.createElementNS(svg.namespaceURI, "rect");
    const place = { x: 0, y: 14 - (index + ink.length) * slice, width: 18, height: ink.length * slice, fill: colour, opacity };
    for (const [key, value] of Object.entries(place)) rect.setAttribute(key, value);
    svg.append(rect);
  }
  return svg;
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

/** A button that is on or off. */
export function toggle(text, title, changed) {
  const flip = () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    changed(on);
  };
  const button = el("button", { type: "button", class: "wb-quiet", text, title, "aria-label": title, "aria-pressed": "false", on: { click: flip } });
  return button;
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
  };
  return { node: select, set };
}

/** Theme as it is drawn: text colours say more than any attribute, in every front end. */
export function themeOf(root) {
  const style = getComputedStyle(root);
  const [r, g, b] = (style.color.match(/[\d.]+/g) ?? [0, 0, 0]).map(Number);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    dark: 0.299 * r + 0.587 * g + 0.114 * b > 128,
    ink: style.color,
    muted: read("--wb-muted"),
    grid: read("--wb-grid"),
    ground: read("--wb-ground"),
    font: `11px ${style.fontFamily}`,
  };
}
