// The receiver's explanation of a rejected request, for messages and dead letters: an operator needs the receiver's own
// text. Invariant: the text is hostile, and may repeat the request, so it is reduced to one bounded line without
// control or format characters and without the values of sluice's own headers.

import { type HttpResponse, isObject, type Json, plainText } from '../../src/contracts/index.ts';

/** Maximum characters read of a response, and maximum characters reported. */
const readMax = 64 * 1024;
const reportedMax = 300;

/**
 * Members that hold a message in the responses of common receivers, the plainest first; two levels
 * deep.
 */
const messageKeys = ['message', 'detail', 'reason', 'text', 'title', 'error_description', 'error'];

/** The receiver's text in one line; empty if there is none. */
export function receiverWords({ body, headers }: HttpResponse): string {
  const text = Buffer.from(body).toString('utf8', 0, readMax);
  const type = (headers['content-type'] ?? '').toLowerCase();
  const said = type.includes('html') || /^\s*</.test(text) ? titleOf(text) : wordsOf(text);
  return plainLine(said);
}

/** A receiver's text as one bounded line without control or format characters. */
export function plainLine(said: string): string {
  const line = plainText(said).replace(/\s+/g, ' ').trim();
  return line.length > reportedMax ? `${line.slice(0, reportedMax)}…`.toWellFormed() : line;
}

function titleOf(html: string): string {
  return /<title[^>]*>([^<]*)/i.exec(html)?.[1] ?? '';
}

function wordsOf(text: string): string {
  try {
    return messageIn(JSON.parse(text) as Json, 2) ?? text;
  } catch {
    return text;
  }
}

function messageIn(value: Json | undefined, depth: number): string | null {
  const inner = Array.isArray(value) ? value[0] : value;
  if (typeof inner === 'string') return inner;
  if (!isObject(inner)) return null;
  for (const key of messageKeys) if (typeof inner[key] === 'string') return inner[key];
  if (depth === 0) return null;
  for (const member of Object.values(inner)) {
    const found = typeof member === 'object' ? messageIn(member, depth - 1) : null;
    if (found !== null) return found;
  }
  return null;
}

// Shorter values occur in any text; no credential that matters is shorter.
const secretLengthMin = 6;

/**
 * The response with the values of sluice's own headers replaced, in the forms in which they were
 * sent and in which JSON, a URL or Basic authentication writes them, and the path and parameters of
 * the address, which can contain a token. Replaced byte for byte, so that a length in front of a
 * text (protobuf) stays right.
 */
export function blotted(
  response: HttpResponse,
  url: string,
  headers: Readonly<Record<string, string>>,
): HttpResponse {
  const body = Buffer.from(response.body);
  const { pathname, searchParams } = new URL(url);
  const words = [
    ...Object.values(headers).flatMap((value) => value.split(/\s+/)),
    ...searchParams.values(),
    pathname,
  ];
  for (const word of words.flatMap(formsOf).filter(({ length }) => length >= secretLengthMin)) {
    for (let at = body.indexOf(word); at >= 0; at = body.indexOf(word, at)) {
      body.fill('*', at, at + Buffer.byteLength(word));
    }
  }
  return { ...response, body };
}

function formsOf(word: string): readonly string[] {
  const decoded = Buffer.from(word, 'base64').toString('utf8');
  const plain = [word, ...(decoded.includes(':') ? [decoded, ...decoded.split(':')] : [])];
  return plain.flatMap((one) => [
    one,
    JSON.stringify(one).slice(1, -1),
    encodeURIComponent(one.toWellFormed()),
    Buffer.from(one).toString('base64').replace(/=+$/, ''),
  ]);
}
