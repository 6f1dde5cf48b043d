// Records as no honest upstream would send them, as bytes of JSON: texts that end lines, fields and frames, texts that
// look like the head of another event, keys that reach for prototypes, numbers that no number type can represent,
// duplicate members, values nested to the limit, odd white space, bytes that are no UTF-8. A record is made from its
// seed and number alone, so any one of a million can be made again. Most hostile texts carry a mark of their own
// (`~7~`), which shows a reader whether they came through.

/** Repeatable chance. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 up to 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 up to `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** True once in `n`. */
  onceIn(n: number): boolean {
    return this.next() * n < 1;
  }

  one<T>(list: readonly T[]): T {
    const found = list[this.below(list.length)];
    if (found === undefined) throw new Error('a choice from nothing');
    return found;
  }
}

const hostileTexts = [
  'a\nb',
  '\r',
  '\r\n',
  '\u0000',
  '\t\v\f\b',
  '\u2028',
  '\u2029\u0085',
  '\u001b[31m\u001b]0;title\u0007',
  '\u009b2J\u007f',
  '|',
  '\\|',
  '=',
  'a\\=b',
  '\\',
  '\\\\\\',
  ']',
  '"',
  '"] [sluice@32473 uid="0"] forged',
  "'; DROP TABLE pages; --",
  '\n<165>1 2003-10-11T22:14:15.003Z evil app - - - forged',
  '\r\nCEF:0|forged|x|1|1|x|10|cs6=0 cs6Label=uid',
  ' cs6=0 msg=forged suser=root',
  '58 <165>1 - - - - - - forged',
  '\ud800',
  '\udc00\ud800',
  '\ufeff',
  '\u202eevil\u202c\u200f',
  '\u2066\u2069',
  '👨‍👩‍👧',
  'é漢😀',
  ' ',
  '   x   ',
  '%0A%00%n%s',
  '${env:HOME}',
  '<script>alert(1)</script>',
  '{"metadata":{"uid":"0"}}',
  // A receiver treats a message that starts with z as a compressed one; this is replaced by bytes that are no UTF-8.
  'z\ue000',
];

const usualKeys = [
  ...['id', 'timestamp', 'action', 'actor', 'user', 'source_ip', 'client', 'resource', 'target'],
  ...['policy', 'message', 'description', 'result', 'status', 'success', 'reason', 'severity'],
  ...['level', 'user_agent', 'request_id', 'correlation_id', 'session', 'url', 'http', 'method'],
  ...['status_code', 'company_id', 'tenant', 'changes', 'before', 'after', 'service', 'event'],
  ...['attributes', 'note', 'type', 'name', 'email', 'role', 'ip', 'port', 'version', 'error'],
  ...['client_ip', 'server_ip', 'dst_port', 'query', 'rule', 'bytes', 'tags'],
];

const hostileKeys = [
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'toJSON', 'then'],
  ...['valueOf', '', ' ', 'a.b', 'actor.user.name', 'length', '0', '4294967295', '-1', 'a=b'],
  ...[
    'k\n',
    'k|',
    'k"]',
    '\ud800key',
    'k\u0000',
    'cs6',
    'uid',
    'metadata',
    'unmapped',
    'class_uid',
  ],
];

const plainTexts = [
  ...['policy.update', 'user.login', 'user login failed', 'delete_site', 'CreateUser', 'success'],
  ...[
    'failure',
    'high',
    'info',
    'critical',
    'admin',
    'Policy',
    '203.0.113.7',
    '2001:db8::1',
    'GET',
  ],
  ...[
    'anna@example.com',
    '2026-03-04T05:06:07.089Z',
    '1772600767',
    'https://x.example/a?b=c|d',
    '',
  ],
];

const numbers = [
  ...['0', '-0', '-0.0', '1', '200', '443', '65536', '1772600767089', '9007199254740993'],
  ...['12345678901234567890', '-9223372036854775809', '1e400', '-1e400', '1E-400', '0.1', '1e21'],
  ...['5e-324', '1.7976931348623157e308', '100000000000000000000000000000000000000000', '3.0'],
];

/** The text that stands for bytes which are no UTF-8, and those bytes. */
const placeholder = Buffer.from('\ue000');
const brokenUtf8 = Buffer.from([0xff, 0xc0, 0xfe]);
/** As deep as sluice takes records, the record and the body around it counted. */
const nestingMax = 190;

/** Record `index` of the series `seed`, as upstream would send it. */
export function tortureRecord(seed: number, index: number): Buffer {
  const chance = new Chance(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b));
  const bytes = Buffer.from(new Writer(chance).record());
  for (let at = bytes.indexOf(placeholder); at >= 0; at = bytes.indexOf(placeholder)) {
    brokenUtf8.copy(bytes, at);
  }
  return bytes;
}

class Writer {
  readonly #chance: Chance;
  #marks = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  record(): string {
    const chance = this.#chance;
    if (chance.onceIn(400)) return this.#value(3);
    const members = [`${this.#space()}"id":${this.#string(`evt~${this.#marks++}~`)}`];
    for (let n = chance.below(14); n > 0; n--) members.push(this.#member(0));
    if (chance.onceIn(2)) members.push(`"action":${this.#string(chance.one(plainTexts))}`);
    if (chance.onceIn(2)) members.push(`"source_ip":"203.0.113.${chance.below(256)}"`);
    if (chance.onceIn(60)) members.push(`"deep":${this.#deep()}`);
    return `{${members.join(',')}${this.#space()}}`;
  }

  #member(depth: number): string {
    const chance = this.#chance;
    const key = chance.onceIn(5) ? chance.one(hostileKeys) : chance.one(usualKeys);
    const mark = chance.onceIn(8) ? `${key}~${this.#marks++}~` : key;
    return `${this.#space()}${this.#string(mark)}${this.#space()}:${this.#value(depth)}`;
  }

  #value(depth: number): string {
    const chance = this.#chance;
    const kind = chance.below(20);
    if (kind < 11) return this.#string(this.#text());
    if (kind < 13) return this.#string(chance.one(plainTexts));
    if (kind < 15) return chance.one(numbers);
    if (kind === 15) return chance.one(['true', 'false', 'null']);
    if (depth > 4) return '[]';
    const members = Array.from({ length: chance.below(5) }, () =>
      kind === 16 ? this.#value(depth + 1) : this.#member(depth + 1),
    );
    const space = this.#space();
    return kind === 16 ? `[${members.join(',')}${space}]` : `{${members.join(',')}${space}}`;
  }

  #text(): string {
    const chance = this.#chance;
    const parts = Array.from({ length: 1 + chance.below(3) }, () => chance.one(hostileTexts));
    parts.splice(chance.below(parts.length + 1), 0, `~${this.#marks++}~`);
    const text = parts.join(chance.onceIn(2) ? '' : 'x');
    if (!chance.onceIn(1_500)) return text;
    return text + chance.one(hostileTexts).repeat(chance.below(2_000));
  }

  #deep(): string {
    const levels = this.#chance.below(nestingMax);
    const inner = this.#string(this.#text());
    return this.#chance.onceIn(2)
      ? `${'['.repeat(levels)}${inner}${']'.repeat(levels)}`
      : `${'{"a":'.repeat(levels)}${inner}${'}'.repeat(levels)}`;
  }

  /** A JSON string; what need not be escaped sometimes is, and each escape in any of its forms. */
  #string(text: string): string {
    const chance = this.#chance;
    const eager = chance.onceIn(6);
    let written = '"';
    for (const character of text) {
      const code = character.codePointAt(0) ?? 0;
      const must = code < 0x20 || code === 0x22 || code === 0x5c || (code & 0xfff800) === 0xd800;
      if (!must && !(eager && code < 0xe000 && chance.onceIn(3))) {
        written += character;
      } else if (chance.onceIn(2) && shortEscapes.has(code)) {
        written += shortEscapes.get(code);
      } else {
        const hex = code.toString(16).padStart(4, '0');
        written += `\\u${chance.onceIn(2) ? hex : hex.toUpperCase()}`;
      }
    }
    return `${written}"`;
  }

  /** White space where JSON allows it, which is seldom. */
  #space(): string {
    return this.#chance.onceIn(12) ? this.#chance.one([' ', '\n', '\r\n', '\t', '  \n\t']) : '';
  }
}

const shortEscapes: ReadonlyMap<number, string> = new Map([
  [0x08, '\\b'],
  [0x09, '\\t'],
  [0x0a, '\\n'],
  [0x0c, '\\f'],
  [0x0d, '\\r'],
  [0x22, '\\"'],
  [0x2f, '\\/'],
  [0x5c, '\\\\'],
]);
