// `npx node bench/transcode.ts [--rounds N] [--lines TEXT]`: CPU microseconds an event of making a page's lines, with and without the
// transcoder, by the encoder that the program has, in turns within one process, so that both ways see the same machine.

import { parseArgs } from 'node:util';
import { formats } from '../formats/index.ts';
import type { PageContext } from '../src/contracts/event.ts';
import type { Format } from '../src/contracts/format.ts';
import type { Route } from '../src/contracts/index.ts';
import type { HeldPage } from '../src/contracts/spool.ts';
import {
  compileNormaliser,
  type Mapping,
  type NormaliseSettings,
} from '../src/normalise/normalise.ts';
import { type LogKind, logRecords } from '../src/sandbox/log-records.ts';
import { PageDecoder } from '../src/send/held-event.ts';
import { PageEncoder, type Reader } from '../src/send/page-encoder.ts';
import { selectionFor } from '../src/send/route.ts';
import { Transcoders } from '../src/send/transcoders.ts';
import { cutRecords } from '../src/tools/record-list.ts';
import { median } from './cost.ts';
import { pageBody, pageEvents } from './work.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, lines: { type: 'string', default: '' } },
});
const pagesARound = 60;
const bodiesOfEach = 16;

/** Records of a kind, in pages, and how they are read. */
interface Work {
  readonly kind: PageContext['kind'];
  readonly bodies: readonly Buffer[];
  readonly reading: NormaliseSettings;
}

const audit: Work = {
  kind: 'audit',
  bodies: Array.from({ length: bodiesOfEach }, (_, page) => pageBody(page, false)),
  reading: { id: 'id', time: ['timestamp'] },
};

/** Log records as the sandbox has them. */
function logs(kind: LogKind, mapping: Mapping): Work {
  const record = logRecords('c-1', kind);
  const bodies = Array.from({ length: bodiesOfEach }, (_, page) => {
    const records = Array.from({ length: pageEvents }, (_, i) => {
      const index = page * pageEvents + i;
      return record({ seed: 1, index, id: String(index), timeMs: 1_790_000_000_000 + index * 37 });
    });
    return Buffer.from(`{"data":[${records.join(',')}]}`);
  });
  return { kind: 'log', bodies, reading: { id: 'id', time: ['timestamp'], mapping } };
}

/** Audit events, none of which has the keys of another. */
const unlike: Work = {
  ...audit,
  bodies: audit.bodies.map((body, page) => {
    let record = 0;
    const text = body.toString().replaceAll('{"id":', () => {
      record += 1;
      return `{"x${page}-${record}":1,"id":`;
    });
    return Buffer.from(text);
  }),
};

const ends = { 'src_endpoint.ip': 'client_ip', 'dst_endpoint.ip': 'server_ip' };
const flows = logs('flow', {
  class: 'network_activity',
  fields: {
    ...ends,
    'src_endpoint.port': 'client_port',
    'dst_endpoint.port': 'port',
    'traffic.bytes_out': 'bytes_sent',
    'traffic.bytes_in': 'bytes_received',
    'connection_info.protocol_name': 'protocol',
  },
});
const web = logs('web', {
  class: 'http_activity',
  fields: {
    ...ends,
    'http_request.http_method': 'method',
    'http_request.user_agent': 'user_agent',
    'http_request.url.url_string': 'url',
    'http_response.code': 'status',
  },
});

function make(type: string, settings: Readonly<Record<string, unknown>> = {}): Format {
  const definition = formats.find((candidate) => candidate.type === type);
  if (definition === undefined) throw new Error(`no format ${type}`);
  const parsed = Object.entries(definition.fields).map(([key, field]) => [
    key,
    (field as unknown as { parse(v: unknown): unknown }).parse(settings[key]),
  ]);
  return definition.make({ type, ...Object.fromEntries(parsed) });
}

/** Encodes pages as a sink's sender has them encoded; returns CPU microseconds an event. */
class Way {
  readonly transcoders: Transcoders;
  readonly #encoder: PageEncoder;
  readonly #reader: Reader;
  readonly #work: Work;
  readonly times: number[] = [];

  constructor(work: Work, format: Format, isOn: boolean, routes: readonly Route[]) {
    this.#work = work;
    this.transcoders = new Transcoders(isOn);
    const normalise = compileNormaliser(work.kind, work.reading);
    this.#encoder = new PageEncoder(new PageDecoder(() => normalise), this.transcoders);
    const selection = selectionFor(routes, { source: 'audit', sink: 's' }, () => undefined);
    const expects = () => false;
    const documents = format.document !== undefined;
    const hasPassed = () => false;
    const plain = {
      documents,
      takesPages: false,
      selectionFor: () => selection,
      expects,
      hasPassed,
    };
    this.#reader = { sink: 's', format, formatKey: 'f', ...plain };
  }

  async run(): Promise<void> {
    // The scan of a page that is fetched says where its records are; that cost is not measured here.
    const { bodies, kind } = this.#work;
    const context = { source: 'audit', stream: 'audit', kind, fetchedAt: 1_790_000_000_000 };
    const pages = Array.from({ length: pagesARound }, (_, i): HeldPage => {
      const body = bodies[i % bodies.length] as Buffer;
      const slices = { ...cutRecords(body, 'data'), exact: true };
      const uids = new Uint8Array(pageEvents * 32);
      const place = { items: 'data', kept: null, first: 0, count: pageEvents };
      return { context, body, uids, slices, ...place };
    });
    const begun = process.cpuUsage();
    for (const page of pages) await this.#encoder.select(page, this.#reader);
    const { user, system } = process.cpuUsage(begun);
    this.times.push((user + system) / (pagesARound * pageEvents));
  }
}

const rows = [];
const way = { from: ['audit'], to: ['s'] };
const failures: readonly Route[] = [{ ...way, where: 'event.status == "Failure"' }];
const redacted: readonly Route[] = [{ ...way, redact: ['actor.user.name', 'unmapped'] }];

for (const [name, work, format, routes = []] of [
  ['audit, CEF in RFC 5424', audit, make('syslog', { message: 'cef' })],
  ['audit, OCSF JSON in RFC 5424', audit, make('syslog', { message: 'json' })],
  ['audit, the record in RFC 5424', audit, make('syslog', { message: 'original' })],
  ['audit, CEF', audit, make('cef')],
  ['audit, OCSF JSON', audit, make('json')],
  ['audit, OTLP', audit, make('otel')],
  ['audit, GELF', audit, make('gelf')],
  ['audit, LEEF in RFC 5424', audit, make('syslog', { message: 'leef' })],
  ['audit, ECS', audit, make('ecs')],
  ['audit, a sentence in RFC 5424', audit, make('syslog', { message: 'text' })],
  ['audit, CEF in RFC 3164', audit, make('syslog', { message: 'cef', protocol: 'rfc3164' })],
  ['audit, CEF in RFC 5424, failures', audit, make('syslog', { message: 'cef' }), failures],
  ['audit, OCSF JSON, redacted', audit, make('json'), redacted],
  ['never alike, CEF in RFC 5424', unlike, make('syslog', { message: 'cef' })],
  ['never alike, OCSF JSON', unlike, make('json')],
  ['never alike, ECS', unlike, make('ecs')],
  ['flows, CEF in RFC 5424', flows, make('syslog', { message: 'cef' })],
  ['flows, OCSF JSON', flows, make('json')],
  ['flows, OTLP', flows, make('otel')],
  ['flows, LEEF in RFC 5424', flows, make('syslog', { message: 'leef' })],
  ['flows, ECS', flows, make('ecs')],
  ['web, CEF in RFC 5424', web, make('syslog', { message: 'cef' })],
  ['web, OCSF JSON', web, make('json')],
] as readonly (readonly [string, Work, Format, (readonly Route[])?])[]) {
  if (!name.includes(values.lines)) continue;
  const off = new Way(work, format, false, routes);
  const on = new Way(work, format, true, routes);
  for (let round = 0; round <= Number(values.rounds); round += 1) {
    await off.run();
    await on.run();
    // The first pass is warm-up for V8.
    if (round === 0) for (const way of [off, on]) way.times.length = 0;
  }
  const { written = 0, unknown = 0, refused = 0 } = on.transcoders.transcoded[0] ?? {};
  rows.push({
    lines: name,
    'off us/event': Number(median(off.times).toFixed(2)),
    'on us/event': Number(median(on.times).toFixed(2)),
    times: Number((median(off.times) / median(on.times)).toFixed(2)),
    'taken %': Number(((written / (written + unknown + refused)) * 100).toFixed(1)),
  });
}
console.table(rows);
