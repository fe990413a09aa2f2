// One row of the table: its cells are made once and filled again and again, since rows leave and enter the window.

import { el, say } from "../dom.js";
import { BY_KEY, whenText } from "./columns.js";

const EDITABLE = { tags: "tags", note: "note" };

/** An empty row with these columns. */
export function newLine(keys) {
  const box = el("input", { type: "checkbox", class: "lab-check", tabindex: "-1" });
  const cells = new Map(keys.map((key) => [key, newCell(key)]));
  const line = el("tr", { role: "row", tabindex: "-1", class: "lab-line" }, el("td", { role: "gridcell", class: "lab-pick" }, box), ...cells.values());
  return { line, box, cells, row: null, key: "" };
}

function newCell(key) {
  const cell = el("td", { role: key === "name" ? "rowheader" : "gridcell", class: `lab-cell lab-${key === "state" ? "status" : key}${BY_KEY.get(key).number ? " lab-number" : ""}` });
  if (key === "progress") cell.append(el("span", { class: "lab-bar", "aria-hidden": "true" }, el("span")), el("span", { class: "lab-text" }));
  else if (key === "tags") cell.append(el("span", { class: "lab-chips" }), pencil(key));
  else if (key === "note") cell.append(el("span", { class: "lab-text" }), pencil(key));
  else cell.append(el("span", { class: "lab-text" }));
  return cell;
}

// With a pointer; the keyboard has T and N on the row.
function pencil(key) {
  return el("button", { type: "button", class: "lab-pencil", tabindex: "-1", "data-edit": EDITABLE[key], text: "✎" });
}

/**
 * Fills a row.
 * @param {object} entry of newLine
 * @param {object} row
 * @param {{selected: boolean, current: boolean, index: number, now: number}} at
 */
export function fill(entry, row, { selected, current, index, now }) {
  const { line, box, cells } = entry;
  // With every frame of scrolling most rows are where they were.
  const minute = Math.floor(now / 60000);
  const key = `${selected} ${current} ${index} ${minute}`;
  if (entry.row === row && entry.key === key) return;
  Object.assign(entry, { row, key });
  line.dataset.run = row.id;
  line.dataset.status = row.status;
  line.classList.toggle("lab-selected", selected);
  set(line, "aria-selected", String(selected));
  // The header is row 1.
  set(line, "aria-rowindex", String(index + 2));
  set(line, "tabindex", current ? "0" : "-1");
  box.checked = selected;
  set(box, "aria-label", `select ${row.name}`);
  for (const [key, cell] of cells) FILL[key] ? FILL[key](cell, row, now) : text(cell, BY_KEY.get(key).text(row, now));
}

const FILL = {
  name(cell, row) {
    text(cell, row.name);
    cell.title = row.parent ? `${row.id}\nforked from ${row.parent.run} at step ${row.parent.step}` : row.id;
    cell.classList.toggle("lab-fork", Boolean(row.parent));
  },
  state(cell, row) {
    text(cell, BY_KEY.get("state").text(row));
    cell.title = row.message;
  },
  progress(cell, row) {
    text(cell, BY_KEY.get("progress").text(row));
    cell.firstChild.firstChild.style.transform = `scaleX(${Math.min(1, Math.max(0, row.progress))})`;
  },
  owner(cell, row) {
    text(cell, row.owner);
    cell.title = row.host ? `${row.owner} on ${row.host}` : "";
  },
  device(cell, row) {
    text(cell, row.device);
    cell.title = row.device;
  },
  started(cell, row, now) {
    text(cell, BY_KEY.get("started").text(row, now));
    cell.title = whenText(row.started);
  },
  tags(cell, row) {
    const chips = cell.firstChild;
    if (chips.dataset.tags !== row.tags.join(" ")) {
      chips.dataset.tags = row.tags.join(" ");
      chips.replaceChildren(...row.tags.map((tag) => el("span", { class: "lab-chip", text: tag })));
    }
    cell.title = row.tags.join(" ");
    set(cell.querySelector(".lab-pencil"), "aria-label", `edit tags of ${row.name}`);
  },
  note(cell, row) {
    text(cell, BY_KEY.get("note").text(row).split("\n", 1)[0]);
    cell.title = BY_KEY.get("note").text(row);
    cell.classList.toggle("lab-message", !row.notes);
    set(cell.querySelector(".lab-pencil"), "aria-label", `edit the note of ${row.name}`);
  },
};

function text(cell, value) {
  say(cell.querySelector(".lab-text"), value);
}

// A write that changes nothing still makes the browser and screen readers look again.
function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}
