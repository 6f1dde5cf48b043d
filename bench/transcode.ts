// `npx node bench/transcode.ts [--rounds N]`: CPU microseconds an event of making a page's lines, with and without the
// transcoder, by the encoder that the program has, in turns within one process, so that both ways see the same machine.

import { parseArgs } from 'node:util';
import { formats } from '../formats/index.ts';
import type { PageContext } from '../src/contracts/event.ts';
import type { Format } from '../src/contracts/format.ts';
import type { HeldPage } from '../src/contracts/spool.ts';
import { compileNormaliser } from '../src/normalise/normalise.ts';
import { PageDecoder } from '../src/send/held-event.ts';
import { PageEncoder, type Reader } from '../src/send/page-encoder.ts';
import { everything } from '../src/send/route.ts';
import { Transcoders } from '../src/send/transcoders.ts';
import { cutRecords } from '../src/tools/record-list.ts';
import { pageBody, pageEvents } from './work.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });
const pagesARound = 60;
const context: PageContext = {
  source: 'audit',
  stream: 'audit',
  kind: 'audit',
  fetchedAt: 1_790_000_000_000,
};

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
  readonly #bodies = Array.from({ length: 16 }, (_, page) => pageBody(page, false));
  readonly times: number[] = [];

  constructor(format: Format, isOn: boolean) {
    this.transcoders = new Transcoders(isOn);
    const normalise = compileNormaliser('audit', { id: 'id', time: ['timestamp'] });
    this.#encoder = new PageEncoder(new PageDecoder(() => normalise), this.transcoders);
    const selectionFor = () => everything;
    const expects = () => false;
    const plain = { documents: false, takesPages: false, selectionFor, expects };
    this.#reader = { sink: 's', format, formatKey: 'f', ...plain };
  }

  async run(): Promise<void> {
    // The scan of a page that is fetched says where its records are; that cost is not measured here.
    const pages = Array.from({ length: pagesARound }, (_, i): HeldPage => {
      const body = this.#bodies[i % this.#bodies.length] as Buffer;
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

const median = (times: readonly number[]) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;

const rows = [];
for (const [name, format] of [
  ['CEF in RFC 5424', make('syslog', { message: 'cef' })],
  ['OCSF JSON in RFC 5424', make('syslog', { message: 'json' })],
  ['The record in RFC 5424', make('syslog', { message: 'original' })],
  ['CEF', make('cef')],
  ['OCSF JSON', make('json')],
] as const) {
  const off = new Way(format, false);
  const on = new Way(format, true);
  for (let round = 0; round <= Number(values.rounds); round += 1) {
    await off.run();
    await on.run();
    // The first round is V8's.
    if (round === 0) for (const way of [off, on]) way.times.length = 0;
  }
  const { written = 0, unknown = 0, refused = 0 } = on.transcoders.transcoded[0] ?? {};
  rows.push({
    format: name,
    'off us/event': Number(median(off.times).toFixed(2)),
    'on us/event': Number(median(on.times).toFixed(2)),
    times: Number((median(off.times) / median(on.times)).toFixed(2)),
    'taken %': Number(((written / (written + unknown + refused)) * 100).toFixed(1)),
  });
}
console.table(rows);
