// A pair through the spool's thread: records that wait for the other side, and commits that end their patience.

import { expect, test } from 'vitest';
import type { ListStream } from '../../src/contracts/source.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { pairingsOf, sideIn } from '../../src/succession/pairing.ts';
import { pairedPage } from '../../src/succession/side.ts';
import { aPage } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

test('records that are stored in a commit that takes time wait for their whole patience', async () => {
  const list = (name: string) =>
    ({ kind: 'list', source: name, name, id: 'id', time: ['timestamp'] }) as unknown as ListStream;
  const succeeds = { source: 'audit', fields: {}, ignore: [], overlapMs: 0, patienceMs: 3_600_000 };
  const pairings = pairingsOf([
    { name: 'audit', streams: [list('audit')], schedule: undefined },
    { name: 'late', streams: [list('late')], schedule: undefined, succeeds },
  ]);
  const side = sideIn(pairings, 'late');
  if (side === null) throw new Error('the source has no side');
  const settings = { sync: 'normal', keepMs: 0, bytesMax: 1e9, sinks: ['a'] } as const;
  // Each commit looks for records whose patience is over.
  const spool = await openSpool({ ...settings, dir: tempDir(), eager: true });
  await spool.pairs?.settle(pairings.map(({ plan }) => plan));
  const pages = Array.from({ length: 20 }, (_, n) => {
    const ids = Array.from({ length: 200 }, (_, at) => `${n}-${at}`);
    return pairedPage(aPage({ stream: 'late', source: 'late', ids }), side);
  });

  await Promise.all(pages.map((page) => spool.append({ stream: 'late', pages: [page] })));
  const [report] = (await spool.pairs?.reports()) ?? [];
  await spool.close();

  expect(report?.waiting).toBe(20 * 200);
});
