// The Lab of a notebook's cell, a second time: in a tab beside its notebook, which comes back with the page.

import { Cover } from "./cover.js";
import { rendered, WIDGET } from "./lab_kernel.js";
import { tabOf } from "./lab_tab.js";

const BACK = "Go to the notebook";
const ENDED = ["dead", "terminating", "restarting", "autorestarting"];
// How ipywidgets says that a kernel has no such model.
const ABSENT = /model not found/;

export const idOf = (model) => `workbench-lab-${model}`;

/**
 * @param {object} notebook the panel whose kernel the Lab lives in
 * @param {string} model id of the Lab's model
 * @param {() => void} back shows the notebook
 */
export function besideOf(lab, notebook, model, icon, back) {
  const panel = new lab.widgets.Panel();
  panel.node.classList.add("wb-dock-lab", "wb-theme");
  const { context, sessionContext, title } = notebook;
  const tab = tabOf(lab, panel, { id: idOf(model), label: `Lab in ${title.label}`, icon, caption: `The Lab of ${context.path}` });
  Object.assign(tab, { sessionContext, notebook });
  tab.beside = { path: context.path, model };
  const leave = () => {
    tab.dispose();
    back();
  };
  const cover = new Cover(leave, () => panel.node);
  panel.node.append(cover.node);
  cover.say({ title: `Opening the Lab of ${context.path}` });
  const gone = (title) => cover.say({ title, text: "Your runs go on. Run the cell of the Lab again, and open it from there.", button: BACK });
  const hear = (_, status) => ENDED.includes(status) && gone(`The kernel of ${context.path} has ended`);
  const changed = (_, { newValue }) => newValue || hear(_, "dead");
  sessionContext.statusChanged.connect(hear);
  sessionContext.sessionChanged.connect(changed);
  tab.disposed.connect(() => {
    sessionContext.statusChanged.disconnect(hear);
    sessionContext.sessionChanged.disconnect(changed);
  });
  notebook.disposed.connect(() => tab.dispose());
  const shown = (renderer) => {
    const [view] = renderer.widgets;
    if (view) cover.hide();
    else if (ABSENT.test(renderer.node.textContent)) gone(`This Lab of ${context.path} is not there any more`);
    // The cell was run again.
    view?.disposed.connect(() => tab.dispose());
    return Boolean(view);
  };
  draw(lab, notebook, model, panel, shown).catch((error) => cover.say({ title: "The Lab could not be shown", why: String(error?.message ?? error), button: BACK }));
  return tab;
}

/** Draws it as soon as the notebook's widgets are there, which they are not yet while the page comes back. */
async function draw(lab, { content, context, sessionContext }, model, panel, shown) {
  await Promise.all([context.ready, sessionContext.ready]);
  const renderer = await rendered(lab, content.rendermime, { [WIDGET]: { model_id: model, version_major: 2, version_minor: 0 } });
  panel.addWidget(renderer);
  if (shown(renderer)) return;
  const watcher = new MutationObserver(() => shown(renderer) && watcher.disconnect());
  watcher.observe(renderer.node, { childList: true, subtree: true, characterData: true });
  panel.disposed.connect(() => watcher.disconnect());
}
