// Over the forms of a Lab whose kernel has ended: one notice with the way out. Runs and their curves go on; what needs a
// kernel is inert.

import { el } from "../dom.js";

const NEEDING = ".lab-compose > *, .lab-below > *";

/** What a Lab says whose kernel is there no more until somebody starts another. */
export const ENDED = {
  title: "The kernel has stopped",
  text: "Your runs go on, and what you composed is kept: it is here again with the next kernel.",
  button: "Start it again",
};

/**
 * Shows the notice in a Lab.
 * @param {Element} root the Lab
 * @param {object} words
 * @param {string} words.title, words.text
 * @param {string} words.button the way out; empty where there is nothing to do but to wait
 * @param {() => string} press takes the way out; returns what has to be done by hand, empty where it is on its way
 * @returns {() => void} what takes the notice away again
 */
export function showEnded(root, { title, text, button }, press) {
  const how = el("p", { hidden: true });
  const start = () => {
    const byHand = press();
    again.textContent = byHand ? button : "Starting…";
    again.disabled = !byHand;
    how.textContent = byHand;
    how.hidden = !byHand;
  };
  const again = el("button", { type: "button", class: "lab-again", text: button, hidden: !button, on: { click: start } });
  const notice = el("div", { class: "lab-ended", role: "alert" }, el("h3", { text: title }), el("p", { text }), again, how);
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
