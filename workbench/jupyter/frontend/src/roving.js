// One stop of the tabulator for a group of controls; arrows, Home and End go along it.

/**
 * Makes a toolbar of a node.
 * @param {HTMLElement} node
 * @param {() => HTMLElement[]} controls those that are shown now, in their order
 * @param {(control: HTMLElement, by: number) => HTMLElement | undefined} [across] in a table: the one above (-1) or below
 * @returns {() => void} to be called when the controls have changed: one of them, the last used, can be reached
 */
export function roving(node, controls, across = () => undefined) {
  let last = null;
  const settle = () => {
    const all = controls();
    if (!all.includes(last)) last = all.find((control) => control === document.activeElement) ?? all[0] ?? null;
    for (const control of all) if (control.tabIndex !== (control === last ? 0 : -1)) control.tabIndex = control === last ? 0 : -1;
  };
  node.addEventListener("focusin", ({ target }) => {
    if (!controls().includes(target)) return;
    last = target;
    settle();
  });
  node.addEventListener("keydown", (event) => {
    // In a drop-down the arrows choose.
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const all = controls();
    const here = all.indexOf(event.target);
    if (here < 0) return;
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
    const next = by ? across(event.target, by) : all[(to + all.length) % all.length];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    next.focus();
  });
  settle();
  return settle;
}
