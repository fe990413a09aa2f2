// What opens over the Lab: a comparison, a difference, a report. The rows of the table would be no place for them.

import { el } from "../dom.js";
import { whole } from "../format.js";

/** A value of a comparison as text. */
export function shown(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number" || !Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) >= 1000) return whole(value);
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1000 ? whole(value) : size >= 0.01 ? String(Number(value.toPrecision(4))) : String(Number(value.toPrecision(3)));
}

/** The tables of a comparison as Markdown, to be pasted into an issue or a notebook. */
export function markdown({ runs, numbers = [], knobs = [] }) {
  const cell = (text) => String(text).replaceAll("|", "\\|").replaceAll("\n", " ");
  const line = (cells) => `| ${cells.map(cell).join(" | ")} |`;
  const rows = [...numbers.map(({ label, values }) => [label, ...values.map(shown)]), ...knobs.map(({ path, values }) => [path, ...values.map(shown)])];
  return [line(["", ...runs.map((run) => run.name)]), line(["---", ...runs.map(() => "---")]), ...rows.map(line)].join("\n");
}

/**
 * The sheet, a dialog that is not open yet; `close` takes it away; what has a `release` is told when it goes.
 * @param {object} sheet `{kind: "compare" | "diff" | "report", title, ...}`
 */
export function drawSheet(sheet, close) {
  const tools = el("div", { class: "lab-over-tools" });
  const node = el("dialog", { class: `lab-over lab-${sheet.kind}-over`, "aria-label": sheet.title }, el("header", {}, el("h4", { text: sheet.title }), tools));
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  });
  // Escape, where the browser itself takes it.
  node.addEventListener("cancel", close);
  // A click beside it is one on the dialog's own backdrop.
  node.addEventListener("click", (event) => event.target === node && close());
  if (sheet.kind === "report") report(sheet, node, tools, close);
  else comparison(sheet, node, tools);
  tools.append(el("button", { type: "button", text: "Close", "aria-label": `close ${sheet.title}`, on: { click: close } }));
  return node;
}

function comparison(sheet, node, tools) {
  const head = el("tr", {}, el("th", { scope: "col" }, el("span", { class: "lab-hidden", text: "number or knob" })), ...sheet.runs.map((run) => el("th", { scope: "col", text: run.name, title: run.id ?? "" })));
  const body = el("tbody");
  for (const { label, values, best } of sheet.numbers ?? []) {
    const cells = values.map((value, i) => el("td", { class: best.includes(i) ? "lab-number lab-best" : "lab-number", text: shown(value), title: best.includes(i) ? "best of these" : "" }));
    body.append(el("tr", {}, el("th", { scope: "row", text: label }), ...cells));
  }
  if (sheet.numbers && sheet.knobs.length) body.append(el("tr", { class: "lab-part" }, el("th", { scope: "colgroup", colspan: String(sheet.runs.length + 1), text: `${sheet.knobs.length} ${sheet.knobs.length === 1 ? "knob differs" : "knobs differ"}` })));
  for (const { path, values } of sheet.knobs) body.append(el("tr", {}, el("th", { scope: "row", text: path }), ...values.map((value) => el("td", { text: shown(value) }))));
  const table = el("table", {}, el("caption", { class: "lab-hidden", text: sheet.title }), el("thead", {}, head), body);
  node.append(el("div", { class: "lab-over-body", tabindex: "0", role: "group", "aria-label": `table: ${sheet.title}` }, table));
  for (const note of sheet.notes ?? []) node.append(el("p", { class: "lab-note", text: note }));
  if (!sheet.knobs.length) node.append(el("p", { class: "lab-note", text: "no knob differs: the recipes ask for the same training" }));
  const copy = el("button", { type: "button", text: "Copy as Markdown" });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(markdown(sheet));
      copy.textContent = "Copied";
    } catch {
      // Pages that are not served securely have no clipboard: the text itself can always be marked.
      node.append(el("textarea", { class: "lab-markdown", rows: 8, readOnly: true, "aria-label": "as Markdown" }));
      node.querySelector(".lab-markdown").value = markdown(sheet);
    }
  });
  tools.append(copy);
}

// Keys that are pressed in a frame stay there: this one tells its page of Escape.
const LEFT = "workbench:left";
const LEAVES = `<script>addEventListener("keydown", ({ key }) => key === "Escape" && parent.postMessage("${LEFT}", "*"));</script>`;

// The report has scripts for its pictures. In a frame without our origin they reach nothing of Jupyter's.
function report(sheet, node, tools, close) {
  // From a kernel it comes as bytes.
  const [address, framed] = [[sheet.page], [sheet.page, LEAVES]].map((parts) => URL.createObjectURL(new Blob(parts, { type: "text/html" })));
  const frame = el("iframe", { class: "lab-report", sandbox: "allow-scripts", src: framed, title: sheet.title });
  const left = ({ source, data }) => source === frame.contentWindow && data === LEFT && close();
  addEventListener("message", left);
  node.release = () => {
    removeEventListener("message", left);
    for (const each of [address, framed]) URL.revokeObjectURL(each);
  };
  tools.append(el("a", { href: address, download: sheet.file, class: "lab-link", text: "Download" }));
  if (sheet.path) tools.prepend(el("span", { class: "lab-count", text: `saved as ${sheet.path}` }));
  node.append(frame);
}
