// The address in a value that a name says is one: with a port, with blanks, in a list. Proxies write
// a list of addresses from the client on, so the first one is meant. What must stay true: a value
// that is anything else, a sentence with an address in it above all, holds none.

import type { Json } from '../contracts/json.ts';
import { isIp } from './values.ts';

/** An address, and the port that stands beside it. */
export interface FoundAddress {
  readonly ip: string;
  readonly port: number | undefined;
}

const lengthMax = 1024;
const listMax = 64;
const portMax = 65_535;
/** What proxies write for an address that they do not know. */
const unknowns: ReadonlySet<string> = new Set(['', '-', 'unknown']);

/** The first address of a value; undefined where it holds none. */
export function addressIn(value: Json): FoundAddress | undefined {
  if (typeof value === 'string') {
    if (isIp(value)) return { ip: value, port: undefined };
    return mayHold(value) ? firstOf(value.split(/[ ,;]+/)) : undefined;
  }
  if (!Array.isArray(value) || value.length > listMax) return undefined;
  const texts = value.map((one) => (typeof one === 'string' ? one.replace(/^ +| +$/g, '') : null));
  return texts.includes(null) ? undefined : firstOf(texts as string[]);
}

/** Cheap, since most that is no address by itself is a name. */
function mayHold(text: string): boolean {
  return (
    text.length <= lengthMax &&
    /^[ \d:.[a-f,;-]*(?:unknown[ ,;]|\d)/i.test(text) &&
    /[.:]/.test(text)
  );
}

/** All of them are addresses, or unknown. */
function firstOf(texts: readonly string[]): FoundAddress | undefined {
  if (texts.length > listMax) return undefined;
  let first: FoundAddress | undefined;
  for (const text of texts) {
    if (unknowns.has(text.toLowerCase())) continue;
    const found = addressOf(text);
    if (found === undefined) return undefined;
    first ??= found;
  }
  return first;
}

/** `203.0.113.7`, `203.0.113.7:443`, `[2001:db8::1]`, `[2001:db8::1]:443`. */
function addressOf(text: string): FoundAddress | undefined {
  if (isIp(text)) return { ip: text, port: undefined };
  const [, ip6, ip4, digits] = /^(?:\[([^[\]]+)\]|([\d.]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const ip = ip6 ?? ip4;
  if (ip === undefined || !isIp(ip) || (ip6 !== undefined && !ip6.includes(':'))) return undefined;
  const port = digits === undefined ? undefined : Number(digits);
  return port === undefined || port <= portMax ? { ip, port } : undefined;
}
