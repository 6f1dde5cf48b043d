// Records as text, of shapes that come again and again with other values: what the transcoder learns from, and most of
// what could make a line of one record differ from that of another. Seeded, and written by hand, so that escapes, blanks
// between tokens, repeated keys and bytes that are no UTF-8 stand as no serialiser would write them.

/** Numbers from 0 up to, not including, 1: the same for the same seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The next number. */
export type Next = () => number;
/** A value as JSON text. */
export type Value = (next: Next) => string;

/** One of a list. */
export const one = <T>(next: Next, list: readonly T[]): T =>
  list[Math.floor(next() * list.length)] as T;
/** A whole number below `most`. */
export const upTo = (next: Next, most: number) => Math.floor(next() * most);

const keys =
  'id event_id uuid timestamp time created_at ts eventTime action event_name operation type name actor user performed_by ' +
  'initiator admin username login email display_name role agent bot service module api_version ip source src client ' +
  'remote source_ip src_ip client_ip port client_port src_port dst dst_ip dst_port mac src_mac hostname host url path ' +
  'uri method http_method user_agent status outcome result success error error_code status_code reason error_message ' +
  'severity level priority risk request_id correlation_id trace_id session_id session target resource object entity ' +
  'policy rule device before after old new changes message description note details company_id tenant_id event data ' +
  'attributes log network request context http response metadata tags fields x y extra count bytes';
const commonKeys = keys.split(' ');
const oddKeys = [
  'a.b',
  'a\\u0062c',
  '__proto__',
  '1',
  '0',
  '',
  'é',
  'k'.repeat(70),
  '%',
  'Sluice',
  'unmapped',
  'toString',
];

const words =
  'success failure failed Success Failure denied unknown Other other info low medium high critical Fatal user User admin ' +
  'system service agent policy rule device group policy.update CreateUser login user.login logout site.create delete GET ' +
  'POST true 200 404 99 1 0 active closed error Unknown';
const wordList = words.split(' ');

const hostileTexts = [
  '',
  ' ',
  ' edge ',
  'a=b | c\\\\d',
  '\\"quoted\\"',
  'two\\nlines',
  'cr\\r\\nlf',
  'tab\\there',
  '\\u0041scii',
  '\\ud83d\\ude00',
  '\\ud800',
  '\\/path',
  '/path',
  'x\u0080y',
  'é\u009f',
  'line\u2028sep',
  'del\x7f',
  '^caret',
  '<b>&',
  'Zq001xK',
  '41003',
  '00123',
  'a@b.example',
  'é@b.example',
  'a\\u0040b.example',
  '=',
  '\\\\',
  'e\u0301',
  '日本語',
  '😀',
  '2001:db8::1',
  'fe80::1%eth0',
  '::ffff:1.2.3.4',
  '1.2.3',
  '01.2.3.4',
  '1.2.3.4.5',
  '2026-02-30T00:00:00Z',
  '2026-11-23T12:34:60.000Z',
  '1969-12-31T23:59:59.999Z',
  '0001-01-01T00:00:00Z',
  '2026-11-23T12:34:56.789+02:00',
  '2026-11-23 12:34:56',
  '2026-11-23T12:34:56.7Z',
  '2026-11-23t12:34:56.789z',
  '11/20/2026 10:00:00',
  '11\\/20\\/2026 10:00:00',
  '05/11/2026 10:00:00',
  'Fri, 20 Nov 2026 09:00:00 GMT',
  '2026-11-20T10:00Z',
  '20\\u002f11/2026',
  '203.0.113.7:443',
  '203.0.113.7, 10.0.0.1',
  ' 203.0.113.7 ',
  '203.0.113.7\\t',
  '203.0.113.7;x',
  '[2001:db8::1]:443',
  'unknown, 203.0.113.7',
  '203.0.113.7:x',
  '1790000000',
  '1790000000000',
];
const longTexts = [31, 40, 41, 63, 64, 100, 128, 255, 512, 513, 1023, 1024, 2000, 3999, 4001].map(
  (n) => 'w'.repeat(n),
);
const hostileNumbers = [
  '-0',
  '0',
  '1e3',
  '1E400',
  '1.0',
  '1.5',
  '0.1',
  '0.05',
  '0.00001',
  '-3.25',
  '10.50',
  '123456789012345',
  '1234567890123456',
  '12345678901234567890',
  '65535',
  '65536',
  '70000',
  '443',
  '99',
  '200',
  '404',
  '599',
  '1790000000',
  '1790000000000',
  '-1',
];
const literals = [
  'true',
  'false',
  'null',
  '""',
  '{}',
  '[]',
  '[1,2]',
  '["203.0.113.7"]',
  '["203.0.113.7:443","10.0.0.1"]',
  '["a","a"]',
  '{"a":{"b":"c"}}',
  '[{"x":1},{"x":"y"}]',
];

/** A text of what is made. */
export const text =
  (make: (next: Next) => string): Value =>
  (next) =>
    `"${make(next)}"`;
const families: readonly Value[] = [
  text((next) => `evt_${upTo(next, 1e9)}`),
  text(
    (next) =>
      `${one(next, ['Anna', 'José', 'Li Wei 李伟', 'Zoë O’Neill', 'Sam \\"x\\"'])} ${upTo(next, 50)}`,
  ),
  text((next) => `person${upTo(next, 900)}@example.com`),
  text((next) => `203.0.113.${upTo(next, 250)}`),
  text((next) => new Date(1_790_000_000_000 + upTo(next, 1e9)).toISOString()),
  text((next) => new Date(1_790_000_000_000 + upTo(next, 1e9)).toISOString().replace(/\.\d+/, '')),
  text((next) => one(next, wordList)),
  text((next) => one(next, ['success', 'failure'])),
  text((next) => `host-${upTo(next, 99)}.example`),
  text((next) => `/v1/things/${upTo(next, 99)}?a=b`),
  text((next) => `Mozilla/5.0${' (X11; Linux)'.repeat(1 + upTo(next, 3))}`),
  (next) => String(upTo(next, 70_000)),
  (next) => String(upTo(next, 10)),
  (next) => `${upTo(next, 100)}.${1 + upTo(next, 9)}`,
  (next) => String(1_790_000_000_000 + upTo(next, 1e6)),
];
/** What a key is likely to hold, by a word in it. */
const likely: readonly (readonly [key: RegExp, family: number])[] = [
  [/time|_at$|^ts$/i, 4],
  [/mail/, 2],
  [/ip$|^source$|^src$|^client$|^remote$|^dst$/, 3],
  [/host/, 8],
  [/url|uri|path/, 9],
  [/agent$/, 10],
  [/port|count|bytes/, 11],
  [/id$/, 0],
  [
    /name|user|actor|admin|login|target|resource|object|entity|before|after|old|new|message|note|x|y/,
    1,
  ],
  [/./, 7],
];

function familyOf(next: Next, key: string): Value {
  if (next() < 0.2) return one(next, families);
  const [, family = 0] = likely.find(([word]) => word.test(key)) ?? [];
  const found = families[family] as Value;
  // What decides is of a few words, the same in all records of a kind.
  if (family !== 7) return found;
  const few = Array.from({ length: 2 }, () => one(next, wordList));
  return text((at) => one(at, few));
}

const anything: Value = (next) => {
  const kind = next();
  if (kind < 0.4) return `"${one(next, hostileTexts)}"`;
  if (kind < 0.5) return `"${one(next, longTexts)}"`;
  if (kind < 0.6) return `"${one(next, hostileTexts)}${one(next, hostileTexts)}"`;
  if (kind < 0.75) return one(next, hostileNumbers);
  if (kind < 0.85) return one(next, literals);
  return one(next, families)(next);
};

/** A record's plan: what is the same in all records of one kind. */
export interface Plan {
  readonly key: string;
  readonly value: Value | readonly Plan[];
  readonly isList: boolean;
}

function planOf(next: Next, depth: number): readonly Plan[] {
  const count = depth === 0 ? 3 + upTo(next, 10) : 1 + upTo(next, 5);
  const isOdd = next() < 0.1;
  const plan = Array.from({ length: count }, (): Plan => {
    const key = isOdd && next() < 0.2 ? one(next, oddKeys) : one(next, commonKeys);
    const isNested = depth < 3 && next() < 0.25;
    const value = isNested ? planOf(next, depth + 1) : familyOf(next, key);
    return { key, value, isList: isNested && next() < 0.15 };
  });
  // Now and then a key comes twice.
  return next() < 0.05
    ? plan
    : plan.filter(({ key }, i) => plan.findIndex((p) => p.key === key) === i);
}

/** A plan as audit trails have it, with parts left out, and another target. */
function usualPlan(next: Next): readonly Plan[] {
  const leaf = (key: string, family: number): Plan => ({
    key,
    value: families[family] as Value,
    isList: false,
  });
  const few = (key: string, list: readonly string[]): Plan => ({
    key,
    value: text((at) => one(at, list)),
    isList: false,
  });
  const within = (key: string, value: readonly Plan[]): Plan => ({ key, value, isList: false });
  const plan = [
    leaf('id', 0),
    leaf(one(next, ['timestamp', 'time', 'ts']), one(next, [4, 5])),
    few('action', ['policy.update', 'user.login', 'site.create', one(next, wordList)]),
    within('actor', [
      few('type', ['user', one(next, wordList)]),
      leaf('id', 0),
      leaf('name', one(next, [1, 2])),
      leaf('email', 2),
      few('role', ['admin']),
    ]),
    leaf(one(next, ['source_ip', 'ip', 'client_ip', 'src']), 3),
    leaf('user_agent', 10),
    within(one(next, ['resource', 'target', 'rule']), [
      few('type', ['policy', one(next, ['user', 'User', 'rule', 'device'])]),
      leaf('id', 0),
      leaf('name', 1),
    ]),
    few('result', ['success', 'failure']),
    few('severity', ['info', 'low', one(next, wordList)]),
    leaf('request_id', 0),
    listOfChanges(next),
    within('changes', [
      within('before', [leaf('revision', 12), leaf('rules', 11), leaf('path', 9)]),
      within('after', [leaf('revision', 12), leaf('rules', 13)]),
      leaf('note', 1),
    ]),
    within('network', [
      leaf('site', 1),
      leaf(one(next, ['client_port', 'src_ip', 'src', 'bytes']), one(next, [3, 11, 12])),
      leaf(one(next, ['dst_port', 'dst', 'dst_ip']), one(next, [3, 11])),
    ]),
    leaf(one(next, ['ts', 'details', 'path', 'session_id', 'x']), one(next, [4, 9, 0])),
  ];
  return plan.filter(() => next() < 0.85);
}

/** Changes as a list: fields that are the same in most records, with values of any kind. */
function listOfChanges(next: Next): Plan {
  const field = one(next, ['field', 'path', 'name']);
  const [from, to] = one(next, [
    ['from', 'to'],
    ['old', 'new'],
    ['previousValue', 'newValue'],
  ] as const);
  const makers = ['enabled', 'rules', one(next, wordList)].map((name) => ({
    name,
    value: one(next, families),
  }));
  const changeOf: Value = (at) => {
    const { name, value } = one(at, makers);
    const [before, after] = [value, at() < 0.1 ? anything : value].map((make) => make(at));
    return `{"${field}":"${name}","${from}":${before},"${to}":${at() < 0.1 ? before : after}}`;
  };
  const value: Value = (at) =>
    `[${Array.from({ length: 1 + upTo(at, 2) }, () => changeOf(at)).join(',')}]`;
  return { key: one(next, ['diff', 'modifiedProperties']), value, isList: false };
}

/** Further common parts of the records of one plan. */
interface Manner {
  readonly hostile: number;
  readonly missing: number;
  readonly shuffled: number;
  readonly equal: number;
  readonly blank: string;
}

function write(next: Next, plan: readonly Plan[], manner: Manner, seen: string[]): string {
  const { blank } = manner;
  const order = next() < manner.shuffled ? plan.toSorted(() => next() - 0.5) : plan;
  const members = order.flatMap(({ key, value, isList }) => {
    if (next() < manner.missing) return [];
    let written: string;
    if (next() < manner.hostile) written = anything(next);
    else if (typeof value !== 'function') {
      const inner = write(next, value, manner, seen);
      written = isList ? `[${inner}]` : inner;
    } else if (seen.length > 0 && next() < manner.equal) written = one(next, seen);
    else written = value(next);
    if (typeof value === 'function') seen.push(written);
    return [`"${key}":${blank}${written}`];
  });
  return `{${blank}${members.join(`,${blank}`)}}`;
}

/** A few kinds of records, of which some are `usual`. */
export function plansOf(
  next: Next,
  usual: (next: Next) => readonly Plan[] = usualPlan,
  share = 0.5,
): readonly (readonly Plan[])[] {
  return Array.from({ length: 1 + upTo(next, 3) }, () =>
    next() < share ? usual(next) : planOf(next, 0),
  );
}

/** Pages of records of these kinds. */
export function pagesOf(
  next: Next,
  plans: readonly (readonly Plan[])[],
  pages: number,
  count: number,
): readonly Buffer[] {
  const manner: Manner = {
    hostile: one(next, [0, 0.003, 0.02, 0.15]),
    missing: one(next, [0, 0, 0.02]),
    shuffled: one(next, [0, 0, 0.05]),
    equal: one(next, [0, 0, 0.01, 0.1]),
    blank: one(next, ['', '', ' ', '\n  ']),
  };
  return Array.from({ length: pages }, () => {
    const records = Array.from({ length: count }, () => write(next, one(next, plans), manner, []));
    const page = Buffer.from(`{"data":[${records.join(',')}]}`);
    // In some pages a character of a text becomes a byte that is no UTF-8.
    const at = next() < 0.05 ? page.indexOf('xample') : -1;
    if (at > 0) page[at] = one(next, [0xff, 0xc0, 0xed]);
    return page;
  });
}
