import assert from "node:assert/strict";
import { test } from "node:test";

import {
  boundaryLabels,
  columnEnds,
  columnWords,
  copiesAt,
  inkRows,
  inSight,
  savesWork,
  sentence,
  stagesOf,
  startsStage,
  workOf,
  workWords,
} from "../../workbench/jupyter/frontend/src/watch/activity.js";
import { Layers } from "../../workbench/jupyter/frontend/src/watch/layers.js";
import { LAYER_STATES } from "../../workbench/jupyter/frontend/src/palette.js";

const stage = (step, stage, stages, copies = [], text = "...") => ({ kind: "stage", step, text, data: { stage, stages, copies } });

test("stages are read from what the run announced", () => {
  const [one, two, three] = stagesOf([
    stage(0, 1, 3),
    { kind: "knob", step: 3, text: "...", data: { stage: 9, stages: 9 } },
    stage(40, 2, 3, [[3, 1], [4, 2], [5, 1], [6, 2]]),
    stage(80, 3, 3, [[7, 4]]),
  ]);
  assert.deepEqual([one.label, one.number, one.copies.size], ["stage 1 of 3", "1", 0]);
  assert.deepEqual([...two.copies], [[3, 1], [4, 2], [5, 1], [6, 2]]);
  assert.deepEqual([...three.copies], [[7, 4]]);
  assert.deepEqual([...copiesAt([one, two, three], 80)], [...two.copies], "a stage begins with the step after it");
  assert.equal(copiesAt([one, two, three], 81).get(7), 4);
});

test("a stage of its own is named by its words", () => {
  const [thaw] = stagesOf([stage(7, 1, 1, [], "1-3 frozen; 9 of 12 layers run on average")]);
  assert.deepEqual([thaw.label, thaw.number], ["1-3 frozen; 9 of 12 laye", ""]);
  assert.equal(stagesOf([{ kind: "stage", step: 1 }])[0].label, "");
});

test("every state has a sentence, a copy names its source", () => {
  assert.equal(sentence(5, 7, new Map([[7, 4]])), "started as a copy of layer 4");
  assert.equal(sentence(5, 8, new Map([[7, 4]])), "started as a copy of a lower layer");
  assert.equal(sentence(255, 1, new Map()), "does not exist yet");
  assert.equal(new Set(LAYER_STATES.map((_, code) => sentence(code, 1, new Map()))).size, LAYER_STATES.length);
});

test("skipping starts no stage, growing and freezing do", () => {
  assert.equal(startsStage([0, 1, 3], [1, 0, 3]), false);
  assert.equal(startsStage([0, 1, 3], [2, 1, 3]), true);
  assert.equal(startsStage([0, 1, 3], [0, 1, 4]), true);
  assert.equal(startsStage([0, 255], [0, 3]), false);
});

test("a stage parts two columns where it began", () => {
  assert.deepEqual([...columnEnds([11, 21, 31], [{ step: 0 }, { step: 25 }])], [11, 25, 31]);
  assert.deepEqual([...columnEnds([11, 21, 31], [{ step: 21 }, { step: 99 }])], [11, 21, 31]);
});

test("work counts micro-batches and leaves frozen layers their forward pass", () => {
  const layers = new Layers(3, ["state", "ran"]);
  const add = (step, state, ran) =>
    layers.append({ steps: [step], values: new Map([["state", Uint8Array.from(state)], ["ran", Float32Array.from(ran)]]) });
  assert.equal(workOf(layers), null);
  add(10, [0, 1, 3], [1, 0.25, NaN]);
  add(20, [2, 0, 3], [1, 0.5, NaN]);
  add(40, [2, 1, 255], [1, 0.75, NaN]);
  const done = workOf(layers);
  const both = (10 + 20 * 0.75) / 40;
  assert.deepEqual([...done.counts.forward], [1, 2, 1.75]);
  assert.deepEqual([...done.counts.trained], [1, 1, 0.75]);
  assert.deepEqual([...done.perLayer.forward], [1, both, 0]);
  assert.deepEqual([...done.perLayer.trained], [0.25, both, 0]);
  assert.ok(Math.abs(done.share - (1 + 2 * 0.25 + 3 * both) / 9) < 1e-12);
  assert.match(workWords(done), /^On average 1\.6 of 3 layers ran forward and 0\.9 backward: 38% of the work/);
});

test("the map begins with a run whose layers do something", () => {
  const runOf = (states) => {
    const layers = new Layers(2, ["state"]);
    for (const [i, state] of states.entries()) layers.append({ steps: [i + 1], values: new Map([["state", Uint8Array.from(state)]]) });
    return layers;
  };
  const saves = (...states) => savesWork(workOf(runOf(states)));
  assert.deepEqual([saves(), saves([0, 0], [0, 0]), saves([0, 0], [0, 1]), saves([2, 0]), saves([0, 3])], [false, false, true, true, true]);
});

test("boundaries are named where there is room", () => {
  const widthOf = (text) => 6 * text.length;
  const stages = (...places) => places.map((place, i) => ({ label: `stage ${i + 1} of 4`, number: String(i + 1), place }));
  const texts = (...places) => boundaryLabels(stages(...places), widthOf).map(({ text }) => text);
  assert.deepEqual(texts(0, 100, 200, 300), ["stage 1 of 4", "stage 2 of 4", "stage 3 of 4", "stage 4 of 4"]);
  assert.deepEqual(texts(0, 100, 120, 124), ["stage 1 of 4", "2", "3"]);
});

test("zoomed in, the stage in force is named at the left edge", () => {
  const stages = [{ x: 0 }, { x: 10 }, { x: 20 }, { x: 30 }];
  const places = inSight(stages, (x) => 10 * x, 150, 280).map(({ x, place }) => [x, place]);
  assert.deepEqual(places, [[10, 150], [20, 200]]);
  assert.deepEqual(inSight(stages, (x) => x, 0, 25).map(({ x }) => x), [0, 10, 20]);
});

test("shapes fill a row from the bottom, at any height", () => {
  const byName = (height) => Object.fromEntries(inkRows(height).map((rows, code) => [LAYER_STATES[code].name, rows]));
  const nine = byName(9);
  assert.deepEqual(nine.frozen, [5, 6, 7, 8]);
  assert.deepEqual(nine.dropped, [4, 5]);
  assert.deepEqual(nine.running, [1, 2, 3, 4, 5, 6, 7, 8]);
  for (const height of [5, 18, 52]) {
    const { running, frozen, dropped } = byName(height);
    assert.ok(running.length > frozen.length && frozen.length > dropped.length && dropped.length > 0, String(height));
    assert.equal(frozen.at(-1), height - 1);
  }
});

test("thinning hides no short stage", () => {
  const layers = new Layers(1, ["state"]);
  for (let i = 0; i < 20000; i++) layers.append({ steps: [i], values: new Map([["state", Uint8Array.of(i < 777 ? 3 : i === 777 ? 4 : 0)]]) });
  const states = layers.values.get("state").map(([code]) => code);
  assert.ok(layers.length <= 4096);
  assert.equal(states.filter((code) => code === 4).length, 1);
  assert.equal(layers.steps.data[states.indexOf(4)], 777);
});

test("that a column stands for one step of several is said", () => {
  assert.equal(columnWords([1, 11, 21, 31, 40]), ". Each column is one of every 10 steps");
  assert.equal(columnWords([1, 2, 3, 4]), "");
  assert.equal(columnWords([1, 11]), "");
});
