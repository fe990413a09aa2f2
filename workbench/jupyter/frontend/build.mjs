// Bundles src/ into ../static/, which is committed, so that installing needs no Node.
// The first line of the bundle carries a hash of everything it was made from; tests/jupyter/test_bundle.py compares it.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const target = join(here, "..", "static");

/** Paths of all sources, relative, with "/", sorted by code point. */
function sources() {
  const inside = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(here.length).replaceAll("\\", "/"));
  return [...inside, "build.mjs", "package.json", "package-lock.json"].sort();
}

function fingerprint() {
  const hash = createHash("sha256");
  for (const path of sources()) hash.update(path).update("\0").update(readFileSync(join(here, path))).update("\0");
  return hash.digest("hex");
}

const licence = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim();
const uplot = JSON.parse(readFileSync(join(here, "node_modules/uplot/package.json"), "utf8"));
const notice = `uPlot ${uplot.version} (https://github.com/leeoniya/uPlot), bundled in monitor.js and monitor.css:\n\n${licence}\n`;

mkdirSync(target, { recursive: true });
const stamp = `/* sources sha256:${fingerprint()}`;
// ASCII: one sign beyond it, and a browser keeps the whole text at two bytes per character, for every widget.
const options = { outdir: target, bundle: true, minify: true, format: "esm", target: "es2022", charset: "ascii", legalComments: "none", write: false };

/** Bundles one widget; `src/loader.js` loads it. */
async function bundle(name, heads) {
  const contents = `import widget from "./src/${name}"; import { connected } from "./src/connected.js"; export default connected(widget);`;
  const outfile = join(target, basename(name));
  const { outputFiles } = await build({ ...options, outdir: undefined, outfile, stdin: { contents, resolveDir: here } });
  for (const { path, text } of outputFiles) {
    const head = heads[path.endsWith(".css") ? "css" : "js"];
    writeFileSync(path, `${head ? `${head}\n` : ""}${text}`);
  }
}

for (const name of ["page.js", "board/board.js", "lab/frame.js", "lab/race_form.js", "lab/try.js", "runs/runs_table.js", "watch/experiment.js", ...["curve_editor", "difference_table", "forecast_panel", "recipe_editor", "source_picker"].map((each) => `compose/${each}.js`)]) {
  await bundle(name, { js: `${stamp} */` });
}
await bundle("watch/monitor.js", { js: `${stamp}\n${notice}*/`, css: `/* ${notice}*/` });
writeFileSync(join(target, "THIRD_PARTY.txt"), notice);

await build({ ...options, outdir: undefined, outfile: join(target, "loader.js"), entryPoints: [join(here, "src/loader.js")], banner: { js: `${stamp} */` }, write: true });

// JupyterLab's extension: pyproject.toml installs this folder, and beside its script the bundle of the live view.
const folder = join(target, "labextension");
await build({ ...options, outdir: undefined, outfile: join(folder, "static/remoteEntry.js"), format: "iife", entryPoints: [join(here, "src/labextension/entry.js")], banner: { js: `${stamp} */` }, write: true });
const version = JSON.parse(readFileSync(join(here, "package.json"), "utf8")).version;
const description = "Workbench: compose, launch and watch pre-training runs";
// The query names the sources: a browser may keep each for ever, and asks anew after an update.
const load = `static/remoteEntry.js?v=${fingerprint().slice(0, 16)}`;
const manifest = { name: "workbench", version, description, license: "Apache-2.0", jupyterlab: { extension: true, outputDir: ".", _build: { load, extension: "./extension" } } };
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
