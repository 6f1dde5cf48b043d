// Text and bytes for a person who needs to see them exactly. Characters that could control a
// terminal, reverse a line or be invisible are escaped as in JSON, `\u001b`; bytes that are no text
// are hexadecimal. If exactness does not matter, use cleanText (tools/clean-text.ts).

import { visibleText } from '../contracts/index.ts';

/** A value as indented JSON. */
export function visibleJsonLines(value: unknown): readonly string[] {
  return JSON.stringify(value, null, 2).split('\n').map(visibleText);
}

/** Bytes as text in one line, or as sixteen per line in hexadecimal with text beside. */
export function visibleBytes(bytes: Uint8Array): readonly string[] {
  const text = plainTextOf(bytes);
  return text === null ? hexLines(bytes) : [visibleText(text)];
}

/** The bytes as text; null if they are not UTF-8 or contain non-text characters. */
export function plainTextOf(bytes: Uint8Array): string | null {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return !text.includes('\u0000') && Buffer.from(text).equals(bytes) ? text : null;
}

const rowBytes = 16;

function hexLines(bytes: Uint8Array): readonly string[] {
  return Array.from({ length: Math.ceil(bytes.length / rowBytes) }, (_, row) => {
    const part = Buffer.from(bytes.subarray(row * rowBytes, (row + 1) * rowBytes));
    const hex = Array.from(part, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = part.toString('latin1').replace(/[^ -~]/g, '.');
    const place = (row * rowBytes).toString(16).padStart(8, '0');
    return `${place}  ${hex.padEnd(rowBytes * 3 - 1)}  ${text}`;
  });
}
