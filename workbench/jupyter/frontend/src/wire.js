// Reads the messages of workbench/jupyter/feed/wire.py: a JSON header and one block of aligned little-endian columns.

const ALIGNMENT = 8;

/** Walks a block column by column. Columns are copied: a view would keep every message alive. */
class Columns {
  constructor(view) {
    // A DataView from the kernel may start anywhere in its buffer; typed arrays need alignment.
    this.buffer = view
      ? view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength)
      : new ArrayBuffer(0);
    this.offset = 0;
  }

  take(ArrayType, count) {
    const column = new ArrayType(this.buffer, this.offset, count);
    const bytes = count * ArrayType.BYTES_PER_ELEMENT;
    this.offset += bytes + ((ALIGNMENT - (bytes % ALIGNMENT)) % ALIGNMENT);
    return column;
  }

  clock(count) {
    return {
      step: this.take(Int32Array, count),
      seconds: this.take(Float32Array, count),
      tokens: this.take(Float64Array, count),
      flops: this.take(Float32Array, count),
    };
  }

  series(count) {
    return { steps: this.take(Int32Array, count), values: this.take(Float32Array, count) };
  }
}

/**
 * Unpacks a snapshot or delta.
 * @param {object} header the message's JSON
 * @param {DataView} block the message's buffer
 * @param {(i: number) => {names: string[], layers: number, layerNames: string[]}} shapeOf what a delta leaves out
 * @returns {object[]} one update per run of the header: {i, clock, series: Map, columns, status, events, ...}
 */
export function unpack(header, block, shapeOf) {
  const columns = new Columns(block);
  return header.runs.map((entry, place) => {
    const i = entry.i ?? place;
    const shape = entry.names
      ? { names: entry.names, layers: entry.layers, layerNames: entry.layer_names }
      : shapeOf(i);
    const update = { ...entry, i, shape, clock: null, series: new Map(), columns: null };
    if (entry.clock !== undefined) {
      update.clock = columns.clock(entry.clock);
      for (const name of entry.dense) {
        update.series.set(shape.names[name], {
          steps: update.clock.step,
          values: columns.take(Float32Array, entry.clock),
        });
      }
      for (const [name, count, recorded] of entry.sparse) {
        update.series.set(shape.names[name], { ...columns.series(count), downsampled: recorded > count });
      }
    }
    if (entry.columns) update.columns = takeLayers(columns, entry.columns, shape);
    return update;
  });
}

/**
 * Unpacks a stretch of runs in detail.
 * @returns {{i: number, from: number, to: number, clock: object, series: Map}[]}
 */
export function unpackDetail(header, block) {
  const columns = new Columns(block);
  return header.runs.map(({ i, from, to, clock, series }) => ({
    i,
    from,
    to,
    clock: { from, to, ...columns.clock(clock) },
    series: new Map(
      series.map(([name, count, recorded]) => [name, { from, to, exact: count >= recorded, ...columns.series(count) }]),
    ),
  }));
}

function takeLayers(columns, count, shape) {
  const steps = columns.take(Int32Array, count);
  const values = new Map();
  for (const name of shape.layerNames) {
    const ArrayType = name === "state" ? Uint8Array : Float32Array;
    values.set(name, columns.take(ArrayType, count * shape.layers));
  }
  return { steps, values };
}

/**
 * Opens a sealed snapshot (a widget trait).
 * @param {DataView} sealed u4 length of the header, the header, the block
 * @returns {{header: object, block: DataView} | null} null when there is none
 */
export function unseal(sealed) {
  if (!sealed || sealed.byteLength < 4) return null;
  const length = sealed.getUint32(0, true);
  const text = new Uint8Array(sealed.buffer, sealed.byteOffset + 4, length);
  const block = new DataView(sealed.buffer, sealed.byteOffset + 4 + length, sealed.byteLength - 4 - length);
  return { header: JSON.parse(new TextDecoder().decode(text)), block };
}
