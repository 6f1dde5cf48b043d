// The hybrid of run lengths and bit packing, in which Parquet stores levels and dictionary indexes
// (https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE). hyparquet-writer appends
// each byte by a method call, and measures runs repeatedly; this is the same content in one pass.

/** Values of a bit-packed group, and the shortest run that is stored as one. */
const groupValues = 8;
const varintBytesMax = 5;
const valueBytesMax = 2;

/** Bits of a value up to this one. */
export function bitsOf(most: number): number {
  return 32 - Math.clz32(most);
}

/** Bytes that so many values of these bits need at most. */
export function hybridBytesMax(count: number, bits: number): number {
  const groups = Math.ceil(count / groupValues);
  return groups * (bits + varintBytesMax + valueBytesMax) + varintBytesMax;
}

/** Writes values of at most 16 bits at `at`, and returns the end. The caller has made room. */
export function writeHybrid(
  { values, from, to, bits }: HybridValues,
  into: Uint8Array,
  at: number,
): number {
  let end = at;
  /** Start of groups that are not written yet. */
  let open = from;
  let next = from;
  while (next < to) {
    const value = values[next] ?? 0;
    let stop = next + 1;
    while (stop < to && values[stop] === value) stop += 1;
    if (stop - next < groupValues) {
      next += groupValues;
      continue;
    }
    if (open < next) end = writePacked({ values, from: open, to: next, bits }, into, end);
    end = writeVarint((stop - next) * 2, into, end);
    for (let shift = 0; shift < bits; shift += 8) into[end++] = value >>> shift;
    next = stop;
    open = stop;
  }
  return open < to ? writePacked({ values, from: open, to, bits }, into, end) : end;
}

/** Values `from` up to `to`. */
export interface HybridValues {
  readonly values: Uint8Array | Uint16Array;
  readonly from: number;
  readonly to: number;
  readonly bits: number;
}

/** Only the last group may be incomplete: zeros follow. */
function writePacked({ values, from, to, bits }: HybridValues, into: Uint8Array, at: number) {
  const groups = Math.ceil((to - from) / groupValues);
  let end = writeVarint(groups * 2 + 1, into, at);
  const stop = end + groups * bits;
  let word = 0;
  let used = 0;
  for (let i = from; i < to; i += 1) {
    word |= (values[i] ?? 0) << used;
    used += bits;
    while (used >= 8) {
      into[end++] = word;
      word >>>= 8;
      used -= 8;
    }
  }
  if (used > 0) into[end++] = word;
  into.fill(0, end, stop);
  return stop;
}

function writeVarint(value: number, into: Uint8Array, at: number): number {
  let [left, end] = [value, at];
  for (; left > 0x7f; left >>>= 7) into[end++] = left | 0x80;
  into[end++] = left;
  return end;
}
