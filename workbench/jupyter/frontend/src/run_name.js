// A run's name where it may have to be cut: of runs of one name, what tells them apart stands at the end, after the first "·".

import { el } from "./dom.js";

/** The name itself, and what follows it: runs of one name differ there. */
export function nameParts(name) {
  const [own, ...rest] = name.split(" · ");
  return [own, rest.map((part) => ` · ${part}`).join("")];
}

/** A name that is cut before what tells it apart. */
export function nameNode(name, title) {
  return el("span", { class: "wb-parted", title }, ...nameParts(name).map((text) => el("span", { text })));
}
