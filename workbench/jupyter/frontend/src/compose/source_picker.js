// A drop-down of presets and runs. The list of runs is asked for when somebody is about to open it.

import { el } from "../dom.js";

const AGAIN_MS = 2000;

function group(label, options) {
  return el("optgroup", { label }, ...options.map(([value, words]) => new Option(words, value)));
}

function render({ model, el: root }) {
  root.classList.add("lab-source");
  const [id, title] = [`lab-source-${Math.random().toString(36).slice(2)}`, model.get("hint")];
  const select = el("select", { id, title });
  root.append(el("label", { for: id, title, text: model.get("label") }), select);
  let runs = [];
  let asked = -Infinity;

  const fill = () => {
    const value = model.get("value") ?? "";
    const own = model.get("own");
    const presets = model.get("presets").map((name) => [name, name]);
    // One that was picked earlier stays in the list, whether or not the runs have been asked for since.
    const known = value === "" || presets.some(([name]) => name === value) || runs.some(([id]) => id === value);
    const listed = known ? runs : [[value, model.get("words") || value], ...runs];
    select.replaceChildren(
      ...(own ? [new Option(own, "")] : []),
      group("Presets", presets),
      ...(listed.length ? [group("Recipes of runs", listed)] : []),
    );
    select.value = value;
  };
  const ask = () => {
    if (performance.now() - asked < AGAIN_MS) return;
    asked = performance.now();
    model.send({ list: "runs" });
  };
  const answered = (content) => {
    if (!content.runs) return;
    const same = JSON.stringify(content.runs) === JSON.stringify(runs);
    runs = content.runs;
    // An open list that is filled anew would jump under the pointer.
    if (!same) fill();
  };
  // The pointer arrives, or the keyboard, some hundred milliseconds before the list is open.
  select.addEventListener("pointerenter", ask);
  select.addEventListener("focus", ask);
  select.addEventListener("change", () => model.send({ pick: select.value || null }));
  model.on("change:value change:words change:own change:presets", fill);
  model.on("msg:custom", answered);
  fill();
  return () => {
    model.off("change:value change:words change:own change:presets", fill);
    model.off("msg:custom", answered);
  };
}

export default { render };
