// Ticks and ranges of axes. Pure.

/** At most about `count` round numbers within [low, high]. */
export function niceTicks(low, high, count) {
  if (!(high > low)) return Number.isFinite(low) ? [low] : [];
  const raw = (high - low) / Math.max(1, count);
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * ([1, 2, 5, 10].find((m) => m * size >= raw * 0.999) ?? 10);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Seconds axis: steps that clocks have (1, 2, 5, 10, 15, 30 s, 1, 2, 5, ... min, hours, days). */
export function timeTicks(low, high, count) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const raw = (high - low) / Math.max(1, count);
  if (raw < 1) return niceTicks(low, high, count);
  const step = steps.find((s) => s >= raw) ?? Math.ceil(raw / 86400) * 86400;
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high; t += step) ticks.push(t);
  return ticks;
}

/** Range that shows low..high with some air; on a log scale the air is a factor. */
export function padded(low, high, log) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return log ? [1, 10] : [0, 1];
  if (log && low > 0) {
    const air = (high / low) ** 0.06 || 1.05;
    return [low / Math.max(air, 1.02), high * Math.max(air, 1.02)];
  }
  const air = (high - low) * 0.06 || Math.abs(high) * 0.05 || 0.5;
  return [low - air, high + air];
}
