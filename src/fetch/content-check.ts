// A 32-bit check over a record's content that does not depend on the order of its keys or on white space, so that a server
// that prints a record differently does not look like one that has changed it. It is a sum over the hashes of the
// record's strings, numbers and words. It shows a change with near certainty and proves nothing: upstream's own
// integrity is not ours to prove.

const quote = 0x22;
const backslash = 0x5c;
/** FNV-1a, 32 bit. */
const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/** The check over the JSON text in `bytes[start, end)`; never 0. */
export function contentCheck(bytes: Uint8Array, start: number, end: number): number {
  let sum = 0;
  let at = start;
  while (at < end) {
    const first = bytes[at] ?? 0;
    if (isSeparator(first)) {
      at += 1;
      continue;
    }
    let token = fnvOffset;
    if (first === quote) {
      at += 1;
      while (at < end && bytes[at] !== quote) {
        if (bytes[at] === backslash) {
          token = Math.imul(token ^ backslash, fnvPrime);
          at += 1;
        }
        token = Math.imul(token ^ (bytes[at] ?? 0), fnvPrime);
        at += 1;
      }
      at += 1;
    } else {
      while (at < end && !isSeparator(bytes[at] ?? 0)) {
        token = Math.imul(token ^ (bytes[at] ?? 0), fnvPrime);
        at += 1;
      }
    }
    sum = (sum + (token ^ (token >>> 15))) | 0;
  }
  return sum >>> 0 || 1;
}

/** White space and the six characters that part JSON's tokens. */
function isSeparator(byte: number): boolean {
  return (
    byte <= 0x20 ||
    byte === 0x2c ||
    byte === 0x3a ||
    byte === 0x5b ||
    byte === 0x5d ||
    byte === 0x7b ||
    byte === 0x7d
  );
}
