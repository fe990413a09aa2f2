// Bundles src/ into ../static/, which is committed, so that installing needs no Node.
// The first line of the bundle carries a hash of everything it was made from; tests/ui/test_bundle.py compares it.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
const options = { outdir: target, bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none" };
const entry = (name) => [join(here, "src", name)];
await build({ ...options, entryPoints: entry("runs_table.js"), banner: { js: `${stamp} */` } });
await build({ ...options, entryPoints: entry("monitor.js"), banner: { js: `${stamp}\n${notice}*/`, css: `/* ${notice}*/` } });
writeFileSync(join(target, "THIRD_PARTY.txt"), notice);
