// Long texts in the flat fields of a document. Lucene accepts no term above 32,766 bytes. OpenSearch's `flat_object` has no
// `ignore_above`, so one long text or name would make the cluster refuse the whole event: an attacker could hide from every
// rule by a long comment. Both clusters also refuse an event with a number of more than 1,000 characters. Invariants: each
// term of a flat field stays below the limit, and each number in it is readable; each whole value stays in the document, in
// `sluice.long`, which is stored and not indexed; a document without a long term or number keeps its bytes.

import { isObject, type JsonObject } from '../../../src/contracts/index.ts';

/** In bytes: a term is the path, `=` and the value. Some room is left below Lucene's 32,766. */
const termBytesMax = 32_000;
/** In bytes: a longer path is moved with its member. */
const pathBytesMax = 8_000;
/** In UTF-16 units, each of at most three bytes: the searched start of a moved value. */
const startLength = 7_000;

/** In characters: the longest number that the JSON parser of the clusters reads (Jackson's StreamReadConstraints). */
const numberLengthMax = 1_000;

/** A moved value: a text or the digits of a number as they are, or a member with a long name as JSON. */
interface Moved {
  readonly path: string;
  readonly value?: string;
  readonly member?: string;
}

/** The document with short terms and numbers; the same one if it has no long term or number. */
export function withShortTerms(document: string | Uint8Array): string | Uint8Array {
  // A document contains each byte of its terms.
  const bytes = typeof document === 'string' ? Buffer.byteLength(document) : document.byteLength;
  if (bytes <= termBytesMax && !mayHaveLongNumber(document)) return document;
  const text = typeof document === 'string' ? document : Buffer.from(document).toString('utf8');
  const parsed: unknown = JSON.parse(text, exactNumber);
  if (!isObject(parsed)) return document;
  const moved: Moved[] = [];
  shortenFlatFields(parsed, moved);
  if (moved.length === 0) return document;
  const own = isObject(parsed.sluice) ? parsed.sluice : {};
  return JSON.stringify({ ...parsed, sluice: { ...own, long: moved } });
}

/** False only if no number is too long. A number that is too long has a character at a multiple of its limit. */
function mayHaveLongNumber(document: string | Uint8Array): boolean {
  const isNumberAt = (at: number) => {
    const code = typeof document === 'string' ? document.charCodeAt(at) : (document[at] ?? 0);
    return (code >= 0x30 && code <= 0x39) || numberMarks.has(code);
  };
  for (let at = numberLengthMax; at < document.length; at += numberLengthMax) {
    let [from, to] = [at, at];
    while (isNumberAt(from)) from -= 1;
    while (isNumberAt(to)) to += 1;
    if (to - from - 1 > numberLengthMax) return true;
  }
  return false;
}

/** The characters of a number that are not digits. */
const numberMarks = new Set([...'+-.eE'].map((mark) => mark.charCodeAt(0)));

/** A number that a double cannot hold keeps its digits. */
function exactNumber(_: string, value: unknown, { source }: { source?: string } = {}): unknown {
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value;
  return rawJson(source);
}

const { rawJSON: rawJson, isRawJSON: isRawJson } = JSON as unknown as {
  rawJSON(source: string): object;
  isRawJSON(value: unknown): value is { readonly rawJSON: string };
};

/** The flat fields of the index template (template.ts), in both formats. */
function shortenFlatFields(document: JsonObject, moved: Moved[]): void {
  const { sluice, unmapped, ...others } = document;
  if (isObject(sluice)) {
    shorten(sluice.ocsf, 'sluice.ocsf', moved);
    shorten(sluice.unmapped, 'sluice.unmapped', moved);
  }
  shorten(unmapped, 'unmapped', moved);
  for (const [name, value] of Object.entries(others)) shortenData(value, name, moved);
}

/** In OCSF, each object with the name `data` is a flat field. */
function shortenData(value: unknown, path: string, moved: Moved[]): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, below] of Object.entries(value)) {
    const belowPath = Array.isArray(value) ? path : `${path}.${name}`;
    if (name === 'data') shorten(below, belowPath, moved);
    else shortenData(below, belowPath, moved);
  }
}

function shorten(value: unknown, path: string, moved: Moved[]): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, below] of Object.entries(value)) {
    const belowPath = Array.isArray(value) ? path : `${path}.${name}`;
    const move = (whole: string, length: number) => {
      moved.push({ path: belowPath, value: whole });
      // Parsed JSON has its own member of any name, `__proto__` included.
      (value as Record<string, unknown>)[name] = `${whole.slice(0, length)}…`.toWellFormed();
    };
    if (Buffer.byteLength(belowPath) > pathBytesMax) {
      moved.push({ path: path.slice(0, startLength), member: JSON.stringify({ [name]: below }) });
      delete (value as Record<string, unknown>)[name];
    } else if (isRawJson(below)) {
      if (below.rawJSON.length > numberLengthMax) move(below.rawJSON, numberLengthMax);
    } else if (typeof below !== 'string') {
      shorten(below, belowPath, moved);
    } else if (Buffer.byteLength(belowPath) + Buffer.byteLength(below) >= termBytesMax) {
      move(below, startLength);
    }
  }
}
