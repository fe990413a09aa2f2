// What differs, row by row (always text, never HTML); after a row is taken the focus stays at its place.
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// A path may break after its dots, and nowhere else.
function breakable(path) {
  return path.split(".").flatMap((part, index) => (index ? [".", document.createElement("wbr"), part] : [part]));
}

function render({ model, el }) {
  el.classList.add("lab-difference");
  el.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
  const draw = () => {
    const rows = model.get("rows");
    const buttons = [...el.querySelectorAll("button")];
    const focused = buttons.indexOf(document.activeElement);
    const complaint = model.get("complaint");
    const there = model.get("there");
    if (complaint || rows.length === 0) {
      const words = element("p", { className: complaint ? "lab-bad" : "lab-same", textContent: complaint || `Nothing differs from ${there}.` });
      words.setAttribute("role", "status");
      words.tabIndex = -1;
      el.replaceChildren(words);
      if (focused >= 0) words.focus();
      return;
    }
    const body = rows.map((row) => {
      const take = element("button", { type: "button", textContent: "take", title: `set ${row.path} to ${row.there_full}` });
      take.setAttribute("aria-label", `take theirs: ${row.path} ${row.there}`);
      take.addEventListener("click", () => model.send({ take: row.path }));
      return element(
        "tr", {},
        element("th", { scope: "row" }, ...breakable(row.path)),
        element("td", { textContent: row.there, title: row.there_full }),
        element("td", { textContent: row.here, title: row.here_full }),
        element("td", {}, take),
      );
    });
    const heads = ["knob", there, "here", ""].map((text) => element("th", { scope: "col", textContent: text }));
    heads[3].setAttribute("aria-label", "action");
    const count = `${rows.length} ${rows.length === 1 ? "difference" : "differences"} from ${there}`;
    el.replaceChildren(
      element("table", {}, element("caption", { textContent: count }), element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body)),
    );
    if (focused >= 0) el.querySelectorAll("button")[Math.min(focused, rows.length - 1)]?.focus();
  };
  model.on("change:rows change:there change:complaint", draw);
  draw();
  return () => model.off("change:rows change:there change:complaint", draw);
}

export default { render };
