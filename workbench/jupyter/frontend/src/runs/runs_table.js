// The table of runs: rows are data from the kernel (always text, never markup); what is asked goes back to it.

import { baseOf, Server } from "../server.js";
import { Session } from "./session.js";
import { View } from "./view.js";
import "./runs.css";
import "../run_name.css";

// A function: anywidget calls it once per widget, so that what the widget knows is shared by its views.
export default () => {
  let session = null;
  const of = (model) => {
    if (session) return session;
    const server = new Server(baseOf(document), { cookies: () => document.cookie });
    session = new Session((message) => model.send(message), { server, place: () => model.get("place") });
    model.on("msg:custom", (message, buffers) => session.hear(message, buffers));
    session.hello();
    return session;
  };
  return {
    initialize({ model }) {
      const made = of(model);
      return () => made.close();
    },
    render({ model, el }) {
      el.classList.add("lab-runs");
      const view = new View(el, model, of(model));
      // A run that was clicked elsewhere in the page (labextension/open_labs.js).
      const asked = (event) => view.open(event.detail.run) && event.preventDefault();
      el.addEventListener("workbench:watch", asked);
      return () => {
        el.removeEventListener("workbench:watch", asked);
        view.close();
      };
    },
  };
};
