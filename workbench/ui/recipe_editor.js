// A text area with line numbers; the page owns the draft, the kernel says what is wrong with it.
const PAUSE_MS = 250;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function render({ model, el }) {
  el.classList.add("lab-editor");
  const language = model.get("language");
  // On the control itself: JupyterLab's bindings look at the focused element before any ancestor.
  el.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
  const gutter = element("div", { className: "lab-gutter", ariaHidden: "true" });
  const area = element("textarea", { spellcheck: false, autocapitalize: "off", wrap: "off" });
  area.setAttribute("aria-label", `the recipe as ${language}; Control Enter applies`);
  const list = element("ul");
  const problems = element("div", { className: "lab-problems" }, list);
  problems.id = `lab-problems-${Math.random().toString(36).slice(2)}`;
  problems.setAttribute("role", "alert");
  area.setAttribute("aria-describedby", problems.id);
  const note = element("span", { className: "lab-note" });
  note.setAttribute("role", "status");
  const apply = element("button", { type: "button", textContent: "Apply", title: "take this text over (Ctrl+Enter)" });
  const revert = element("button", { type: "button", textContent: "Revert", title: "forget what was typed here" });
  const copy = element("button", { type: "button", textContent: "Copy", title: `copy the ${language} text` });
  const sheet = element("div", { className: "lab-sheet" }, gutter, area);
  el.append(sheet, problems, element("div", { className: "lab-editor-bar" }, apply, revert, copy, note));
  let timer = 0;

  const number = () => {
    const wrong = new Set(model.get("problems").map(([line]) => line));
    const lines = area.value.split("\n").length;
    gutter.replaceChildren(
      ...Array.from({ length: lines }, (_, index) =>
        element("div", { textContent: String(index + 1), className: wrong.has(index + 1) ? "lab-wrong" : "" }),
      ),
    );
    gutter.scrollTop = area.scrollTop;
  };
  const show = () => {
    const draft = model.get("draft");
    const text = draft ?? model.get("text");
    if (area.value !== text) area.value = text;
    // While it holds a draft, undo belongs to the text.
    if (draft === null) delete area.dataset.labEdited;
    else area.dataset.labEdited = "true";
    area.rows = Math.min(40, Math.max(8, text.split("\n").length));
    apply.disabled = revert.disabled = draft === null;
    const found = model.get("problems");
    list.replaceChildren(
      ...found.map(([line, message]) => {
        const place = element("button", { type: "button", textContent: `line ${line}` });
        place.addEventListener("click", () => go(line));
        return element("li", {}, place, ` ${message}`);
      }),
    );
    problems.hidden = found.length === 0;
    area.setAttribute("aria-invalid", String(found.length > 0));
    note.textContent = draft === null ? "" : model.get("note") ? `Apply: ${model.get("note")}` : "not applied yet";
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
  const answered = ({ applied }) => {
    if (applied) keep(null);
    else if (applied === false) go(model.get("problems")[0]?.[0] ?? 1);
  };
  area.addEventListener("input", () => keep(area.value === model.get("text") ? null : area.value));
  area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop));
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation();
      send();
    }
  });
  apply.addEventListener("click", send);
  revert.addEventListener("click", () => {
    keep(null);
    area.focus();
  });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(area.value);
      note.textContent = "copied";
    } catch {
      // Without https the page may not write to the clipboard; the keyboard still may.
      area.focus();
      area.select();
      note.textContent = "selected: press Ctrl+C";
    }
  });
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
