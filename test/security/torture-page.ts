// Torture records on a page, and the page on its way through sluice: a body as upstream would send it, its records found in it as
// the source finds them, and the events as senders get them from the spool.

import { createHash } from 'node:crypto';
import type { Event, PageContext, RecordKind } from '../../src/contracts/event.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { compileNormaliser, type NormaliseSettings } from '../../src/normalise/normalise.ts';
import { DecodedPage } from '../../src/send/held-event.ts';
import { scanBody } from '../../src/tools/record-list.ts';
import { Chance, tortureRecord } from './torture-record.ts';

/** A page that was read. */
export interface TorturePage {
  /** The records' own bytes, as they were put into the body. */
  readonly sent: readonly Buffer[];
  readonly events: readonly Event[];
}

/** Records of a page. */
export const pageRecords = 50;

/** How the pages take turns: audit records, logs without a class, and logs with one. */
const sources: readonly { readonly kind: RecordKind; readonly settings: NormaliseSettings }[] = [
  { kind: 'audit', settings: { time: ['timestamp'], id: 'id' } },
  { kind: 'log', settings: { time: ['timestamp'], id: 'id' } },
  {
    kind: 'log',
    settings: {
      time: ['timestamp'],
      id: 'id',
      mapping: {
        class: 'network_activity',
        fields: {
          'src_endpoint.ip': 'client_ip',
          'src_endpoint.hostname': 'name',
          'dst_endpoint.ip': 'server_ip',
          'dst_endpoint.port': 'dst_port',
          'dst_endpoint.svc_name': 'service',
          'connection_info.protocol_name': 'method',
        },
      },
    },
  },
];

const turns = sources.map(({ kind, settings }) => ({
  kind,
  normalise: compileNormaliser(kind, settings),
}));

/** Page `number` of the series `seed`. Throws where its records are not all found. */
export function torturePage(seed: number, number: number, count = pageRecords): TorturePage {
  const first = number * pageRecords;
  const sent = Array.from({ length: count }, (_, i) => tortureRecord(seed, first + i));
  const body = bodyOf(sent, new Chance(seed ^ first));
  const { records } = scanBody(body, 'data', 'id');
  if (records?.length !== count)
    throw new Error(`${records?.length} records of ${count} are found`);
  const turn = turns[number % turns.length];
  if (turn === undefined) throw new Error('no source');
  const context: PageContext = {
    source: 'audit"]',
    stream: 'audit"]/c=1|\n',
    kind: turn.kind,
    fetchedAt: 1,
  };
  const uids = Buffer.concat(
    sent.map((_, i) =>
      createHash('sha256')
        .update(`${seed} ${first + i}`)
        .digest(),
    ),
  );
  const held: HeldPage = { context, body, items: 'data', kept: null, uids, first, count };
  // Where the records stand is known from the reading, or found again when the page comes back from the disk.
  const page = number % 2 === 0 ? { ...held, slices: records.slices } : held;
  return { sent, events: new DecodedPage(page, turn.normalise).events };
}

function bodyOf(records: readonly Buffer[], chance: Chance): Buffer {
  const gap = chance.one(['', ' ', '\n', '\r\n\t']);
  const parts = records.flatMap((record) => [Buffer.from(`${gap},${gap}`), record]).slice(1);
  return Buffer.concat([
    Buffer.from(chance.onceIn(5) ? '\ufeff' : ''),
    // A member that stands twice counts where it stands last.
    Buffer.from(chance.onceIn(5) ? '{"data":[{"id":"forged"}],' : '{'),
    Buffer.from(`"__proto__":{"data":[]},"data":[${gap}`),
    ...parts,
    Buffer.from(`${gap}],"next_cursor":null}`),
  ]);
}
