// Finds the address in the value of an address field: with a port, with blanks, in a list. Proxies
// write a list of addresses that starts with the client, so the first one counts. Invariant: any
// other value, above all a sentence with an address in it, gives none.

import type { Json } from '../contracts/index.ts';
import { isIp } from './values.ts';

/** An address, and the port beside it. */
export interface FoundAddress {
  readonly ip: string;
  readonly port: number | undefined;
}

const lengthMax = 1024;
const listMax = 64;
const portMax = 65_535;
/** Proxies' placeholders for an unknown address. */
const unknowns: ReadonlySet<string> = new Set(['', '-', 'unknown']);

/** The first address of a value; undefined if there is none. */
export function addressIn(value: Json): FoundAddress | undefined {
  if (typeof value === 'string') {
    if (isIp(value)) return { ip: value, port: undefined };
    return mayHold(value) ? firstOf(value.split(/[ ,;]+/)) : undefined;
  }
  if (!Array.isArray(value) || value.length > listMax) return undefined;
  const texts = value.map((one) => (typeof one === 'string' ? one.replace(/^ +| +$/g, '') : null));
  return texts.includes(null) ? undefined : firstOf(texts as string[]);
}

/** A cheap test, because most values that are not a plain address are names. */
function mayHold(text: string): boolean {
  return (
    text.length <= lengthMax &&
    /^[ \d:.[a-f,;-]*(?:unknown[ ,;]|\d)/i.test(text) &&
    /[.:]/.test(text)
  );
}

/** All of them must be addresses or unknown. */
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
