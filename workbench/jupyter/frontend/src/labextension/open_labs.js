// The Labs that stand in the page, in tabs and in cells: a run that is clicked elsewhere opens in one of them.

/** Whether the kernel of a Lab's widget hears its page: it lives, and is not in the middle of a cell. */
function answers({ sessionContext, notebook, content }) {
  const cells = (notebook?.content ?? content)?.widgets ?? [];
  return ["idle", "busy"].includes(sessionContext?.session?.kernel?.status) && ![...cells].some(({ model }) => model?.executionState === "running");
}

/**
 * Offers a run to the Labs of the main area, those in sight first; the first that knows the run shows it.
 * @param {Iterable<object>} widgets of the main area
 * @param {string} run "<place>/<run id>", as kernels name it
 * @param {object | null} own the Lab's own tab
 * @returns {object | null} the widget whose Lab has taken it
 */
export function openInLab(widgets, run, own) {
  const rank = (widget) => (widget.isVisible ? 0 : 2) + (widget === own ? 0 : 1);
  for (const widget of [...widgets].sort((a, b) => rank(a) - rank(b)).filter(answers)) {
    for (const table of widget.node.querySelectorAll(".lab-whole .lab-runs")) {
      // Heard by runs/runs_table.js.
      const asked = new CustomEvent("workbench:watch", { cancelable: true, detail: { run } });
      if (!table.dispatchEvent(asked)) return widget;
    }
  }
  return null;
}
