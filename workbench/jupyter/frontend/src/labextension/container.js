// What JupyterLab loads first: a container of module federation, written out. It brings no library of its own; JupyterLab
// hands in the modules that its extensions share, and asks for ours. Made so, the extension needs no bundler but ours.

import { plugin } from "./plugin.js";

export const NAME = "workbench";
const SHARED = [
  "@jupyterlab/application",
  "@jupyterlab/apputils",
  "@jupyterlab/launcher",
  "@jupyterlab/notebook",
  "@jupyterlab/rendermime",
  "@jupyterlab/statusbar",
  "@jupyterlab/ui-components",
  "@lumino/widgets",
  "@jupyter-widgets/jupyterlab-manager",
];

/** Whether version `a` is newer than `b`, both as "4.6.2". */
export function newer(a, b) {
  const [left, right] = [a, b].map((text) => text.split(/[.+-]/).map((part) => Number.parseInt(part, 10) || 0));
  const place = left.findIndex((part, i) => part !== (right[i] ?? 0));
  return place >= 0 && left[place] > (right[place] ?? 0);
}

/** One shared module: the copy in use, else the newest on offer. */
export async function shared(scope, name) {
  const offered = Object.entries(scope[name]);
  const [, chosen] = offered.find(([, { loaded }]) => loaded) ?? offered.reduce((best, each) => (newer(each[0], best[0]) ? each : best));
  return (await chosen.get())();
}

/**
 * The container.
 * @param {string} address of this script: what else the extension brings lies beside it
 */
export function container(address) {
  let scope = {};
  return {
    init(given) {
      scope = given;
    },
    async get() {
      // Notebook 7 and Voila lack some of them: their cells show the Lab as they always did.
      const complete = SHARED.every((name) => scope[name]);
      const modules = complete ? await Promise.all(SHARED.map((name) => shared(scope, name))) : [];
      const lab = Object.fromEntries(modules.map((module, i) => [SHARED[i].split("/")[1], module]));
      return () => ({ __esModule: true, default: complete ? [plugin(lab, address)] : [] });
    },
  };
}
