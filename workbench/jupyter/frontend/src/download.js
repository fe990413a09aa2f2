// Files made in the page: nothing is sent anywhere.

import { el } from "./dom.js";

/** Offers a file to the user. */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  // Some browsers begin to read only after this turn.
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Whose numbers are in a file, for its name: of several runs, how many there are comes before what may be cut off. */
export function whose(names) {
  return names.length > 1 ? [`${names.length} runs`, ...names] : names;
}

/** A name that every system takes. */
export function fileName(parts, ending) {
  const words = parts.join(" ").toLowerCase().replace(/[^a-z0-9._-]+/g, "-").replace(/^[-.]+|-+$/g, "");
  return `${words.slice(0, 80) || "plot"}.${ending}`;
}

/** An SVG as pixels, twice as fine as on the screen, so that it prints. */
export async function toPng(svg, width, height, scale = 2) {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await new Promise((done, failed) => Object.assign(image, { onload: done, onerror: failed, src: url }));
    const canvas = el("canvas", { width: width * scale, height: height * scale });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}
