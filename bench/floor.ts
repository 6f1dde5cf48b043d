// The floor under each job: the same events parsed, built and encoded with the same functions, and written to memory, with
// no network, no spool and no loop of ours between. What a pipeline costs beyond it is what it does.

import { hash } from 'node:crypto';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { formats } from '../formats/index.ts';
import { recordsRoot } from '../src/archive/records.ts';
import type { Event, PageContext } from '../src/contracts/event.ts';
import type { Format } from '../src/contracts/format.ts';
import { compileNormaliser, type Normalise } from '../src/normalise/normalise.ts';
import { encodeLines } from '../src/send/encode.ts';
import { DecodedPage } from '../src/send/held-event.ts';
import { cutRecords } from '../src/tools/record-list.ts';
import { pageBody, pageEvents } from './work.ts';

const context: PageContext = {
  source: 'audit',
  stream: 'audit',
  kind: 'audit',
  fetchedAt: 1_790_000_000_000,
};
const rounds = 60;
const warmUp = 20;

function format(type: string, settings: object = {}): Format {
  const definition = formats.find((candidate) => candidate.type === type);
  if (definition === undefined) throw new Error(`no format ${type}`);
  const parsed = Object.fromEntries(
    Object.entries(definition.fields).map(([key, field]) => [
      key,
      (field as unknown as { parse(v: unknown): unknown }).parse(
        (settings as Record<string, unknown>)[key],
      ),
    ]),
  );
  return definition.make({ type, ...parsed });
}

/** CPU microseconds per event of doing `work` to each page. */
export function perEvent(work: (events: readonly Event[]) => void, normalise: Normalise): number {
  const bodies = Array.from({ length: 8 }, (_, page) => pageBody(page, false));
  const uids = new Uint8Array(pageEvents * 32);
  let begun = process.cpuUsage();
  for (let round = 0; round < warmUp + rounds; round += 1) {
    if (round === warmUp) begun = process.cpuUsage();
    const body = bodies[round % bodies.length] as Uint8Array;
    // The work has no number that takes more than JSON.parse.
    const slices = { ...cutRecords(body, 'data'), exact: true };
    const place = { items: 'data', kept: null, first: 0, count: pageEvents };
    const held = { context, body, uids, slices, ...place };
    work(new DecodedPage(held, normalise).events);
  }
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / (rounds * pageEvents);
}

/** What an archive's numbers cost: two hashes and a node for each record, the body's, and zstd. */
function archivedUs(): number {
  const body = pageBody(0, false);
  const { starts, ends, length } = cutRecords(body, 'data');
  let begun = process.cpuUsage();
  for (let round = 0; round < warmUp + rounds; round += 1) {
    if (round === warmUp) begun = process.cpuUsage();
    const records = Array.from({ length }, (_, i) => body.subarray(starts[i], ends[i]));
    recordsRoot(records);
    hash('sha256', body, 'hex');
    zstdCompressSync(body, { params: { [constants.ZSTD_c_compressionLevel]: 3 } });
  }
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / (rounds * pageEvents);
}

/** CPU microseconds per event of each job's floor. */
export interface Floors {
  readonly cef: number;
  readonly json: number;
  readonly original: number;
  readonly otlp: number;
  /** The file's, and the hashes and compression of an archive. */
  readonly archived: number;
  /** The four together, without anything shared. */
  readonly all: number;
}

/** Measures the floors. */
export function floors(): Floors {
  const normalise = compileNormaliser('audit', { id: 'id', time: ['timestamp'] });
  const lines = (form: Format) => perEvent((events) => void encodeLines(events, form), normalise);
  const otel = format('otel');
  const cef = lines(format('syslog', { message: 'cef' }));
  const json = lines(format('syslog', { message: 'json' }));
  const original = lines(format('json', { schema: 'original' }));
  const otlp = perEvent((events) => {
    const records = encodeLines(events, otel.document ?? otel);
    void gzipSync(otel.document?.join(records, { from: 0, to: records.length }) ?? '', {
      level: 1,
    });
  }, normalise);
  const archived = original + archivedUs();
  return { cef, json, original, otlp, archived, all: cef + json + original + otlp };
}
