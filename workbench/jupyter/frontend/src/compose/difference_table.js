// What differs, row by row (always text, never HTML); after a row is taken the focus stays at its place.

import { el } from "../dom.js";
// A path may break after its dots, a name after its underscores, and neither anywhere else.
function breakable(text, sign) {
  return text.split(sign).flatMap((part, index) => (index ? [sign, document.createElement("wbr"), part] : [part]));
}

function render({ model, el: root }) {
  root.classList.add("lab-difference");
  const draw = () => {
    const rows = model.get("rows");
    const buttons = [...root.querySelectorAll("button")];
    const focused = buttons.indexOf(document.activeElement);
    const complaint = model.get("complaint");
    const there = model.get("there");
    if (complaint || rows.length === 0) {
      const words = el("p", { class: complaint ? "lab-bad" : "lab-same", text: complaint || `Nothing differs from ${there}.`, role: "status", tabindex: "-1" });
      root.replaceChildren(words);
      if (focused >= 0) words.focus();
      return;
    }
    const body = rows.map((row) => {
      const words = { "aria-label": `take theirs: ${row.path} ${row.there}`, title: `set ${row.path} to ${row.there_full}` };
      const take = el("button", { type: "button", text: "take", ...words, on: { click: () => model.send({ take: row.path }) } });
      return el(
        "tr", row.inside ? { class: "lab-inside" } : {},
        el("th", { scope: "row" }, ...breakable(row.path, ".")),
        el("td", { title: row.there_full }, ...breakable(row.there, "_")),
        el("td", { title: row.here_full }, ...breakable(row.here, "_")),
        el("td", {}, ...(row.inside ? [] : [take])),
      );
    });
    const heads = ["knob", there, "here", ""].map((text) => el("th", { scope: "col", text, "aria-label": text ? null : "action" }));
    const count = `${rows.length} ${rows.length === 1 ? "difference" : "differences"} from ${there}`;
    root.replaceChildren(el("table", {}, el("caption", { text: count }), el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...body)));
    if (focused >= 0) root.querySelectorAll("button")[Math.min(focused, rows.length - 1)]?.focus();
  };
  model.on("change:rows change:there change:complaint", draw);
  draw();
  return () => model.off("change:rows change:there change:complaint", draw);
}

export default { render };
