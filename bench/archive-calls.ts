// `node bench/archive-calls.ts CHECKOUT`: how often the archive's writer of a checkout calls its store for each checkpoint,
// by kinds of calls, and what CPU a checkpoint takes it; without a lake, with a cut of the lake for each, with holds.

import { hash } from 'node:crypto';
import { join } from 'node:path';
import type { ArchiveWriter } from '../src/archive/writer.ts';
import type { ObjectStore } from '../src/objects/store.ts';
import { systemClock } from '../src/tools/clock.ts';
import { heldPages } from '../test/archive/a-writer.ts';
import { writableStore } from '../test/support/archive/memory-store.ts';
import { silent } from '../test/support/silent-log.ts';

const [checkout = '.'] = process.argv.slice(2);
const archive = (file: string) => import(join(checkout, 'src/archive', file));
const { openWriter } = (await archive('writer.ts')) as typeof import('../src/archive/writer.ts');
const notes = (await archive('note.ts')) as typeof import('../src/archive/note.ts');
/** Absent in older checkouts, which enter unsigned cuts. */
const signing = (await archive('cut-signature.ts').catch(() => null)) as
  | typeof import('../src/archive/cut-signature.ts')
  | null;
const signer = notes.parseSigningKey(notes.signingKeyText('bench', Buffer.alloc(32, 1)));
const checkpoints = 400;
const pagesEach = 4;

/** The store, which counts its calls. */
function counted(store: ObjectStore, calls: Map<string, number>): ObjectStore {
  const count = <T>(kind: string, made: T): T => {
    calls.set(kind, (calls.get(kind) ?? 0) + 1);
    return made;
  };
  return {
    ...store,
    create: (...by) => count('PUT', store.create(...by)),
    replace: (...by) => count('PUT', store.replace(...by)),
    put: (...by) => count('PUT', store.put(...by)),
    read: (...by) => count('GET', store.read(...by)),
    facts: (...by) => count('HEAD', store.facts(...by)),
    list: (...by) => count('LIST', store.list(...by)),
    remove: (...by) => count('DELETE', store.remove(...by)),
  };
}

/** A cut of the lake over these events, without objects: its pages are looked up as for any. */
async function cut(store: ObjectStore, from: number, next: number): Promise<void> {
  const facts = { 'sluice-spool': 'spool-1', 'sluice-epoch': '1', 'sluice-next': `${next}` };
  const made = { objects: [], events: [from, next], read: [0, 0] };
  const rest = Buffer.from(`${JSON.stringify(made)}\n`);
  const name = `lake/cuts/2026/01/01/0000000000001-${String(from).padStart(16, '0')}.cut`;
  const archive = hash('sha256', (await store.read('archive.json'))?.body ?? '', 'hex');
  const line = await signing?.signedFacts(facts, [rest], { signer, archive, object: name });
  await store.put(name, [line ?? Buffer.from(`${JSON.stringify(facts)}\n`), rest]);
}

async function measured(kind: 'plain' | 'lake' | 'holds'): Promise<string> {
  const calls = new Map<string, number>();
  const inner = writableStore();
  const writer: ArchiveWriter = await openWriter({
    ...{ store: counted(inner, calls), clock: systemClock(), signer, log: silent },
    numbering: { spool: 'spool-1', epochs: [{ id: 1, until: null }] },
    ...{ config: () => null, checkpointEveryMs: 60_000, mark: null, bodiesMs: null },
    ...{ signed: async () => undefined, remember: async () => undefined },
  });
  const hold = { id: 'a', from: null, to: null, reason: 'a', released_at: null };
  const placed_at = '2026-01-01T00:00:00Z';
  if (kind === 'holds')
    await inner.put('holds/a.json', [Buffer.from(JSON.stringify({ ...hold, placed_at }))]);
  let begun = process.cpuUsage();
  for (let i = 0; i < checkpoints; i += 1) {
    // The first ones warm up.
    if (i === 40) {
      calls.clear();
      begun = process.cpuUsage();
    }
    const first = i * pagesEach * 3;
    const added = writer.add(heldPages(pagesEach, first));
    await Promise.all([writer.flush(), added]);
    if (kind === 'lake') await cut(inner, first, first + pagesEach * 3);
  }
  const { user, system } = process.cpuUsage(begun);
  const each = (of: number) => (of / (checkpoints - 40)).toFixed(2);
  const all = [...calls.values()].reduce((sum, one) => sum + one, 0);
  const kinds = [...calls].map(([one, of]) => `${one} ${each(of)}`).join(', ');
  return `${kind}: ${each(all)} calls each (${kinds}), ${each((user + system) / 1_000)} ms CPU`;
}

console.log(`store calls and CPU of a checkpoint (${hash('sha256', checkout, 'hex').slice(0, 4)})`);
for (const kind of ['plain', 'holds', 'lake'] as const) console.log(`  ${await measured(kind)}`);
