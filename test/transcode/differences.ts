// The encoder with and without the transcoder, on the same pages: where their lines differ. Both are the program's own,
// so what is compared is what sinks would get.

import type { Mapping } from '../../src/contracts/definition.ts';
import type { Event, PageContext } from '../../src/contracts/event.ts';
import type { Format } from '../../src/contracts/format.ts';
import type { Route } from '../../src/contracts/index.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { compileNormaliser, type Normalise } from '../../src/normalise/normalise.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { PageEncoder, type Reader } from '../../src/send/page-encoder.ts';
import { everything, selectionFor } from '../../src/send/route.ts';
import { Transcoders } from '../../src/send/transcoders.ts';
import { cutRecords } from '../../src/tools/record-list.ts';
import { makeFormat } from '../formats/make-format.ts';
import { logOf } from './hostile-logs.ts';
import { type Next, one, pagesOf, plansOf, random, upTo } from './hostile-records.ts';

const formats: readonly (() => Format)[] = [
  () => makeFormat('syslog', { message: 'cef', hostname: 'h' }),
  () => makeFormat('syslog', { message: 'json', hostname: 'h' }),
  () => makeFormat('syslog', { message: 'cef', hostname: 'h', max_message: 700 }),
  () =>
    makeFormat('syslog', { message: { type: 'cef', unmapped: false }, bom: true, hostname: 'h' }),
  () => makeFormat('cef'),
  () => makeFormat('json'),
  () => makeFormat('syslog', { message: 'original', hostname: 'h' }),
  () => makeFormat('syslog', { message: 'original', hostname: 'h', bom: true, max_message: 600 }),
  () => makeFormat('syslog', { message: 'json', hostname: 'h', protocol: 'rfc3164' }),
  () => makeFormat('syslog', { message: 'cef', hostname: 'h', protocol: 'rfc3164' }),
  () => makeFormat('leef'),
  () => makeFormat('syslog', { message: 'leef', hostname: 'h', max_message: 900 }),
  () => makeFormat('ecs'),
  () => makeFormat('syslog', { message: 'ecs', hostname: 'h' }),
  () => makeFormat('syslog', { message: 'text', hostname: 'h' }),
  () => makeFormat('syslog', { message: 'text', hostname: 'h', protocol: 'rfc3164' }),
  () => makeFormat('otel'),
  () => makeFormat('otel'),
  () => makeFormat('otel', { body: 'json' }),
  () => makeFormat('otel', { body: 'message' }),
  () => makeFormat('otel', { raw_data: true }),
  () => makeFormat('gelf', { host: 'h' }),
  () => makeFormat('gelf', { host: 'h' }),
  () => makeFormat('cef', { replace_pipe: true }),
  () => makeFormat('json', { raw_data: true }),
  () => makeFormat('ecs', { raw_data: true }),
];

/** The first so many are put together by copying. */
const copied = 23;

/** What came of a comparison. */
export interface Compared {
  readonly records: number;
  readonly written: number;
  readonly differences: readonly {
    readonly record: string;
    readonly on: string;
    readonly off: string;
  }[];
}

/** Encodes pages both ways; with several `timePaths` each has its part of them, as if a config were read again. */
export async function compare(
  pages: readonly Buffer[],
  format: Format,
  context: Omit<PageContext, 'fetchedAt' | 'kind'> & Partial<PageContext>,
  timePaths: readonly (readonly string[])[] = [['timestamp', 'time']],
  mapping?: Mapping,
  routes: readonly Route[] = [],
): Promise<Compared> {
  const failures = { on: 0, off: 0 };
  let side: keyof typeof failures = 'on';
  const way = { source: context.source, sink: 's' };
  const selection = selectionFor(routes, way, () => (failures[side] += 1)) ?? everything;
  const kind = context.kind ?? 'audit';
  const transcoders = new Transcoders(true);
  let part = 0;
  const [on, off] = [transcoders, new Transcoders(false)].map((used) => {
    const own = timePaths.map((time) =>
      compileNormaliser(kind, { id: 'id', time, ...(mapping && { mapping }) }),
    );
    return new PageEncoder(new PageDecoder(() => own[part] as Normalise), used);
  }) as [PageEncoder, PageEncoder];
  const reader: Reader = {
    sink: 's',
    format,
    formatKey: 'f',
    documents: format.document !== undefined,
    takesPages: false,
    selectionFor: () => selection,
    expects: () => false,
    hasPassed: () => false,
  };
  const differences = [];
  let records = 0;
  for (const [index, body] of pages.entries()) {
    part = Math.floor((index * timePaths.length) / pages.length);
    const slices = cutRecords(body, 'data');
    const count = slices.length;
    const uids = Buffer.alloc(count * 32, `uid${index}`);
    const fetchedAt = 1_790_000_000_000 + index * 1001;
    const place = { items: 'data', kept: null, first: 7, count };
    const held = {
      body,
      uids,
      slices,
      ...place,
      context: { ...context, kind, fetchedAt },
    };
    const made = [];
    for (const encoder of [on, off]) {
      side = encoder === on ? 'on' : 'off';
      made.push(await encoder.select({ ...held } as HeldPage, reader));
    }
    // Omitted values are omitted on both sides, and redacted alike if a sink needs the event.
    const [reported, toldOff] = made.map(({ events }) =>
      routes.length === 0 ? '' : JSON.stringify(events.map(seenBySinks)),
    );
    if (reported !== toldOff)
      differences.push({ record: 'events', on: reported ?? '', off: toldOff ?? '' });
    const [first, second] = made.map(
      ({ lines }) =>
        (i: number) =>
          Buffer.from(lines.bytes.subarray(lines.starts[i], (lines.ends[i] ?? 0) + 1)).toString(
            'latin1',
          ),
    );
    records += count;
    const lines = made.map((each) => each.lines.length);
    if (lines[0] !== lines[1])
      differences.push({ record: 'lines', on: `${lines[0]}`, off: `${lines[1]}` });
    for (let i = 0; i < Math.min(...lines); i += 1) {
      if (first?.(i) === second?.(i)) continue;
      const record = body.subarray(slices.starts[i], slices.ends[i]).toString();
      differences.push({ record, on: first?.(i) ?? '', off: second?.(i) ?? '' });
    }
  }
  if (failures.on !== failures.off)
    differences.push({ record: 'failures', on: `${failures.on}`, off: `${failures.off}` });
  return { records, written: transcoders.transcoded[0]?.written ?? 0, differences };
}

function seenBySinks({ offset, ocsf }: Event): unknown {
  return { offset, ocsf };
}

const wheres = [
  'event.severity_id >= 2',
  'event.status == "Failure"',
  'event.class_uid == 6003 || event.activity_id == 3',
  'has(event.src_endpoint)',
  'event.?src_endpoint.?port.orValue(0) > 30000',
  'event.?message.orValue("").contains("a")',
  'event.?actor.?user.?name.orValue("x") != event.?actor.?user.?email_addr.orValue("y")',
  'event.actor.user.name.startsWith("A")',
  'event.unmapped.exists(k, k.startsWith("x"))',
  'event.unmapped.exists(k, event.unmapped[k] == "x")',
  'event.metadata.uid < "8"',
  'event.time > 1790000500000',
  'source == "audit"',
];
const redactions = [
  'actor.user.name',
  'unmapped',
  'src_endpoint',
  'metadata.tenant_uid',
  'resources.name',
  'message',
];

/** Routes with filters and redactions, some of which fail on some events. */
function routesOf(next: Next): readonly Route[] {
  return Array.from({ length: 1 + upTo(next, 2) }, () => ({
    from: ['audit'],
    to: ['s'],
    ...(next() < 0.7 && { where: one(next, wheres) }),
    ...(next() < 0.6 && { redact: [one(next, redactions), one(next, redactions)] }),
  }));
}

/** Compares the pages of one seed, in a format and a context that the seed chooses as well. */
export function compareSeed(seed: number, pages: number): Promise<Compared> {
  const next = random(seed * 7919 + 1);
  // Those that are never copied come seldom: they show that nothing is.
  const which = next() < 0.9 ? next() * copied : next() * formats.length;
  const made = formats[Math.floor(which)]?.() ?? makeFormat('cef');
  const company = next() < 0.3 ? { company: 'c-1' } : {};
  const parent = next() < 0.1 ? { parent: 'p=1' } : {};
  const context = {
    source: 'audit',
    stream: next() < 0.5 ? 'audit' : 'a"u=d|it/é',
    ...company,
    ...parent,
  };
  const records = random(seed);
  const times = [['timestamp', 'time']];
  const routes = next() < 0.4 ? routesOf(next) : [];
  if (next() < 0.4) {
    const body = pagesOf(records, plansOf(records), pages, 50);
    return compare(body, made, context, times, undefined, routes);
  }
  const { mapping, plan } = logOf(records);
  const body = pagesOf(records, plansOf(records, plan, 0.9), pages, 50);
  const isMapped = next() < 0.95;
  return compare(
    body,
    made,
    { ...context, kind: 'log' },
    times,
    isMapped ? mapping : undefined,
    routes,
  );
}
