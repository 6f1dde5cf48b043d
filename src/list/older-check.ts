// Version 0.1.0's checksum over the content of a record with an id: 32 bits, the sum of the hashes of all its strings,
// numbers and words, each hashed with its key. Computed only for an identity of that version, so that an upgrade
// delivers nothing twice.

const quote = 0x22;
/** FNV-1a, 32 bit. */
const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/** Tokens of well-formed JSON; bytes read as Latin-1. */
const tokens = /"(?:[^"\\]|\\.)*"|[-\d][-+.\deE]*|true|false|null|[{}[\],]/g;

/** The checksum of a record's bytes, which must be well-formed JSON. */
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
