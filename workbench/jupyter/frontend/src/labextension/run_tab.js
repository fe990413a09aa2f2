// One run in a tab of its own: the live view of notebooks (watch/monitor.js), fed by the server and by no kernel.

/** What the view asks of a widget's model, where there is no kernel to keep one. */
export class ServedModel {
  constructor(name) {
    this.values = { served: [name], snapshot: null, advice: "", target_loss: null };
    this.heard = new Map();
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    this.values[name] = value;
    for (const hear of this.heard.get(`change:${name}`) ?? []) hear();
  }

  on(event, hear) {
    this.heard.set(event, [...(this.heard.get(event) ?? []), hear]);
  }

  off(event, hear) {
    this.heard.set(event, (this.heard.get(event) ?? []).filter((each) => each !== hear));
  }

  /** Nobody hears it: the view then asks the server. */
  send() {}

  save_changes() {}
}

/** Loads the view once; `address` is that of the extension's script, which lies beside it. */
async function monitor(address) {
  const beside = (name) => new URL(name, address).href + new URL(address).search;
  if (!document.querySelector("link[data-workbench=monitor]")) {
    const style = document.createElement("link");
    Object.assign(style, { rel: "stylesheet", href: beside("monitor.css") });
    style.dataset.workbench = "monitor";
    document.head.append(style);
  }
  const { default: make } = await import(beside("monitor.js"));
  return make();
}

/**
 * Draws a run into `host`.
 * @param {string} name of the run at the server: "<place>/<run id>"
 * @returns {Promise<() => void>} ends it
 */
export async function watchRun(name, host, address) {
  const view = await monitor(address);
  const model = new ServedModel(name);
  const endSession = await view.initialize({ model });
  const endView = await view.render({ model, el: host });
  return () => {
    endView?.();
    endSession?.();
  };
}
