// Masks of a route: a value is replaced by a form that hides the person but stays useful: a keyed
// hash, the domain, the last four characters, the network. Invariants: the masked value leaves no
// copy in the event: every other text and key that contains it is changed too (the message, the
// rest of the record); a value that a mask does not understand is removed, never passed; the uid is
// never changed; the event itself is not changed, because sinks share it.

import { createHmac } from 'node:crypto';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import {
  isObject,
  type MaskKind,
  type Masks,
  type OcsfEvent,
  type Secret,
} from '../contracts/index.ts';

/** Masks, and the key of `hash`. */
export interface Masking {
  readonly masks: Masks;
  /** Absent only if no mask is `hash`. */
  readonly key?: Secret | undefined;
}

/** Masks that are ready for events. */
export interface Mask {
  /** Differs if the masks or the key differ, and reveals neither value nor key. */
  readonly print: string;
  /** A copy of the event with masked values. */
  apply(ocsf: OcsfEvent): OcsfEvent;
  /** A text about the event, such as the error of a filter, without the masked values. */
  clean(text: string, ocsf: OcsfEvent): string;
}

/** Hex digits of a hash: 128 bits. */
const hashDigits = 32;
/** Shorter values than this have no last four characters: those would be half of them or more. */
const last4From = 8;
/** Shorter values are replaced only where a field has exactly this value. */
const withinTextFrom = 3;
/** Longer values are replaced also inside a longer word. */
const anywhereFrom = 8;
/** A number elsewhere with the same digits is the same value, if it has this many. */
const digitsFrom = 5;
/** Stands in texts for a value that a mask removes. */
const removed = '[masked]';

/** Prepares masks. Throws an ExportError if the key cannot be read. */
export function compileMask({ masks, key }: Masking): Mask {
  const secret = Object.values(masks).includes('hash') ? (key?.reveal() ?? '') : '';
  const parts = Object.entries(masks).map(([path, kind]) => ({
    steps: path.split('.'),
    mask: (text: string) => masked(text, kind, secret),
  }));
  const collect = (ocsf: OcsfEvent) => {
    const known = new Map<string, string>();
    let event: unknown = ocsf;
    for (const { steps, mask } of parts) {
      event = replaced(event, steps, 0, (text) => {
        const result = mask(text);
        if (text !== '' && !known.has(text)) known.set(text, result ?? removed);
        return result;
      });
    }
    return { event, known };
  };
  const paths = new Set(parts.map(({ steps }) => steps.join('.')));
  return {
    print: JSON.stringify([masks, hashOf('sluice mask key', secret)]),
    apply(ocsf) {
      const { event, known } = collect(ocsf);
      if (known.size === 0) return ocsf;
      return new Cleaner(known).event(event, paths) as OcsfEvent;
    },
    clean(text, ocsf) {
      const { known } = collect(ocsf);
      return known.size === 0 ? text : new Cleaner(known).text(text);
    },
  };
}

/** Null: nothing of the value may be shown. */
function masked(text: string, kind: MaskKind, key: string): string | null {
  if (text === '') return '';
  if (kind === 'hash') return hashOf(text, key);
  if (kind === 'domain') return domainOf(text);
  if (kind === 'network') return networkOf(text);
  const units = [...text];
  return units.length < last4From ? null : units.slice(-4).join('');
}

/** An e-mail address is one person in upper and lower case. */
function hashOf(text: string, key: string): string {
  const normal = text.normalize('NFC');
  const value = normal.includes('@') ? normal.toLowerCase() : normal;
  return createHmac('sha256', key).update(value).digest('hex').slice(0, hashDigits);
}

/** The domain of an e-mail address, or of a host name with one. */
function domainOf(text: string): string | null {
  const at = text.lastIndexOf('@');
  const host = text
    .slice(at + 1)
    .toLowerCase()
    .replace(/\.$/, '');
  const labels = host.split('.');
  const isName = labels.every((label) => /^[\p{L}\p{M}\p{N}_-]+$/u.test(label));
  if (!isName || isIP(host) !== 0) return null;
  if (at >= 0) return host;
  if (labels.length < 2) return null;
  return labels.length === 2 ? host : labels.slice(1).join('.');
}

type Replace = (text: string) => string | null;

/** The value with each text at the path and below it replaced; lists are searched. */
function replaced(
  value: unknown,
  steps: readonly string[],
  depth: number,
  replace: Replace,
): unknown {
  if (Array.isArray(value)) {
    return value.flatMap((one) => {
      const part = replaced(one, steps, depth, replace);
      return part === undefined ? [] : [part];
    });
  }
  const step = steps[depth];
  if (isObject(value)) {
    const members = value as Readonly<Record<string, unknown>>;
    if (step !== undefined && !Object.hasOwn(members, step)) return value;
    const entries = Object.entries(members).flatMap(([key, one]) => {
      const part =
        step === undefined || key === step ? replaced(one, steps, depth + 1, replace) : one;
      return part === undefined ? [] : [[key, part] as const];
    });
    return Object.fromEntries(entries);
  }
  if (step !== undefined || value === null || value === undefined) return value;
  if (typeof value === 'boolean') return value;
  return replace(String(value)) ?? undefined;
}

/** Parts of an event that sluice or the schema sets, and that no record gives. */
const constant: ReadonlySet<string> = new Set([
  'class_name',
  'category_name',
  'type_name',
  'metadata.uid',
  'metadata.version',
  'metadata.product',
  'metadata.profiles',
  'metadata.log_name',
  'metadata.tenant_uid',
]);

/** Removes known values from all texts of an event. */
class Cleaner {
  readonly #known: ReadonlyMap<string, string>;
  readonly #folded: ReadonlyMap<string, string>;
  readonly #pattern: RegExp | null;

  /** `known`: masked values, each with its replacement. */
  constructor(known: ReadonlyMap<string, string>) {
    this.#known = known;
    const forms = new Map<string, string>();
    for (const [value, replacement] of known) {
      if (value.length < withinTextFrom) continue;
      for (const form of formsOf(value)) forms.set(folded(form), replacement);
    }
    this.#folded = forms;
    const longestFirst = [...forms.keys()].toSorted((a, b) => b.length - a.length);
    this.#pattern = forms.size === 0 ? null : new RegExp(longestFirst.map(source).join('|'), 'giu');
  }

  /** `paths`: what is there is masked already. */
  event(event: unknown, paths: ReadonlySet<string>): unknown {
    return this.#value(event, '', { paths, isOpen: false });
  }

  text(text: string): string {
    const whole = this.#known.get(text);
    if (whole !== undefined) return whole;
    if (this.#pattern === null) return text;
    return text.replace(this.#pattern, (found) => this.#folded.get(folded(found)) ?? removed);
  }

  #value(
    value: unknown,
    path: string,
    at: { readonly paths: ReadonlySet<string>; readonly isOpen: boolean },
  ): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value === 'number') return this.#number(value);
    if (Array.isArray(value)) return value.map((one) => this.#value(one, path, at));
    if (!isObject(value)) return value;
    const result: Record<string, unknown> = {};
    for (const [key, one] of Object.entries(value as object)) {
      const below = path === '' ? key : `${path}.${key}`;
      // Keys of these are upstream's; those elsewhere are the schema's.
      const isOpen = at.isOpen || key === 'unmapped' || key === 'data';
      const name = at.isOpen ? unused(this.text(key), result) : key;
      const isDone = constant.has(below) || at.paths.has(below);
      // `__proto__` must become a key like any other.
      Object.defineProperty(result, name, {
        value: isDone ? one : this.#value(one, below, { paths: at.paths, isOpen }),
        ...{ enumerable: true, configurable: true, writable: true },
      });
    }
    return result;
  }

  #number(value: number): unknown {
    const text = String(value);
    return text.length < digitsFrom ? value : (this.#known.get(text) ?? value);
  }
}

/** Two keys with one masked form stay two. */
function unused(key: string, taken: Readonly<Record<string, unknown>>): string {
  let name = key;
  for (let n = 2; Object.hasOwn(taken, name); n += 1) name = `${key}_${n}`;
  return name;
}

/** The forms of a value in other texts: in an address, in a form or query, and in JSON, also if that is ASCII only. */
function formsOf(value: string): readonly string[] {
  const isAscii = /^[ -~]*$/.test(value);
  const cases = [value.toUpperCase(), value.toLowerCase()];
  const spellings = isAscii
    ? [value]
    : [value, value.normalize('NFC'), value.normalize('NFD'), ...cases];
  return spellings.flatMap((text) => {
    const encoded = encodeURIComponent(text.toWellFormed());
    const json = JSON.stringify(text).slice(1, -1);
    return [text, encoded, encoded.replaceAll('%20', '+'), json, isAscii ? json : asciiJson(json)];
  });
}

function asciiJson(json: string): string {
  return json.replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** In lower case, except where that is longer: a pattern that ignores case does not find the longer form (`İ`). */
function folded(text: string): string {
  return text.replace(/\p{Lu}/gu, (upper) => {
    const lower = upper.toLowerCase();
    return lower.length === upper.length ? lower : upper;
  });
}

/** The pattern of a value; a short one, or an address, counts only where it stands alone. */
function source(value: string): string {
  const literal = value.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  const isAnywhere = value.length >= anywhereFrom && isIP(value) === 0 && !/^\d+$/.test(value);
  if (isAnywhere) return literal;
  return `(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`;
}

// The network of an address: /24 of IPv4, /48 of IPv6. It is written as an address, so that a field
// of addresses stays one in every receiver.

/** Such as `192.0.2.0` or `2001:db8:1::`; null: the text is no address. */
function networkOf(text: string): string | null {
  if (isIPv4(text)) return v4(text);
  const bare = text.replace(/%.*$/, '');
  if (!isIPv6(bare)) return null;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  if (mapped !== undefined) return v4(mapped);
  // The URL parser writes each address in one form (RFC 5952).
  const short = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  const [head = '', tail] = short.split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...first, ...Array<string>(8 - first.length - last.length).fill('0'), ...last];
  // ::ffff:0:0/96 are IPv4 addresses, of which /48 would leave nothing.
  if (groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff') {
    const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
    return `${high >> 8}.${high & 255}.${low >> 8}.0`;
  }
  const network = [...groups.slice(0, 3), '0', '0', '0', '0', '0'].join(':');
  return new URL(`http://[${network}]`).hostname.slice(1, -1);
}

function v4(text: string): string {
  return `${text.split('.').slice(0, 3).join('.')}.0`;
}
