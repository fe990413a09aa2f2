// Packs messages as workbench/jupyter/feed/wire.py does, for tests.

/** Columns one after the other, each padded to 8 bytes. */
export function block(...columns) {
  const bytes = [];
  for (const column of columns) {
    bytes.push(...new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
    while (bytes.length % 8) bytes.push(0);
  }
  // An odd offset into a larger buffer, as a message from the kernel may have.
  const whole = new Uint8Array(bytes.length + 3);
  whole.set(bytes, 3);
  return new DataView(whole.buffer, 3, bytes.length);
}

/** Half a second, 4096 tokens and a billion FLOPs per step. */
export function clock(steps) {
  return [steps, Float32Array.from(steps, (s) => s / 2), Float64Array.from(steps, (s) => s * 4096), Float32Array.from(steps, (s) => s * 1e9)];
}

/** Header and block of a snapshot of one run with the given loss values at steps 1, 2, ..., up to the cursor of a number. */
export function snapshot(number, losses, more = {}) {
  const steps = Int32Array.from(losses, (_, i) => i + 1);
  const entry = {
    id: "run-a",
    name: "a run",
    budget: { amount: 100, unit: "steps" },
    names: ["loss", "heldout_loss"],
    others: ["grad_norm"],
    layers: 3,
    layer_names: ["state", "grad_norm"],
    clock: losses.length,
    dense: [],
    sparse: [[0, losses.length, losses.length]],
    columns: 0,
    status: { status: "running", step: losses.length, progress: losses.length / 100, silent_seconds: 0 },
    events: [],
    ...more,
  };
  const columns = [...clock(steps), steps, Float32Array.from(losses)];
  return [{ type: "snapshot", cursor: `c${number}`, runs: [entry] }, block(...columns)];
}

/** Header and block of a delta with further losses, starting after `step`, from the cursor before to that of a number. */
export function delta(number, step, losses, more = {}) {
  const steps = Int32Array.from(losses, (_, i) => step + i + 1);
  const entry = { i: 0, clock: losses.length, dense: [0], sparse: [], ...more };
  const columns = clock(steps);
  return [{ type: "delta", since: `c${number - 1}`, cursor: `c${number}`, runs: [entry] }, block(...columns, Float32Array.from(losses))];
}
