import assert from "node:assert/strict";
import { test } from "node:test";

import { Knobs, asksForKnobs, filterOf, numberOf, terms } from "../../workbench/ui/frontend/src/runs/filter.js";

const row = (id, more = {}) => ({
  id, name: "bert tiny", status: "running", tags: [], notes: "", message: "", owner: "ada", device: "H200", host: "n1",
  step: 100, progress: 0.5, loss: 2.5, heldout_loss: null, tokens_per_second: 12000, parent: null, ...more,
});
const knobs = new Knobs({
  runs: ["a", "b"],
  same: { "architecture.kind": "pre_ln", seed: 0 },
  differ: { "optimizer.kind": ["adamw", "lans"], "optimizer.lr": [0.001, 0.003], "objective.mask_rate.kind": ["linear", null], "data.batch_size": [16, 32] },
});
const finds = (text, rows = [row("a", { tags: ["base"] }), row("b", { name: "gpt", status: "failed", tags: ["database"], loss: null })]) =>
  rows.filter(filterOf(text, knobs).test).map(({ id }) => id).join("");

test("plain words must all be somewhere", () => {
  assert.equal(finds(""), "ab");
  assert.equal(finds("BERT"), "a");
  assert.equal(finds("bert gpt"), "");
  assert.equal(finds('"bert tiny"'), "a");
  assert.equal(finds("-bert"), "b");
  assert.equal(finds("h200"), "ab");
});

test("a column by its name; half a tag is not the tag", () => {
  assert.equal(finds("state:run"), "a");
  assert.equal(finds("state=failed"), "b");
  assert.equal(finds("tag:base"), "a");
  assert.equal(finds("tag:data"), "b");
  assert.equal(finds("-tag:base"), "b");
  assert.equal(finds("name:tiny owner:ad"), "a");
  assert.equal(finds("state!=failed"), "a");
});

test("a race or a sweep by its name", () => {
  const rows = [row("a", { tags: ["race:baseline-vs-mine"] }), row("b", { tags: ["sweep:mine"] }), row("c", { tags: ["mine"] })];
  assert.equal(finds("race:mine", rows), "a");
  assert.equal(finds("sweep:mine", rows), "b");
  assert.equal(finds("-race:base", rows), "bc");
});

test("numbers of the table, also as people write them; what is not there is not less", () => {
  assert.equal(finds("loss<3"), "a");
  assert.equal(finds("loss>=2.5"), "a");
  assert.equal(finds("speed>11k progress=50%"), "ab");
  assert.equal(finds("heldout<100"), "");
  assert.equal(numberOf("1e-3"), 0.001);
  assert.equal(numberOf("2M"), 2e6);
  assert.ok(Number.isNaN(numberOf("fast")));
  assert.ok(Number.isNaN(numberOf("%")));
});

test("knobs by the end of their path, choices by their axis", () => {
  assert.equal(finds("lr>1e-3"), "b");
  assert.equal(finds("optimizer.lr<=0.001"), "a");
  assert.equal(finds("optimizer:lans"), "b");
  assert.equal(finds("mask_rate:lin"), "a");
  assert.equal(finds("architecture:pre_ln seed=0"), "ab");
  assert.equal(finds("batch_size:32"), "b");
  assert.equal(finds("optimizer!=lans"), "a");
});

test("what cannot be understood is said and passed over", () => {
  assert.match(filterOf("loss>fast", knobs).problem, /'fast' is not a number/);
  assert.match(filterOf("batch_sise>3", knobs).problem, /did you mean batch_size\?/);
  assert.match(filterOf("name>3", knobs).problem, /name is text/);
  // Each of several is named, each once.
  assert.match(filterOf("loss>fast name>3 loss>fast", knobs).problem, /^loss>fast: [^;]+; name is text[^;]*$/);
  assert.equal(finds("batch_sise>3 bert"), "a");
  // Until the knobs are there nothing is said: they are on their way.
  assert.deepEqual(filterOf("lr>1", null).problem, "");
});

test("half-typed terms ask for nothing", () => {
  assert.deepEqual(terms("lr>"), []);
  assert.deepEqual(terms("state:"), []);
  assert.deepEqual(terms("  "), []);
  assert.deepEqual(terms('-tag:"a b'), [{ not: true, key: "tag", sign: ":", value: "a b" }]);
  assert.equal(terms("a<b>c:d=e ((( \"\" --").length > 0, true);
});

test("only questions about recipes need the knobs", () => {
  assert.equal(asksForKnobs("bert state:running loss<3"), false);
  assert.equal(asksForKnobs("lr>1"), true);
});

test("a run that is newer than the knobs has none yet", () => {
  assert.equal(knobs.value("seed", "c"), null);
  assert.equal(finds("lr>0", [row("c")]), "");
});
