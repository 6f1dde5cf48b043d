// The real program compares its archive with the records that upstream serves now: records that upstream drops, changes
// or adds unnoticed by the live stream are reported to every sink, shown by the status, and entered into the archive
// for verifiers.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { aSigner, readArchive } from '../archive/a-writer.ts';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const dayMs = 86_400_000;
const firstAt = Date.now() - 10 * dayMs;
const pageMax = 4;

interface Served {
  readonly id: string;
  readonly timestamp: string;
  readonly action: string;
}

const aRecord = (n: number, action = 'login'): Served => ({
  id: `r-${n}`,
  timestamp: new Date(firstAt + n * 60_000).toISOString(),
  action,
});

/** A list that is served oldest first in pages of four, and may be changed. */
async function aList(records: readonly Served[]) {
  const list = {
    records: [...records],
    hangs: (_: string): boolean => false,
    /** Of another list; null: there is none. */
    of: (_: string): readonly Served[] | null => list.records,
  };
  const receiver = await startHttpReceiver({
    answer: async ({ path }) => {
      if (list.hangs(path)) return { answer: 'hang' };
      const from = Number(new URL(path, 'http://list').searchParams.get('cursor') ?? 0);
      const own = list.of(path);
      if (own === null) return { answer: 'reply', status: 404, headers: {}, body: '{}' };
      const data = own.slice(from, from + pageMax);
      const isLast = from + pageMax >= own.length;
      const body = { data, next_cursor: isLast ? null : String(from + pageMax) };
      const headers = { 'content-type': 'application/json' };
      return { answer: 'reply', status: 200, headers, body: JSON.stringify(body) };
    },
  });
  return { list, receiver };
}

function configFor(url: string, dir: string, sources = '', compareEvery = '1s'): string {
  const config = join(dir, 'sluice.yaml');
  writeFileSync(join(dir, 'key'), signingKeyText('archive.test', Buffer.alloc(32, 1)));
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, ends: never, base_url: "${url}", allow_http: true, auth: { api_key: k } }
sources:
  audit: { type: audit_events, upstream: edge, every: 1h }
${sources}
sinks:
  disk: { type: file, path: ${dir}/events.ndjson }
  proof: { type: archive, location: ${dir}/archive, signing_key: "\${file:${dir}/key}", checkpoint_every: 100ms, compare_every: ${compareEvery} }
`,
  );
  return config;
}

interface Written {
  readonly metadata: { readonly uid: string; readonly event_code?: string };
  readonly message?: string;
  readonly unmapped?: { readonly stream?: string };
}

function written(dir: string, code: string): readonly Written[] {
  const file = join(dir, 'events.ndjson');
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line) as Written)
    .filter(({ metadata }) => metadata.event_code === code);
}

test('records that upstream drops, changes and adds are found, reported and entered', async () => {
  const dir = tempDir();
  const before = Array.from({ length: 10 }, (_, n) => aRecord(n));
  const { list, receiver } = await aList(before);
  const sluice = startSluice(['run', '-c', configFor(receiver.url, dir)]);
  // The first one may come before the last page was archived.
  const isWhole = ({ message = '' }: Written) => message.includes('upstream serves 10 records');
  const same = await waitUntil(() => written(dir, 'archive.compared').find(isWhole), {
    what: 'a comparison of all records',
  });
  const [, second, , ...others] = before;
  list.records = [...(second === undefined ? [] : [second]), aRecord(2, 'logout'), ...others];
  list.records.splice(4, 0, { ...aRecord(5), id: 'r-new' });

  const differs = await waitUntil(() => written(dir, 'archive.differs')[0], { what: 'a finding' });
  await sluice.kill('SIGTERM');
  const verified = await runHere([
    ...['archive', 'verify', join(dir, 'archive')],
    ...['--key', aSigner().verifier.vkey, '--json'],
  ]);
  const { entries, uids } = await readArchive(join(dir, 'archive'));

  expect(same.message).toContain('and the archive proof has 10: nothing was dropped');
  expect(differs.message).toBe(
    'upstream serves 10 records and the archive proof has 10: upstream has dropped 1, shows 1 changed, and 1 never came',
  );
  const reported = entries.flatMap((entry) => (entry.t === 'reconciled' ? [entry] : []));
  expect(reported[0]).toMatchObject({ stream: 'audit', dropped: 0, missing: 0, changed: 0 });
  const found = reported.find(({ dropped }) => dropped > 0);
  expect(found).toMatchObject({ upstream: 10, archived: 10, dropped: 1, missing: 1, changed: 1 });
  expect(uids).toContain(found?.dropped_uids[0]);
  expect(uids).not.toContain(found?.missing_uids[0]);
  expect(found?.from).toBe(before[0]?.timestamp);
  expect(verified.exitCode).toBe(0);
  const { compared } = JSON.parse(verified.stdout);
  expect(compared.at(-1)).toMatchObject({ stream: 'audit', dropped: 1, missing: 1, changed: 1 });
});

test('lists per parent are compared as one stream, and a parent that is gone with all of its records', async () => {
  const dir = tempDir();
  const { list, receiver } = await aList([]);
  const lists: Record<string, readonly Served[]> = {
    a: Array.from({ length: 6 }, (_, n) => aRecord(n)),
    b: [aRecord(20), aRecord(21), aRecord(22)],
    c: [aRecord(30), aRecord(31)],
  };
  list.of = (path) => {
    const [, parent] = /incidents\/(\w+)\/timeline/.exec(path) ?? [];
    return parent === undefined ? [] : (lists[parent] ?? null);
  };
  const each = `  lines: { type: incident_timeline, upstream: edge, every: 1h, each: { ids: [a, b, c] }, sweep: 1h }`;
  const sluice = startSluice(['run', '-c', configFor(receiver.url, dir, each)]);
  const isWhole = ({ message = '' }: Written) => message.includes('upstream serves 11 records');
  const same = await waitUntil(() => written(dir, 'archive.compared').find(isWhole), {
    what: 'a comparison of all records',
  });
  const [first = aRecord(0), ...others] = lists.a ?? [];
  lists.a = [...others.slice(0, -2), { ...first, id: 'r-new' }, ...others.slice(-2)];
  lists.b = [aRecord(20), aRecord(21, 'logout'), aRecord(22)];
  delete lists.c;

  const differs = await waitUntil(() => written(dir, 'archive.differs')[0], { what: 'a finding' });
  await sluice.kill('SIGTERM');
  const { entries } = await readArchive(join(dir, 'archive'));

  expect(same.message).toContain('has 11: nothing was dropped, is missing or was changed');
  expect(differs.message).toBe(
    'upstream serves 9 records and the archive proof has 11: upstream has dropped 3, shows 1 changed, and 1 never came',
  );
  const reported = entries.flatMap((entry) => (entry.t === 'reconciled' ? [entry] : []));
  expect(reported.find(({ dropped }) => dropped > 0)).toMatchObject({
    stream: 'lines',
    archived: 11,
  });
});

test('an interrupted one resumes with its current stream', async () => {
  const dir = tempDir();
  const { list, receiver } = await aList(Array.from({ length: 3 }, (_, n) => aRecord(n)));
  const more = '  more: { type: audit_events, upstream: edge, every: 1h, path: /more }';
  const config = configFor(receiver.url, dir, more);
  let isHanging = false;
  list.hangs = (path) => {
    const isAskedAgain = receiver.requests.filter((one) => one.path === path).length > 1;
    isHanging ||= path.startsWith('/more') && isAskedAgain;
    return isHanging;
  };
  const killed = startSluice(['run', '-c', config]);
  await waitUntil(() => isHanging && written(dir, 'archive.compared').length > 0, {
    what: 'the first list compared, and the second being compared',
  });
  await killed.kill('SIGKILL');
  list.hangs = () => false;

  const sluice = startSluice(['run', '-c', config]);
  const compared = () => written(dir, 'archive.compared').map(({ unmapped }) => unmapped?.stream);
  await waitUntil(() => compared().includes('more'), { what: 'the second list' });
  await sluice.kill('SIGKILL');

  expect(compared().slice(0, 2)).toEqual(['audit', 'more']);
});

test('under --once an archive is compared at the end where that is due', async () => {
  const dir = tempDir();
  const { list, receiver } = await aList(Array.from({ length: 3 }, (_, n) => aRecord(n)));
  const config = configFor(receiver.url, dir, '', '1ms');
  const first = await runOnceHere(config);
  list.records.shift();

  const second = await runOnceHere(config);

  expect([first.exitCode, second.exitCode]).toEqual([0, 0]);
  expect(written(dir, 'archive.differs')).toHaveLength(1);
  const { entries } = await readArchive(join(dir, 'archive'));
  expect(entries.flatMap((entry) => (entry.t === 'reconciled' ? [entry.dropped] : []))).toEqual([
    1,
  ]);
});
