// A 32-bit check over a record's content that does not depend on the order of its keys or on white space, so that a server
// that prints a record differently does not look like one that has changed it. It is a sum over the hashes of the
// record's strings, numbers and words, each value hashed together with its key. It shows a change with near certainty
// and proves nothing: upstream's own integrity is not ours to prove. It is taken in the pass that finds where a record
// ends, since a pass of its own would cost as much again.

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openBrace = 0x7b;
/** FNV-1a, 32 bit. */
const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

const inWord = 0;
const between = 1;
const opens = 2;
const closes = 3;

/** What a byte outside a string is to its value. */
const kinds: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  if ('{['.includes(character)) return opens;
  if ('}]'.includes(character)) return closes;
  return byte <= 0x20 || ',:"'.includes(character) ? between : inWord;
});

/** Passes over the JSON value that starts at `from`, notes its check (never 0), and returns where it ends. */
export function checkValue(bytes: Uint8Array, from: number, note: (check: number) => void): number {
  let sum = 0;
  let depth = 0;
  /** The hash of the key whose value comes next, and of the string or word before. */
  let key = 0;
  let token = 0;
  let at = from;
  do {
    const first = bytes[at];
    if (first === undefined) break;
    at += 1;
    const kind = kinds[first];
    if (first === quote) {
      token = Math.imul(key ^ fnvOffset ^ quote, fnvPrime);
      for (let byte = bytes[at]; byte !== quote && byte !== undefined; byte = bytes[at]) {
        token = Math.imul(token ^ byte, fnvPrime);
        at += 1;
        if (byte !== backslash) continue;
        token = Math.imul(token ^ (bytes[at] ?? 0), fnvPrime);
        at += 1;
      }
      at += 1;
      sum = (sum + (token ^ (token >>> 15))) | 0;
    } else if (kind === inWord) {
      token = Math.imul(key ^ fnvOffset ^ first, fnvPrime);
      for (let byte = bytes[at]; byte !== undefined && kinds[byte] === inWord; byte = bytes[at]) {
        token = Math.imul(token ^ byte, fnvPrime);
        at += 1;
      }
      sum = (sum + (token ^ (token >>> 15))) | 0;
    } else if (first === colon) key = token;
    else if (first === comma || first === openBrace) key = 0;
    if (kind === opens) depth += 1;
    else if (kind === closes) depth -= 1;
  } while (depth > 0);
  note(sum >>> 0 || 1);
  return at;
}
