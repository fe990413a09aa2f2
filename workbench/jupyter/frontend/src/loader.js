// What the front end loads anew for every widget. A page never lets go of a module, so this one is short: the widget's
// own code comes with its model, as text, and is loaded once per page.

const widgets = (globalThis[Symbol.for("workbench widgets")] ??= new Map());

/** What a module's text exports: a widget's definition, or a function that makes one per widget. */
function load(text) {
  if (!widgets.has(text)) {
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const loading = import(url).finally(() => URL.revokeObjectURL(url));
    widgets.set(text, loading.then((module) => module.default));
    loading.catch(() => widgets.delete(text));
  }
  return widgets.get(text);
}

export default () => {
  let widget;
  const of = (model) =>
    (widget ??= load(model.get("_code")).then((made) => (typeof made === "function" ? made() : made)));
  return {
    async initialize(context) {
      const { model } = context;
      const leave = await (await of(model)).initialize?.(context);
      return () => {
        leave?.();
        // JupyterLab keeps the models of closed channels.
        model.set("_code", "");
      };
    },
    async render(context) {
      return (await of(context.model)).render?.(context);
    },
  };
};
