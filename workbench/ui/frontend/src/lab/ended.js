// Over the forms of a Lab whose kernel has ended: one notice with the way out. Runs go on; what needs a kernel is inert.

import { el } from "../dom.js";

const NEEDING = ".lab-compose > *, .lab-below > *";

/** Shows the notice in a Lab; returns what takes it away again. */
export function showEnded(root, place) {
  const how = el("p", { text: "Restart the kernel (menu Kernel) and run this cell again.", hidden: true });
  const again = el("button", { type: "button", class: "lab-again", text: "Start it again", on: { click: () => start() } });
  const start = () => {
    // Whoever owns the place (JupyterLab's extension of ours) takes the event; a bare notebook has to be told how.
    const taken = !root.dispatchEvent(new CustomEvent("workbench:start-again", { bubbles: true, cancelable: true, detail: { place } }));
    again.textContent = taken ? "Starting…" : again.textContent;
    again.disabled = taken;
    how.hidden = taken;
  };
  const text = "Your runs go on, and what you composed is kept: it is here again with the next kernel.";
  const notice = el("div", { class: "lab-ended", role: "alert" }, el("h3", { text: "The kernel has stopped" }), el("p", { text }), again, how);
  const inert = [...root.querySelectorAll(NEEDING)].filter((one) => !one.inert);
  for (const one of inert) one.inert = true;
  root.classList.add("lab-dead");
  root.querySelector(".lab-compose").append(notice);
  return () => {
    for (const one of inert) one.inert = false;
    root.classList.remove("lab-dead");
    notice.remove();
  };
}
