// The one agreement between the Lab in a cell (lab/frame.js) and JupyterLab's extension (plugin.js), which may be missing:
// `globalThis[TABS]` is `{has(node), open(node, model)}`: whether a Lab that is shown at a node can have a tab, and opens it.

export const TABS = Symbol.for("workbench.tabs");
