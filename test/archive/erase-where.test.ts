// Erasing and exporting all records that match a filter: they are listed first, all or none are requested, and an
// export has these records only, each with a proof that holds.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { proveRecord } from '../../src/archive/prove.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, type State, uidsOfPages } from './a-writer.ts';

const { vkey } = aSigner().verifier;
const config = `
upstreams: { edge: { api: unified, ends: never, base_url: "https://edge.example/v1", auth: { api_key: k } } }
sources: { audit: { type: audit_events, upstream: edge, every: 30s } }
sinks: { screen: { type: stdout } }
`;

async function anArchive() {
  const location = tempDir();
  const state: State = { mark: null };
  const writer = await aWriter({ store: openDirectory(location), state });
  const pages = heldPages(3);
  await archived(writer, pages);
  const file = join(tempDir(), 'sluice.yaml');
  writeFileSync(file, config);
  const run = (...args: readonly string[]) => runHere(['archive', ...args]);
  return { location, writer, file, run, uids: uidsOfPages(pages) };
}

const where = 'event.metadata.original_event_uid in ["1", "5"]';

test('erase lists the records that match, and erases them only', async () => {
  const { location, writer, file, run, uids } = await anArchive();
  const args = ['erase', location, '--where', where, '-c', file, '--reason', 'request 17'];

  const unsure = await run(...args);
  const sure = await run(...args, '--yes');
  // The writer carries out one request with each checkpoint.
  for (const first of [9, 12]) await archived(writer, heldPages(1, first));
  const again = await run(...args, '--yes');
  await writer.close();

  expect(unsure.exitCode).toBe(1);
  const lines = unsure.stdout.trimEnd().split('\n');
  expect(lines.slice(0, 2).map((line) => line.slice(0, 64))).toEqual([uids[1], uids[5]]);
  expect(lines[2]).toContain(
    '2 records would be erased from 2 pages in 1 segment; nothing is erased',
  );
  expect(sure.stdout).toContain('2 records would be erased from 2 pages in 1 segment: requested');
  expect(sure.exitCode).toBe(0);
  expect(again).toMatchObject({ exitCode: 1 });
  const left = await Promise.all(uids.map((uid) => run('prove', location, '--uid', uid)));
  expect(left.map(({ exitCode }) => exitCode)).toEqual([0, 1, 0, 0, 0, 1, 0, 0, 0]);
  expect(await run('verify', location, '--key', vkey)).toMatchObject({ exitCode: 0, stderr: '' });
});

test('without a match, a config or one of both options nothing is requested', async () => {
  const { location, writer, file, run, uids } = await anArchive();
  await writer.close();
  const reason = ['--reason', 'x', '--yes'];

  const none = await run(
    'erase',
    location,
    '--where',
    'event.status == "x"',
    '-c',
    file,
    ...reason,
  );
  const failing = await run(
    ...['erase', location, '--where', 'event.http_request.url.text == "x"', '-c', file, ...reason],
  );
  const bare = await run('erase', location, '--where', where, ...reason);
  const both = await run('erase', location, '--where', where, '--uid', uids[0] ?? '', ...reason);
  const wrong = await run('erase', location, '--where', 'evnt == 1', '-c', file, ...reason);

  expect(none).toMatchObject({ exitCode: 1 });
  expect(none.stderr).toContain('no record of the archive matches');
  expect(failing).toMatchObject({ exitCode: 1 });
  expect(failing.stderr).toContain('9 events on which the filter failed');
  expect([bare, both, wrong].map(({ exitCode }) => exitCode)).toEqual([64, 64, 64]);
  expect(readdirSync(location)).not.toContain('erase');
});

test('an archive that another key signs lists nothing and requests nothing', async () => {
  const { location, writer, file, run } = await anArchive();
  await writer.close();
  const other = aSigner('archive.test', 2).verifier.vkey;
  const matching = ['--where', where, '-c', file];
  const reason = ['--reason', 'x', '--yes'];
  // The key of the config's sink is used without --key.
  const own = join(tempDir(), 'own.yaml');
  const keyFile = join(tempDir(), 'archive.key');
  writeFileSync(keyFile, signingKeyText('archive.test', Buffer.alloc(32, 2)), { mode: 0o600 });
  const sink = `{ type: archive, location: ${location}, signing_key: "\${file:${keyFile}}" }`;
  writeFileSync(own, config.replace('{ type: stdout }', sink));
  const out = join(tempDir(), 'export');

  const refused = [
    await run('erase', location, ...matching, ...reason, '--key', other),
    await run('erase', location, '--where', where, '-c', own, ...reason),
    await run('export', location, '--where', where, '-c', own, '--out', out),
  ];
  const unknown = await run('erase', location, ...matching, '--reason', 'x');
  const known = await run('erase', location, ...matching, '--reason', 'x', '--key', vkey);

  for (const { exitCode, stdout } of refused) {
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
  }
  expect(readdirSync(location)).not.toContain('erase');
  expect(unknown.stderr).toContain('not proven: no key is known');
  expect(known.stdout).toContain('2 records would be erased');
  expect(known.stderr).not.toContain('not proven');
});

test('an export reads the entries of a page once per record, and not the log', async () => {
  const location = tempDir();
  const writer = await aWriter({ store: openDirectory(location), state: { mark: null } });
  const pages = heldPages(300);
  await archived(writer, pages);
  await writer.close();
  const store = openDirectory(location);
  let reads = 0;
  const reader = new ArchiveReader({
    ...store,
    list: store.list.bind(store),
    read: (name, range) => {
      reads += 1;
      return store.read(name, range);
    },
  } as ObjectStore);
  const uid = uidsOfPages(pages).at(-1) ?? '';
  const searched = await proveRecord(reader, uid);
  const whole = reads;
  reads = 0;

  const found = await proveRecord(reader, uid, searched?.proof.index);

  expect(found?.proof.index).toBe(searched?.proof.index);
  expect(reads).toBeLessThan(whole / 10);
});

test('a hold of one match keeps all of them', async () => {
  const { location, writer, file, run } = await anArchive();
  const held = await run('hold', 'add', location, '--id', 'h1', '--reason', 'case 4');
  expect(held).toMatchObject({ exitCode: 0 });
  await archived(writer, heldPages(1, 9));

  const refused = await run(
    ...['erase', location, '--where', where, '-c', file, '--reason', 'x', '--yes'],
  );
  await writer.close();

  expect(refused).toMatchObject({ exitCode: 1 });
  expect(refused.stderr).toContain('the hold ');
  expect(readdirSync(location)).not.toContain('erase');
});

test('export writes each match with its proof, and no other record', async () => {
  const { location, writer, file, run, uids } = await anArchive();
  await writer.close();
  const out = join(tempDir(), 'export');

  const matching = ['--where', where, '-c', file, '--key', vkey, '--out', out];
  const exported = await run('export', location, ...matching);
  const repeated = await run('export', location, ...matching);

  expect(exported).toMatchObject({ exitCode: 0, stderr: '' });
  expect(repeated.exitCode).toBe(64);
  const names = [uids[1], uids[5]].flatMap((uid) => [`${uid}.proof`, `${uid}.record`]);
  expect(readdirSync(out).toSorted()).toEqual([...names, 'matches.ndjson'].toSorted());
  const lines = readFileSync(join(out, 'matches.ndjson'), 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).uid)).toEqual([uids[1], uids[5]]);
  for (const uid of [uids[1], uids[5]]) {
    const base = join(out, `${uid}`);
    const args = ['check-proof', `${base}.proof`, '--record', `${base}.record`, '--key', vkey];
    expect(await run(...args)).toMatchObject({ exitCode: 0 });
  }
  expect(await run('export', location, '--out', join(tempDir(), 'x'))).toMatchObject({
    exitCode: 64,
  });
});
