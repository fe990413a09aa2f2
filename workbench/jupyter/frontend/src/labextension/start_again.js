// The Lab of a notebook's cell whose kernel has ended (lab/ended.js) asks for another kernel: the cell is run again there.
// No other cell is: one above it may launch runs, and what was composed comes back without them.

import { DISCONNECTED } from "../connected.js";

const ENOUGH = "import workbench as wb";

/**
 * Hears the question of every Lab in the page.
 * @param {object} lab JupyterLab's modules
 * @param {(node: Node) => object | undefined} panelOf the notebook that shows a node
 */
export function hearStartAgain(lab, panelOf, page = document) {
  page.addEventListener("workbench:start-again", (event) => {
    const panel = panelOf(event.target);
    const place = panel ? panel.content.widgets.findIndex((cell) => cell.node.contains(event.target)) : -1;
    if (place < 0) return;
    // Taken: the Lab need not tell what to do by hand.
    event.preventDefault();
    startAgain(lab, panel, place).catch((error) => lab.apputils.showErrorMessage("The Lab could not be started again", error));
  });
}

/**
 * Marks the Labs of notebooks that are left without a kernel as ipywidgets marks those of a dead one: it hears of no
 * session that the server has forgotten, such as after the server was started anew.
 * @param {object} notebooks JupyterLab's tracker
 */
export function markWithoutKernel(notebooks) {
  const watch = (panel) =>
    panel.sessionContext.kernelChanged.connect((_, { newValue }) => {
      if (!newValue) for (const root of panel.node.querySelectorAll(".lab-whole")) root.classList.add(DISCONNECTED);
    });
  notebooks.forEach(watch);
  notebooks.widgetAdded.connect((_, panel) => watch(panel));
}

async function startAgain({ notebook: { NotebookActions } }, { content, sessionContext }, place) {
  const kernel = () => sessionContext.session?.kernel;
  // One that died of itself, the server has mostly replaced by now.
  if (kernel()?.status === "dead") await sessionContext.restartKernel();
  if (!kernel()) await sessionContext.startKernel();
  await kernel()?.requestExecute({ code: ENOUGH, store_history: false }).done;
  content.activeCellIndex = place;
  content.deselectAll();
  await NotebookActions.run(content, sessionContext);
}
