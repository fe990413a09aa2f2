// What outlives a kernel: the page keeps what was composed and watched, and hands it to the Lab that stands in the same
// place next. In the session's storage, so that a page loaded anew still has it, and no other tab of the browser.

const KEY = "workbench.lab.kept:";

/** Where a Lab stands: its notebook. */
export function placeOf(root, page = document) {
  const panel = root.closest(".jp-NotebookPanel");
  // JupyterLab tells a notebook's path in the tooltip of its tab alone.
  const tab = panel && page.querySelector(`.lm-TabBar-tab[data-id="${panel.id}"]`);
  return /^Path: (.*)$/m.exec(tab?.title ?? "")?.[1] ?? page.location.pathname;
}

/** Keeps what a Lab would lose; `ended` once its kernel has. */
export function keep(place, kept, ended, storage) {
  try {
    (storage ?? sessionStorage).setItem(KEY + place, JSON.stringify({ kept, ended }));
  } catch {
    // No storage here, or none left: then it is lost with the kernel.
  }
}

/** What a Lab of a kernel that ended left in this place, once; `lab` is the one that asks. */
export function take(place, lab, storage) {
  try {
    const { kept, ended } = JSON.parse((storage ?? sessionStorage).getItem(KEY + place)) ?? {};
    if (!ended || kept.lab === lab) return null;
    (storage ?? sessionStorage).removeItem(KEY + place);
    return kept;
  } catch {
    return null; // no storage, or not ours
  }
}
