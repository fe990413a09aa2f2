// A widget hears its kernel however late the page came to load it.
//
// anywidget 0.11 gives a model two seconds from its birth to load the widget's module and to run its `initialize`. A page
// that is busy for longer, as with a whole Lab on a busy machine, is not waited for: the widget is drawn and can ask, but
// every message of the kernel is thrown away from then on.

/** What ipywidgets calls a view whose kernel has ended. */
export const DISCONNECTED = "jupyter-widgets-disconnected";

/** The model itself. A widget is handed a part of it alone; only events name the whole. */
function whole(model) {
  let found;
  const hear = (changed) => (found = changed);
  // Any name will do that no widget has; what is undefined is neither sent nor saved.
  model.on("change:connected", hear);
  model.set("connected", true);
  model.off("change:connected", hear);
  model.set("connected", undefined);
  return found;
}

/** Where anywidget has given the model up: hear the kernel without it, and ask for what was told meanwhile. */
function connect(model) {
  const own = whole(model);
  if (!own?.comm?.on_msg) return;
  // It waits for what anywidget waits for; a message without a method changes nothing.
  own._handle_comm_msg({ content: { data: {} } }).catch(() => {
    const { _handle_comm_msg: hear } = Object.getPrototypeOf(Object.getPrototypeOf(own));
    own.comm.on_msg((message) => hear.call(own, message));
    own.comm.send({ method: "request_state" });
  });
}

/** The widget's definition, or the function that makes one per widget, with that. */
export function connected(widget) {
  if (typeof widget === "function") return () => connected(widget());
  return {
    ...widget,
    initialize(context) {
      connect(context.model);
      return widget.initialize?.(context);
    },
  };
}
