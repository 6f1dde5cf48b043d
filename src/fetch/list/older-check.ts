// The check that version 0.1.0 kept over the content of a record with an id, to know such a record
// again: 32 bits, the sum of the hashes of all its strings, numbers and words, each hashed together
// with its key. Asked for only where an identity of that version is met, so that an upgrade
// delivers nothing twice.

const quote = 0x22;
/** FNV-1a, 32 bit. */
const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/** Of well-formed JSON; bytes read as Latin-1. */
const tokens = /"(?:[^"\\]|\\.)*"|[-\d][-+.\deE]*|true|false|null|[{}[\],]/g;

/** The check of a record as it was sent, which is well-formed JSON. */
export function olderCheck(record: Uint8Array): number {
  const text = Buffer.from(record.buffer, record.byteOffset, record.byteLength).toString('latin1');
  const inObject: boolean[] = [];
  let isKey = false;
  let key = 0;
  let sum = 0;
  for (const [token] of text.matchAll(tokens)) {
    if (token === '{' || token === '[') {
      isKey = token === '{';
      inObject.push(isKey);
    } else if (token === '}' || token === ']') {
      inObject.pop();
      isKey = false;
    } else if (token === ',') {
      isKey = inObject.at(-1) === true;
      if (!isKey) key = 0;
    } else {
      const hash = hashOf(token, isKey ? 0 : key);
      sum = (sum + (hash ^ (hash >>> 15))) | 0;
      if (isKey) key = hash;
      isKey = false;
    }
  }
  return sum >>> 0 || 1;
}

function hashOf(token: string, key: number): number {
  const isString = token.charCodeAt(0) === quote;
  let hash = key ^ fnvOffset;
  if (isString) hash = Math.imul(hash ^ quote, fnvPrime);
  const end = isString ? token.length - 1 : token.length;
  for (let at = isString ? 1 : 0; at < end; at += 1) {
    hash = Math.imul(hash ^ token.charCodeAt(at), fnvPrime);
  }
  return hash;
}
