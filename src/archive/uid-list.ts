// Reads a list of uids, one per line, as a receiver's query exports it: 64 lower-case hexadecimal characters. Empty
// lines, a CR before the line feed and a byte order mark are ignored. Invariants: any other line ends the reading with
// its number, so a header or a truncated line never counts as a difference; a line without an end is not buffered.

import { uidBytes } from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const lineBytes = 2 * uidBytes;
const lineBytesMax = 4_096;
const shownMax = 80;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Passes each uid of the list to `take`: `uidBytes` bytes that the next uid overwrites. Throws a SyntaxError with the
 * line's number.
 */
export async function readUidList(
  chunks: AsyncIterable<Buffer>,
  take: (uid: Uint8Array) => void,
): Promise<void> {
  const uid = new Uint8Array(uidBytes);
  let number = 0;
  let rest: Buffer = Buffer.alloc(0);
  const line = (bytes: Buffer) => {
    number += 1;
    const text = number === 1 ? withoutMark(bytes) : bytes;
    const end = text.at(-1) === carriageReturn ? text.length - 1 : text.length;
    if (end === 0) return;
    if (end !== lineBytes || !decode(text, uid)) throw badLine(number, text.subarray(0, end));
    take(uid);
  };
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let from = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, from)) {
      line(bytes.subarray(from, end));
      from = end + 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > lineBytesMax) throw badLine(number + 1, rest);
  }
  if (rest.length > 0) line(rest);
}

function withoutMark(bytes: Buffer): Buffer {
  return bytes.subarray(0, 3).equals(byteOrderMark) ? bytes.subarray(3) : bytes;
}

/** False if a character is no lower-case hexadecimal digit. */
function decode(text: Buffer, uid: Uint8Array): boolean {
  for (let i = 0; i < uidBytes; i += 1) {
    const high = digit(text[2 * i] ?? 0);
    const low = digit(text[2 * i + 1] ?? 0);
    if (high < 0 || low < 0) return false;
    uid[i] = high * 16 + low;
  }
  return true;
}

function digit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  return code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
}

function badLine(number: number, bytes: Buffer): SyntaxError {
  const found = cleanText(bytes.subarray(0, shownMax).toString('utf8'), shownMax);
  return new SyntaxError(
    `line ${number}: expected a uid, 64 hexadecimal characters in lower case and nothing else; found ${JSON.stringify(found)}`,
  );
}
