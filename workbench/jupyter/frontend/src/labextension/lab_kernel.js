// The kernel of the Lab that has a tab: started, named and found again by itself, with a widget manager like a
// notebook's. All pages share it; each window has a Lab of its own in it (workbench/jupyter/lab/tab.py).

import { windowName } from "./window_name.js";

export const WIDGET = "application/vnd.jupyter.widget-view+json";
// In the server's root folder, so that its runs folder is the server's own. The path is what pages find it again by.
export const NAME = "Workbench";
const RESTORED_WITHIN_MS = 20_000;
const show = (name) => `from workbench.jupyter.lab.tab import lab_of_tab\nlab_of_tab(window="${name}")`;

export class LabKernel {
  /**
   * @param {object} lab JupyterLab's modules
   * @param {object} services JupyterLab's service manager
   * @param {object} rendermime JupyterLab's registry of renderers
   */
  constructor(lab, services, rendermime) {
    this.lab = lab;
    const { sessions: sessionManager, kernelspecs: specsManager, kernels: kernelManager } = services;
    // JupyterLab knows consoles and notebooks; what a click among the running kernels opens is said in plugin.js.
    const options = { sessionManager, specsManager, kernelManager, path: NAME, name: NAME, type: "console", kernelPreference: { autoStartDefault: true } };
    this.context = new lab.apputils.SessionContext(options);
    this.rendermime = rendermime.clone();
    this.manager = null;
    /** From a session of its own to everybody's: that the first one ends is no news. */
    this.moving = false;
  }

  /** Connects to the session that is there, or starts one; false where no kernel can be started by itself. */
  async connect() {
    const { context } = this;
    // Shut down elsewhere: the server has forgotten the session, but JupyterLab still holds on to it.
    if (context.session?.kernel?.status === "dead") context.session.dispose();
    const choice = !context.session?.kernel && (!this.began || (await this.#first()) ? await this.#join() : await context.startKernel());
    this.began = true;
    if (choice || !context.session?.kernel) return false;
    // Two pages that start one at the same time get one each, and each has its own until both are there.
    const first = await this.#first();
    if (first && first.id !== context.session.id) {
      this.moving = true;
      await context.shutdown();
      await this.#join();
      this.moving = false;
    }
    if (!context.session?.kernel) return false;
    this.manager ??= this.#manage();
    await restored(await this.manager);
    return true;
  }

  /** The session that is every page's: of those of the Lab's path the one that the server has had for longest. */
  async #first() {
    const { sessionManager } = this.context;
    await sessionManager.refreshRunning();
    return [...sessionManager.running()].find(({ path, kernel }) => path === NAME && kernel && kernel.execution_state !== "dead");
  }

  /** Connects to the first session of the path, else starts one; JupyterLab looks for it once and would start another. */
  #join() {
    this.context._initializing = false;
    return this.context.initialize();
  }

  /**
   * Has the kernel make its Lab, or name the one that it has.
   * @returns {Promise<{data: object} | {error: string}>} what a page draws it from, or why there is none
   */
  async ask() {
    const answer = { error: "the kernel shows no Lab" };
    const code = show(await (this.window ??= windowName()));
    const future = this.context.session.kernel.requestExecute({ code, store_history: false });
    future.onIOPub = ({ header, content }) => {
      if (content.data?.[WIDGET]) answer.data = content.data;
      if (header.msg_type === "error") answer.error = `${content.ename}: ${content.evalue}`;
    };
    await future.done;
    // Made for another page, before this one was connected: its manager has not heard of it.
    const manager = await this.manager;
    if (answer.data && manager.has_model?.(answer.data[WIDGET].model_id) === false) await manager.restoreWidgets({}, { loadKernel: true, loadNotebook: false });
    return answer;
  }

  /** The manager of ipywidgets takes a notebook's context; of that it uses the session, the saved state and addresses. */
  #manage() {
    const resolve = (url) => Promise.resolve(url);
    const notebook = {
      sessionContext: this.context,
      saveState: { connect() {} },
      model: { getMetadata: () => undefined },
      urlResolver: { resolveUrl: resolve, getDownloadUrl: resolve },
    };
    return new Promise((done) => {
      // It hands itself to the renderers that wait for it: the only way to learn that it is ready.
      const waiting = {
        set manager(found) {
          setTimeout(() => done(found));
        },
      };
      this.lab["jupyterlab-manager"].registerWidgetManager(notebook, this.rendermime, [waiting].values());
    });
  }
}

/**
 * Until the manager knows the widgets that the kernel has: each new one that refers to them waits two seconds for every
 * one that it does not know, and is never drawn.
 */
async function restored(manager) {
  if (manager.restoredStatus !== false) return;
  await new Promise((done) => {
    manager.restored.connect(done);
    setTimeout(done, RESTORED_WITHIN_MS);
  });
}

/** A widget's view, drawn with the renderers of the kernel that it lives in. */
export async function rendered({ rendermime: { MimeModel } }, renderers, data) {
  const renderer = renderers.createRenderer(WIDGET);
  await renderer.renderModel(new MimeModel({ data, trusted: true }));
  return renderer;
}
