// The table of runs: rows are data from the kernel (always text, never HTML); a checkbox per row selects.
const columns = [
  ["name", "run", (row) => row.name],
  ["status", "state", (row) => row.status],
  ["progress", "progress", (row) => `${Math.floor(100 * row.progress)}%`],
  ["step", "step", (row) => row.step.toLocaleString("en")],
  ["loss", "loss", (row) => fixed(row.loss)],
  ["heldout_loss", "held-out", (row) => fixed(row.heldout_loss)],
  ["tokens_per_second", "tokens/s", (row) => (row.tokens_per_second == null ? "" : Math.round(row.tokens_per_second).toLocaleString("en"))],
  ["message", "doing", (row) => row.message],
];

function fixed(value) {
  return typeof value === "number" && Number.isFinite(value) ? value.toFixed(3) : "";
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// Rows are kept and changed in place, so that neither focus nor scroll position is lost by a refresh.
function newRow(model, id) {
  const box = element("input", { type: "checkbox" });
  box.addEventListener("change", () => choose(model, id, box.checked));
  const cells = columns.map(([key]) => element("td", { className: `lab-${key}` }));
  const progress = cells[2];
  progress.append(element("span", { className: "lab-bar" }, element("span")), element("span"));
  const line = element("tr", {}, element("td", {}, box), ...cells);
  line.addEventListener("click", (event) => {
    if (event.target === box || getSelection()?.toString()) return;
    model.set("selected", [id]);
    model.save_changes();
  });
  return { line, box, cells };
}

function choose(model, id, on) {
  const now = new Set(model.get("selected"));
  if (on) now.add(id);
  else now.delete(id);
  model.set("selected", model.get("rows").map((row) => row.id).filter((other) => now.has(other)));
  model.save_changes();
}

function fill(entry, row, selected) {
  columns.forEach(([key, , text], index) => {
    const cell = key === "progress" ? entry.cells[index].lastChild : entry.cells[index];
    const value = text(row);
    if (cell.textContent !== value) cell.textContent = value;
  });
  entry.cells[2].firstChild.firstChild.style.width = `${100 * Math.min(1, Math.max(0, row.progress))}%`;
  entry.cells[0].title = row.id;
  entry.cells[7].title = row.message;
  entry.line.dataset.status = row.status;
  entry.line.dataset.run = row.id;
  entry.line.classList.toggle("lab-selected", selected);
  entry.box.checked = selected;
  entry.box.setAttribute("aria-label", `watch ${row.name}, ${row.status}`);
}

function render({ model, el }) {
  el.classList.add("lab-runs");
  // On the control itself: JupyterLab's bindings look at the focused element before any ancestor.
  el.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
  const body = element("tbody");
  const head = element("tr", {}, element("th", { scope: "col" }, element("span", { className: "lab-hidden", textContent: "watch" })));
  for (const [key, title] of columns) head.append(element("th", { scope: "col", className: `lab-${key}`, textContent: title }));
  const table = element("table", {}, element("caption", { className: "lab-hidden", textContent: "runs, newest first" }), element("thead", {}, head), body);
  const note = element("p", { className: "lab-note" });
  el.append(table, note);
  const entries = new Map();

  const draw = () => {
    const rows = model.get("rows");
    const selected = new Set(model.get("selected"));
    const present = new Set(rows.map((row) => row.id));
    for (const [id, entry] of entries) {
      if (present.has(id)) continue;
      entry.line.remove();
      entries.delete(id);
    }
    rows.forEach((row, index) => {
      if (!entries.has(row.id)) entries.set(row.id, newRow(model, row.id));
      const entry = entries.get(row.id);
      fill(entry, row, selected.has(row.id));
      if (body.children[index] !== entry.line) body.insertBefore(entry.line, body.children[index] ?? null);
    });
    table.hidden = rows.length === 0;
    note.textContent = model.get("complaint") || (rows.length ? "" : "no runs yet: launch one");
    note.hidden = note.textContent === "";
  };
  model.on("change:rows change:selected change:complaint", draw);
  draw();
  return () => model.off("change:rows change:selected change:complaint", draw);
}

export default { render };
