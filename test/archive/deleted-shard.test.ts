// A log of several that is deleted as a whole, put back or rewritten leaves nothing broken in itself. The logs of the
// other shards name the trees that it has signed, and which shards have work.

import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { archiveSink } from '../../connectors/sinks/archive.ts';
import { signingKeyText } from '../../src/archive/note.ts';
import { inRing, Siblings } from '../../src/archive/siblings.ts';
import { parseConfig } from '../../src/config/config.ts';
import { ofShard, shardsOf } from '../../src/config/shards.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { runHere } from '../support/cli.ts';
import { openParsed, someEvents } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';
import { aSigner, readArchive } from './a-writer.ts';
import { sent } from './anchored.ts';

const { vkey } = aSigner().verifier;
const upstreams = Array.from({ length: 24 }, (_, i) => `u${i}`);
const block = (line: (name: string) => string) => upstreams.map(line).join('\n');

/** A config with so many shards, each with work. */
function configOf(location: string, shards: number, seed = 1) {
  const config = parseConfig(
    `state: { kafka: { brokers: ["k:1"], prefix: p, shards: ${shards} } }
upstreams:
${block((name) => `  ${name}: { api: unified, base_url: "https://${name}.example", auth: { client_id: i, client_secret: s, scope: x } }`)}
sources:
${block((name) => `  a${name}: { type: audit_events, upstream: ${name}, every: 30s }`)}
sinks: { proof: { type: archive, shared: true, location: "${location}", signing_key: "\${env:KEY}" } }`,
    join(tempDir(), 'c.yaml'),
    { env: { KEY: signingKeyText('archive.test', Buffer.alloc(32, seed)) } },
  );
  expect(shardsOf(config)).toHaveLength(shards);
  return config;
}

/** Opens the archive of one shard, and archives `count` pages from event `first` on. */
async function write(
  location: string,
  shard: number,
  { shards = 2, count = 1, first = 0, seed = 1 } = {},
): Promise<void> {
  const { proof } = ofShard(configOf(location, shards, seed), shard).sinks;
  if (proof === undefined) throw new Error('the config has no archive');
  const { sink, batch } = await openParsed(archiveSink, proof.settings);
  await sent(sink, batch(someEvents(count, first)));
  await sink.close();
}

const archiveIn = () => join(tempDir(), 'archive');
const verify = (location: string, ...more: readonly string[]) =>
  runHere(['archive', 'verify', location, '--key', vkey, ...more]);

/** Both shards have written, the first one twice, and each has seen the other. */
async function twoLogs(): Promise<string> {
  const location = archiveIn();
  await write(location, 0);
  await write(location, 1);
  await write(location, 0, { first: 1 });
  return location;
}

test('logs that have seen each other are whole', async () => {
  const location = await twoLogs();

  expect(await verify(location)).toMatchObject({ exitCode: 0, stderr: '' });
  const alone = await verify(join(location, '0'));
  expect(alone).toMatchObject({ exitCode: 0, stderr: '' });
  expect(alone.stdout).toContain('name the logs of other shards (1): verify the location above');
});

test.each([0, 1])('the log of shard %i that is gone is a break in the other', async (gone) => {
  const location = await twoLogs();
  rmSync(join(location, `${gone}`), { recursive: true });

  const { exitCode, stdout } = await verify(location);
  const { stdout: json } = await verify(location, '--json');

  expect(exitCode).toBe(1);
  expect(stdout).toContain(`the log of shard ${gone} had `);
  expect(stdout).toContain(`it is gone: ${location}/${gone} has no archive`);
  expect(JSON.parse(json)).toMatchObject({
    verdict: 'broken',
    breaks: [{ index: expect.any(Number), what: expect.stringContaining('it is gone') }],
  });
});

test('the log of a shard with work that no other has seen is an open gap where it is missing', async () => {
  const location = archiveIn();
  await write(location, 0);

  const { exitCode, stdout } = await verify(location);

  expect(exitCode).toBe(3);
  expect(stdout).toContain(`shard 1 has work by this entry, and ${location}/1 has no log`);
});

test('an older state of a shard that is put back is a break', async () => {
  const location = archiveIn();
  const older = join(tempDir(), 'older');
  await write(location, 0);
  await write(location, 1);
  await write(location, 0, { first: 1 });
  cpSync(join(location, '0'), older, { recursive: true });
  await write(location, 0, { first: 2 });
  await write(location, 1, { first: 1 });
  rmSync(join(location, '0'), { recursive: true });
  cpSync(older, join(location, '0'), { recursive: true });

  const { exitCode, stdout } = await verify(location);

  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/of the log in .*\/1 says that this one had \d+ entries, and it has \d+/);
});

test('a log that was rewritten with the same key is a break', async () => {
  const location = await twoLogs();
  rmSync(join(location, '1'), { recursive: true });
  await write(location, 1, { count: 5 });
  await write(location, 1, { count: 5, first: 5 });

  const { exitCode, stdout } = await verify(location);

  expect(exitCode).toBe(1);
  expect(stdout).toContain('under another root: it was rewritten');
});

const siblingsIn = async (location: string) =>
  (await readArchive(location)).entries.flatMap((entry) =>
    entry.t === 'checkpoint' ? (entry.siblings ?? []) : [],
  );

test.each<readonly [string, (first: string, second: string) => Promise<void> | void]>([
  [
    'that of another shard',
    (first, second) =>
      writeFileSync(join(second, 'checkpoint'), readFileSync(join(first, 'checkpoint'))),
  ],
  [
    'one of another key',
    async (_, second) => {
      rmSync(second, { recursive: true });
      await write(join(second, '..'), 1, { seed: 9 });
    },
  ],
  ['no note', (_, second) => writeFileSync(join(second, 'checkpoint'), 'nothing\n')],
])('a checkpoint at the location of another shard is not entered: %s', async (_, plant) => {
  const location = archiveIn();
  await write(location, 0);
  await write(location, 1);
  await plant(join(location, '0'), join(location, '1'));
  await write(location, 0, { first: 1 });

  expect(await siblingsIn(join(location, '0'))).toEqual([]);
});

test('more shards and fewer than before are whole', async () => {
  const location = archiveIn();
  for (const shard of [0, 1, 2]) await write(location, shard, { shards: 3 });
  for (const shard of [0, 1, 2, 3, 4]) await write(location, shard, { shards: 5, first: 1 });
  const more = await verify(location);
  for (const shard of [0, 1]) await write(location, shard, { shards: 2, first: 2 });
  const fewer = await verify(location);
  rmSync(join(location, '3'), { recursive: true });
  const gone = await verify(location);

  expect(more).toMatchObject({ exitCode: 0, stderr: '' });
  expect(fewer).toMatchObject({ exitCode: 0, stderr: '' });
  expect(gone.exitCode).toBe(1);
  expect(gone.stdout).toContain('the log of shard 3 had ');
});

test('an archive that says nothing of its shards verifies as before, with a warning', async () => {
  const location = archiveIn();
  for (const shard of [0, 2]) {
    const { proof } = ofShard(configOf(location, 3), shard).sinks;
    const { sink, batch } = await openParsed(archiveSink, {
      ...proof?.settings,
      others: undefined,
    } as never);
    await sent(sink, batch(someEvents(1)));
    await sink.close();
  }

  const { exitCode, stderr } = await verify(location);

  expect(exitCode).toBe(0);
  expect(stderr).toContain(`${location}/1 is not there`);
});

test('two logs without archive.json are not taken for one', async () => {
  const location = await twoLogs();
  for (const shard of [0, 1]) rmSync(join(location, `${shard}`, 'archive.json'));

  const { exitCode, stdout } = await verify(location);

  expect(exitCode).toBe(1);
  expect(stdout).toContain('archive.json is missing');
  expect(stdout).not.toContain('is here a second time');
  expect(readdirSync(location)).toEqual(['0', '1']);
});

test('the other logs are read at intervals that double up to an hour, and at the end', async () => {
  let now = 0;
  let reads = 0;
  const places = [
    {
      shard: 1,
      open: async () => {
        reads += 1;
        return writableStore();
      },
    },
  ];
  const clock = { ...systemClock(), monotonic: () => now };
  const siblings = new Siblings(places, { key: aSigner().verifier, clock, everyMs: 10_000 });
  const at: number[] = [];
  for (; now < 4 * 3_600_000; now += 10_000) {
    const before = reads;
    await siblings.signed(false);
    if (reads > before) at.push(now / 10_000);
  }
  await siblings.signed(true);

  expect(at.slice(0, 6)).toEqual([0, 1, 3, 7, 15, 31]);
  expect(at.slice(-2).map((one) => one - (at.at(-3) ?? 0))).toEqual([360, 720]);
  expect(reads).toBe(at.length + 1);
});

test('each of very many shards names the next ones, so that each is named', () => {
  const places = Array.from({ length: 100 }, (_, shard) => ({ shard }));
  const named = places.flatMap(({ shard }) => inRing(places, shard).map((one) => one.shard));

  expect(inRing(places, 95).map(({ shard }) => shard)).toEqual([
    ...[96, 97, 98, 99],
    ...Array.from({ length: 12 }, (_, i) => i),
  ]);
  expect(new Set(named).size).toBe(100);
});
