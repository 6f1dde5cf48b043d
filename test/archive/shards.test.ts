// The archives of several shards, which one key signs: each is a log of its own to a witness that remembers by a log's
// name what it has seen, one public key proves them all, and none passes for another.

import { copyFileSync, cpSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { archiveSink } from '../../connectors/sinks/archive.ts';
import { signingKeyText } from '../../src/archive/note.ts';
import { parseConfig } from '../../src/config/config.ts';
import { ofShard } from '../../src/config/shards.ts';
import { naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { startWitness } from '../support/archive/oracles.ts';
import { runHere } from '../support/cli.ts';
import { openParsed, someEvents } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';
import { aSigner } from './a-writer.ts';
import { anchorsIn, sent } from './anchored.ts';

const { vkey } = aSigner().verifier;
const logs = [0, 1].map((shard) => aSigner(`archive.test/${shard}`).verifier.vkey);

/** The archive of a shard, as its config has it. */
function sinkOf(location: string, shard: number, more = '') {
  const config = parseConfig(
    `state: { kafka: { brokers: ["k:1"], prefix: p, shards: 2 } }
upstreams: { edge: { api: unified, base_url: https://api.example, auth: { client_id: i, client_secret: s, scope: x } } }
sources: { audit: { type: audit_events, upstream: edge, every: 30s } }
sinks: { proof: { type: archive, shared: true, location: "${location}", signing_key: "\${env:KEY}"${more} } }`,
    join(tempDir(), 'c.yaml'),
    { env: { KEY: signingKeyText('archive.test', Buffer.alloc(32, 1)) } },
  );
  const { proof } = ofShard(config, shard).sinks;
  if (proof === undefined) throw new Error('the config has no archive');
  return proof;
}

/** A page in the archive of each of two shards. */
async function written(location: string, more?: string): Promise<void> {
  for (const shard of [0, 1]) {
    const { sink, batch } = await openParsed(archiveSink, sinkOf(location, shard, more).settings);
    await sent(sink, batch(someEvents(2 + shard)));
    await sink.close();
  }
}

const verify = (location: string, ...more: readonly string[]) =>
  runHere(['archive', 'verify', location, '--key', vkey, ...more]);

test('one witness cosigns the archives of all shards, and the one key proves them', async (context: TestContext) => {
  const witness = await startWitness(context, { logs });
  const location = join(tempDir(), 'archive');
  await written(location, `, witnesses: [ { url: "${witness.url}", key: "${witness.vkey}" } ]`);

  const judged = await verify(location, '--witness', witness.vkey, '--seen-within', '1h');
  const counts = [0, 1].map((shard) => anchorsIn(join(location, `${shard}`), 'cosig').length);

  expect(judged).toMatchObject({ exitCode: 0, stderr: '' });
  expect(judged.stdout).toContain(`archive archive.test/0 in ${location}/0`);
  expect(judged.stdout).toContain(`archive archive.test/1 in ${location}/1`);
  expect(counts).toEqual([expect.any(Number), expect.any(Number)]);
  expect(Math.min(...counts)).toBeGreaterThan(0);
});

test('an archive at another shard’s location is reported, and one that started under the key’s name resumes', async () => {
  const location = join(tempDir(), 'archive');
  await written(location);
  const [first, second] = [join(location, '0'), join(location, '1')];
  renameSync(first, join(location, 'aside'));
  renameSync(second, first);
  renameSync(join(location, 'aside'), second);

  const swapped = await verify(location);
  expect(swapped.exitCode).toBe(1);
  expect(swapped.stdout).toContain('that of shard 1, and lies at the location of shard 0');
  expect(swapped.stdout).toContain('that of shard 0, and lies at the location of shard 1');

  // As an older version began them: under the key's own name.
  const older = join(tempDir(), 'older');
  const { settings } = sinkOf(older, 0);
  const before = await openParsed(archiveSink, { ...settings, shard: undefined });
  await sent(before.sink, before.batch(someEvents(2)));
  await before.sink.close();
  const after = await openParsed(archiveSink, settings);
  const answer = await after.sink.send(after.batch(someEvents(2)), AbortSignal.timeout(10_000));
  expect(answer).toMatchObject({
    cause: { message: expect.stringContaining('are in the arch') },
  });
  // This version says from its first page on that a shard writes the log.
  await sent(after.sink, after.batch(someEvents(1, 2)));
  await after.sink.close();
  const gone = await verify(older);
  // The other shard has archived nothing yet.
  expect(gone).toMatchObject({ exitCode: 3, stderr: '' });
  expect(gone.stdout).toContain('shard 1 has work by this entry');
  expect(gone.stdout).not.toContain('another archive of this key');
  expect(gone.stdout).toContain(`archive archive.test in ${older}/0`);
});

test('a copy of a log under its number with a zero before it is the one that is reported', async () => {
  const location = join(tempDir(), 'archive');
  await written(location);
  cpSync(join(location, '1'), join(location, '01'), { recursive: true });

  const { exitCode, stdout } = await verify(location);

  expect(exitCode).toBe(1);
  expect(stdout).toContain(`the log of ${location}/1 is here a second time`);
});

test('one shard’s signatures are not valid for another log: a planted checkpoint breaks it', async () => {
  const location = join(tempDir(), 'archive');
  await written(location);
  copyFileSync(join(location, '0', 'checkpoint'), join(location, '1', 'checkpoint'));

  const judged = await verify(location);
  expect(judged.exitCode).toBe(1);
});

test('an archive without shards at the location of a shard’s log is a break', async () => {
  const location = join(tempDir(), 'archive');
  await written(location);
  const place = join(location, '2');
  const { settings } = sinkOf(place, 0);
  const alone = await openParsed(archiveSink, {
    ...{ ...settings, location: place, shard: undefined, others: undefined },
  });
  await sent(alone.sink, alone.batch(someEvents(2)));
  await alone.sink.close();

  const judged = await verify(location);
  const json = await verify(location, '--json');
  const own = await verify(place);

  expect(judged.exitCode).toBe(1);
  expect(judged.stdout).toContain('another archive of this key is at the location of shard 2');
  const reports = JSON.parse(json.stdout) as { breaks: { index: number | null }[] }[];
  expect(reports.map(({ breaks }) => breaks.length)).toEqual([0, 0, 1]);
  expect(reports[2]?.breaks[0]?.index).toBe(0);
  expect(own.exitCode).toBe(0);
  expect(own.stdout).toContain('by its newest start no shard writes this log');
});

test('the same beside an archive without shards at the location itself', async () => {
  const location = join(tempDir(), 'archive');
  for (const place of [location, join(location, '2')]) {
    const { settings } = sinkOf(place, 0);
    const { sink, batch } = await openParsed(archiveSink, {
      ...{ ...settings, location: place, shard: undefined, others: undefined },
    });
    await sent(sink, batch(someEvents(2)));
    await sink.close();
  }

  const judged = await verify(location);

  expect(judged.exitCode).toBe(1);
  expect(judged.stdout).toContain(`at the location of shard 2`);
});

test('a log of an older version that says of no shard, beside logs that do, is an open gap', async () => {
  const location = join(tempDir(), 'archive');
  await written(location);
  const older = naiveArchive([{ pages: [{ stream: 'audit' }] }], 'archive.test');
  writeNaive(older, join(location, '2'));
  const [key = ''] = older.vkeys;

  const judged = await verify(location, '--key', key);
  const alone = await verify(join(location, '2'), '--key', key);

  expect(judged.exitCode).toBe(3);
  expect(judged.stdout).toContain('nothing says that it is the log of shard 2');
  expect(alone.exitCode).toBe(0);
});
