// A state taken apart and put together again: each sink is still owed what it was owed, in order, and nothing else.

import { expect, test } from 'vitest';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { joinParts, takePart } from '../../src/hold/parts.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { lookInto } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const sinks = ['fast', 'slow', 'midway'];
const keepsMark = (sink: string) => sink !== 'slow';

async function aSpool(dir: string) {
  const spool = await openSpool({
    dir,
    sync: 'none',
    keepMs: 0,
    bytesMax: 1e9,
    sinks,
    eager: true,
  });
  afterThisTest(() => spool.close());
  return spool;
}

/** The ids of what a sink is to get, in order. */
async function owed(dir: string, sink: string): Promise<readonly string[]> {
  const spool = await aSpool(dir);
  const { position } = await spool.progress(sink);
  const found: string[] = [];
  let from = position;
  for (;;) {
    const pages = await spool.read(from, 1e9);
    if (pages.length === 0) break;
    for (const page of pages) {
      if (page.onlySink === undefined || page.onlySink === sink) found.push(...idsOf(page, from));
      from = page.first + page.count;
    }
  }
  await spool.close();
  return found;
}

function idsOf({ body, kept, first, count }: HeldPage, from: number): readonly string[] {
  const { data: records } = JSON.parse(Buffer.from(body).toString()) as {
    readonly data: readonly { readonly id: string }[];
  };
  const all = kept === null ? records : Array.from(kept, (at) => records[at]);
  return all.slice(Math.max(0, from - first), count).map((record) => record?.id ?? '');
}

test('sinks in different places keep what they are owed through two parts and back', async () => {
  const whole = tempDir();
  const spool = await aSpool(whole);
  for (let page = 0; page < 6; page += 1) {
    for (const stream of ['east', 'west']) {
      const ids = [0, 1, 2].map((at) => `${stream}${page}${at}`);
      await spool.append({
        ...anAppend({ ids, stream }),
        checkpoint: { page },
        identities: Buffer.alloc(20, page),
        trail: [{ cursor: `c${page}`, at: page * 20_000 }],
      });
    }
  }
  await spool.acknowledge('fast', { position: 36, mark: { m: 'fast' } });
  await spool.acknowledge('slow', { position: 4, mark: { m: 'slow' } });
  await spool.acknowledge('midway', { position: 19 });
  await spool.close();
  const before = new Map<string, readonly string[]>();
  for (const sink of sinks) before.set(sink, await owed(whole, sink));
  expect(before.get('midway')?.slice(0, 3)).toEqual(['east31', 'east32', 'west30']);

  const parts = [tempDir(), tempDir()];
  for (const [index, dir] of parts.entries()) {
    const isOurs = (stream: string) => stream === ['east', 'west'][index];
    takePart(whole, dir, { isOurs, keepsMark });
  }
  for (const sink of sinks) {
    for (const [index, dir] of parts.entries()) {
      const ours = before.get(sink)?.filter((id) => id.startsWith(['east', 'west'][index] ?? ''));
      expect(await owed(dir, sink), `${sink} in part ${index}`).toEqual(ours);
    }
  }
  // One of them goes on.
  const west = await aSpool(parts[1] ?? '');
  await west.append(anAppend({ ids: ['west60'], stream: 'west' }));
  expect((await west.recall('east')).checkpoint).toBeNull();
  expect((await west.recall('west')).checkpoint).toEqual({ last: 'west60' });
  expect((await west.progress('fast')).mark).toEqual({ m: 'fast' });
  expect((await west.progress('slow')).mark).toBeNull();
  const { spool: name, epochs } = west.numbering;
  const { end } = west.gauge;
  await west.close();

  const together = tempDir();
  joinParts(parts, together, { sinks, keepsMark, readers: [], now: Date.now() });

  for (const sink of sinks) {
    const found = await owed(together, sink);
    for (const stream of ['east', 'west']) {
      const last = stream === 'west' ? ['west60'] : [];
      const was = before.get(sink)?.filter((id) => id.startsWith(stream)) ?? [];
      expect(
        found.filter((id) => id.startsWith(stream)),
        `${sink} of ${stream}`,
      ).toEqual([...was, ...last]);
    }
    expect(found.length).toBe((before.get(sink)?.length ?? 0) + 1);
  }
  const joined = await aSpool(together);
  expect(joined.numbering.spool).toBe(name);
  expect(joined.numbering.epochs[0]).toEqual(epochs[0]);
  // Numbers that anybody may remember stand for no other event.
  expect((await joined.progress('slow')).position).toBeGreaterThanOrEqual(end);
  expect((await joined.recall('west')).checkpoint).toEqual({ last: 'west60' });
  await joined.close();
  const known = lookInto(together, null, (store) => store.streams.extent('east').records);
  expect(known).toBe(6);
});
