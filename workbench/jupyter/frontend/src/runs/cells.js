// One line of the table: its cells are made once and filled again and again, since lines leave and enter the window.

import { el, say } from "../dom.js";
import { nameNode } from "../run_name.js";
import { lineSample } from "../watch/samples.js";
import { BY_KEY, shortPaths, whenText } from "./columns.js";
import { isExperiment, shared, statText } from "./groups.js";
import { countsOf, statesText } from "./states.js";

const EDITABLE = { tags: "tags", note: "note" };

/** An empty line of a run with these columns. */
export function newLine(columns) {
  const box = el("input", { type: "checkbox", class: "lab-check", tabindex: "-1" });
  const mark = el("button", { type: "button", class: "lab-mark", tabindex: "-1" });
  const cells = new Map(columns.map((column) => [column.key, newCell(column)]));
  const line = el("tr", { role: "row", tabindex: "-1", class: "lab-line" }, el("td", { role: "gridcell", class: "lab-pick" }, box, mark), ...cells.values());
  return { line, box, mark, cells, key: "" };
}

/** An empty line of a group: means and spreads, and what these are of where its runs have their state. */
export function newGroupLine(columns) {
  const box = el("input", { type: "checkbox", class: "lab-check", tabindex: "-1" });
  const open = el("button", { type: "button", class: "lab-mark lab-open", tabindex: "-1" });
  const cells = new Map(columns.map((column) => [column.key, newCell({ ...column, key: column.key === "name" ? "name" : "" })]));
  cells.get("state")?.classList.add("lab-state");
  const line = el("tr", { role: "row", tabindex: "-1", class: "lab-together" }, el("td", { role: "gridcell", class: "lab-pick" }, box, open), ...cells.values());
  return { line, box, open, cells, key: "" };
}

function newCell({ key, number }) {
  const cell = el("td", { role: key === "name" ? "rowheader" : "gridcell", class: `lab-cell lab-${key === "state" ? "status" : BY_KEY.has(key) ? key : "other"}${number ? " lab-number" : ""}` });
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
 * Fills the line of a run.
 * @param {object} entry of newLine
 * @param {object} row
 * @param {object} at
 * @param {boolean} at.selected, at.current `current`: the keyboard enters the table here
 * @param {boolean} at.inside it stands in a group
 * @param {number} at.index of the line, at.now milliseconds
 * @param {{stroke: string, dash: number[]} | null} at.mark of its curve, where it is drawn
 * @param {boolean} at.watched it is drawn, or about to be
 * @param {object[]} at.columns
 */
export function fill(entry, row, { selected, current, inside, index, now, mark, watched, columns }) {
  const { line, box, cells } = entry;
  // With every frame of scrolling most lines are where they were.
  const minute = Math.floor(now / 60000);
  const key = `${selected} ${current} ${inside} ${index} ${minute} ${watched} ${mark?.stroke} ${mark?.dash}`;
  if (entry.row === row && entry.key === key && entry.columns === columns) return;
  Object.assign(entry, { row, key, columns });
  line.dataset.run = row.id;
  line.dataset.status = row.status;
  line.classList.toggle("lab-inside", inside);
  set(line, "aria-level", inside ? "2" : null);
  place(entry, selected, current, index);
  set(box, "aria-label", `select ${row.name}`);
  fillMark(entry.mark, row, mark, watched);
  for (const column of columns) {
    const cell = cells.get(column.key);
    if (FILL[column.key]) FILL[column.key](cell, row, now);
    else {
      text(cell, column.text(row, now));
      cell.title = column.tip?.(row) ?? "";
    }
  }
}

/** Fills the line of a group; `closed`: its runs are not shown; `opened`: the race or sweep stands where plots do. */
export function fillGroup(entry, group, { selected, some, current, index, closed, opened, columns }) {
  const { line, box, open, cells } = entry;
  const named = isExperiment(group.id);
  line.classList.toggle("lab-named", named);
  open.hidden = !named;
  set(open, "aria-pressed", String(opened));
  set(open, "aria-label", `show ${group.label}`);
  open.title = opened ? "its picture is shown; click to close it (Enter on the row)" : "show its picture and verdict (Enter on the row)";
  line.dataset.run = group.id;
  place(entry, selected, current, index);
  box.indeterminate = some && !selected;
  set(box, "aria-label", `select the ${group.rows.length} runs of ${group.label}`);
  set(line, "aria-expanded", String(!closed));
  set(line, "aria-level", "1");
  for (const column of columns) {
    const cell = cells.get(column.key);
    if (column.key === "name") {
      // The verdict first: what does not fit is cut from the end.
      const label = [group.label, group.brief, group.unlike].filter(Boolean).join(" · ");
      const told = `${label} (${named ? statesText(countsOf(group.rows)) : group.counted})`;
      text(cell, `${closed ? "▸" : "▾"} ${named || !cells.has("state") ? told : label}`);
      cell.title = told;
    } else if (column.key === "state") {
      // Beside a name that may be cut: the mean in the same line is not of all that stand below it.
      text(cell, named ? "" : group.counted);
      cell.title = named ? "" : group.counted;
    } else if (column.mean) {
      const stat = group.stats.get(column.key);
      text(cell, statText(column, stat));
      cell.title = stat ? [group.unlike, `mean ${stat.spread === null ? "" : "± standard deviation "}of ${stat.count} finished`, stat.about && `~ ${stat.about}`].filter(Boolean).join("; ") : "";
    } else text(cell, BY_KEY.has(column.key) ? "" : shared(column, group.rows));
  }
}

function place({ line, box }, selected, current, index) {
  line.classList.toggle("lab-selected", selected);
  set(line, "aria-selected", String(selected));
  // The header is row 1.
  set(line, "aria-rowindex", String(index + 2));
  set(line, "tabindex", current ? "0" : "-1");
  box.checked = selected;
}

function fillMark(button, row, mark, watched) {
  const key = mark ? `${mark.stroke} ${mark.dash}` : "";
  if (button.dataset.mark !== key) {
    button.dataset.mark = key;
    button.replaceChildren(...(mark ? [lineSample({ ...mark, width: 3 })] : []));
  }
  set(button, "aria-pressed", String(watched));
  set(button, "aria-label", `watch ${row.name}`);
  button.title = watched ? "its curves are drawn; click to take them away (Enter on the row)" : "draw its curves (Enter on the row)";
}

const FILL = {
  name(cell, row) {
    if (cell.textContent !== row.name) cell.firstChild.replaceWith(nameNode(row.name));
    cell.title = row.parent ? `${row.name}\n${row.id}\nforked from ${row.parent.run} at step ${row.parent.step}` : `${row.name}\n${row.id}`;
    cell.classList.toggle("lab-fork", Boolean(row.parent));
  },
  state(cell, row) {
    text(cell, BY_KEY.get("state").text(row));
    cell.title = row.message;
  },
  progress(cell, row) {
    text(cell, BY_KEY.get("progress").text(row));
    cell.firstChild.hidden = Boolean(row.queue_position);
    cell.title = row.queue_position ? `waiting for its turn on this machine; ${row.message}` : "";
    cell.firstChild.firstChild.style.transform = `scaleX(${Math.min(1, Math.max(0, row.progress))})`;
  },
  heldout(cell, row) {
    const { text: value, about } = BY_KEY.get("heldout");
    text(cell, value(row));
    cell.title = about(row);
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
    const note = BY_KEY.get("note").text(row);
    const line = note.split("\n", 1)[0];
    text(cell, row.notes ? line : shortPaths(line));
    cell.title = note;
    cell.classList.toggle("lab-message", !row.notes);
    set(cell.querySelector(".lab-pencil"), "aria-label", `edit the note of ${row.name}`);
  },
};

function text(cell, value) {
  say(cell.querySelector(".lab-text"), value);
}

// A write that changes nothing still makes the browser and screen readers look again.
function set(node, name, value) {
  if (node.getAttribute(name) === value) return;
  if (value === null) node.removeAttribute(name);
  else node.setAttribute(name, value);
}
