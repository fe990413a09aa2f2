// What was recorded as comma-separated text. Pure.

/**
 * Numbers of runs as comma-separated text: one row per run and step.
 * @param {{name: string, clock: {step: ArrayLike<number>, seconds: ArrayLike<number>, tokens: ArrayLike<number>, flops:
 *   ArrayLike<number>}, series: Map<string, {steps: ArrayLike<number>, values: ArrayLike<number>}>}[]} runs
 * @param {string[]} names columns
 */
export function csvOf(runs, names) {
  const rows = [["run", "step", "seconds", "tokens", "flops", ...names].map(quoted).join(",")];
  for (const { name, at, series } of runs) {
    const byStep = new Map();
    names.forEach((column, c) => {
      const { steps = [], values = [] } = series.get(column) ?? {};
      for (let i = 0; i < steps.length; i++) {
        if (!byStep.has(steps[i])) byStep.set(steps[i], new Array(names.length).fill(""));
        byStep.get(steps[i])[c] = Number.isNaN(values[i]) ? "" : values[i];
      }
    });
    const steps = Float64Array.from(byStep.keys()).sort();
    const [seconds, tokens, flops] = ["seconds", "tokens", "flops"].map((kind) => at(steps, kind));
    const who = quoted(name);
    steps.forEach((step, i) => {
      rows.push([who, step, written(seconds[i], 7), written(tokens[i], 15), written(flops[i], 7), ...byStep.get(step).map((v) => written(v, 7))].join(","));
    });
  }
  return lines(rows);
}

/**
 * All numbers per layer of a run: one row per record and layer.
 * @param {string} name of the run
 * @param {Layers} layers
 * @param {string[]} states names of the codes in `state`
 */
export function csvOfLayers(name, layers, states) {
  const names = [...layers.values.keys()];
  const who = quoted(name);
  const rows = [["run", "step", "layer", ...names].join(",")];
  layers.steps.view().forEach((step, c) => {
    for (let layer = 0; layer < layers.layers; layer++) {
      const cells = names.map((quantity) => {
        const value = layers.values.get(quantity)[c]?.[layer];
        if (quantity === "state") return states[value] ?? "";
        return Number.isFinite(value) ? written(value, 7) : "";
      });
      rows.push([who, step, layer + 1, ...cells].join(","));
    }
  });
  return lines(rows);
}

/**
 * Events: one row each, in their order.
 * @param {{name: string, time: number | null, step: number, kind: string, text: string}[]} events `name`: of the run; `time`: seconds since 1970
 */
export function csvOfEvents(events) {
  const at = (time) => (Number.isFinite(time) ? new Date(1000 * time).toISOString() : "");
  return lines(["run,time,step,kind,text", ...events.map(({ name, time, step, kind, text }) => [quoted(name), at(time), step, quoted(kind), quoted(text)].join(","))]);
}

function lines(rows) {
  return `${rows.join("\r\n")}\r\n`;
}

/** Float32 has seven digits; more would be noise that spreadsheets show. */
function written(value, digits) {
  return value === "" || Number.isNaN(value) ? "" : String(Number(value.toPrecision(digits)));
}

function quoted(text) {
  // A leading = + - @ would be a formula in a spreadsheet.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
