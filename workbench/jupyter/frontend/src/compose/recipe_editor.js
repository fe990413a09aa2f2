// A text area with line numbers; the page owns the draft, the kernel says what is wrong with it.

import { el, say } from "../dom.js";

const PAUSE_MS = 250;

function render({ model, el: root }) {
  root.classList.add("lab-editor");
  const language = model.get("language");
  const readonly = model.get("readonly");
  const id = `lab-problems-${Math.random().toString(36).slice(2)}`;
  const gutter = el("div", { class: "lab-gutter", "aria-hidden": "true" });
  const area = el("textarea", {
    spellcheck: false, autocapitalize: "off", wrap: "off", "aria-label": `the recipe as ${language}${readonly ? "" : "; Control Enter applies"}`, "aria-describedby": id,
  });
  const list = el("ul");
  const problems = el("div", { id, class: "lab-problems", role: "alert" }, list);
  const note = el("span", { class: "lab-note", role: "status" });
  const button = (text, title, click) => el("button", { type: "button", text, title, on: { click } });
  const apply = button("Apply", "take this text over (Ctrl+Enter)", () => send());
  const revert = button("Revert", "forget what was typed here", () => (keep(null), area.focus()));
  const copy = button("Copy", `copy the ${language} text`, () => toClipboard());
  area.readOnly = readonly;
  root.append(el("div", { class: "lab-sheet" }, gutter, area), problems, el("div", { class: "lab-editor-bar" }, ...(readonly ? [] : [apply, revert]), copy, note));
  let timer = 0;

  const number = () => {
    const wrong = new Set(model.get("problems").map(([line]) => line));
    const lines = area.value.split("\n").length;
    gutter.replaceChildren(...Array.from({ length: lines }, (_, i) => el("div", { text: String(i + 1), class: wrong.has(i + 1) ? "lab-wrong" : "" })));
    gutter.scrollTop = area.scrollTop;
  };
  const show = () => {
    const draft = model.get("draft");
    const text = draft ?? model.get("text");
    if (area.value !== text) {
      area.value = text;
      // The caret goes to the end of a new text, and the beginnings of its lines out of sight.
      area.scrollLeft = 0;
    }
    // While it holds a draft, undo belongs to the text.
    if (draft === null) delete area.dataset.labEdited;
    else area.dataset.labEdited = "true";
    // Launch and Race take it along, and its blur must not make it look sent.
    area.classList.toggle("lab-draft", draft !== null);
    area.rows = Math.min(40, Math.max(8, text.split("\n").length));
    apply.disabled = revert.disabled = draft === null;
    const found = model.get("problems");
    list.replaceChildren(...found.map(([line, message]) => el("li", {}, button(`line ${line}`, null, () => go(line)), ` ${message}`)));
    problems.hidden = found.length === 0;
    area.setAttribute("aria-invalid", String(found.length > 0));
    say(note, draft === null ? "" : model.get("note") ? `Apply: ${model.get("note")}` : "not applied yet");
    number();
  };
  const go = (line) => {
    const lines = area.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  };
  const keep = (draft) => {
    clearTimeout(timer);
    model.set("draft", draft);
    timer = setTimeout(() => model.save_changes(), draft === null ? 0 : PAUSE_MS);
    show();
  };
  const send = () => {
    if (model.get("draft") === null) return;
    clearTimeout(timer);
    model.send({ apply: area.value });
  };
  const answered = ({ applied, text }) => {
    // What was typed since stays, as a draft of what comes next.
    if (applied && text === area.value) keep(null);
    else if (applied === false) go(model.get("problems")[0]?.[0] ?? 1);
  };
  area.addEventListener("input", () => keep(area.value === model.get("text") ? null : area.value));
  // Launch and Race ask for what stands here: whoever goes to them leaves it first.
  area.addEventListener("blur", () => {
    clearTimeout(timer);
    model.save_changes();
  });
  area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop));
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation();
      send();
    }
  });
  const toClipboard = async () => {
    try {
      await navigator.clipboard.writeText(area.value);
      note.textContent = "copied";
    } catch {
      // Without https the page may not write to the clipboard; the keyboard still may.
      area.focus();
      area.select();
      note.textContent = "selected: press Ctrl+C";
    }
  };
  model.on("change:text change:draft change:problems change:note", show);
  model.on("msg:custom", answered);
  show();
  return () => {
    // Also what was typed a moment before the view was left.
    clearTimeout(timer);
    model.save_changes();
    model.off("change:text change:draft change:problems change:note", show);
    model.off("msg:custom", answered);
  };
}

export default { render };
