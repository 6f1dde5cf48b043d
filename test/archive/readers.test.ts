// What an auditor's commands read, in each kind of archive: in a directory and a bucket, of one log and of several shards,
// before and after a key was handed on; with pages that are pruned, a record that is erased, and one that is there often.

import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { encodeWish, prunePath } from '../../src/archive/retention.ts';
import { rotateKey } from '../../src/archive/rotate.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { aPage } from '../support/a-page.ts';
import { naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { s3BuildMsMax, sharedS3 } from '../support/s3.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, type State, uidsOfPages } from './a-writer.ts';

const dayMs = 86_400_000;
/** A record that each log has in both of its streams, in one of them in two pages and twice in the second. */
const often = 'often';

/** An archive as the commands are given it. */
interface Place {
  readonly location: string;
  readonly env: Readonly<Record<string, string>>;
  /** The key that signs now. */
  readonly vkey: string;
}

/** What its logs have: uids by what became of them. */
interface Content {
  readonly there: readonly string[];
  readonly pruned: readonly string[];
  readonly erased: readonly string[];
}

/** One log; its pages were read 40, 20 and 0 days ago. */
async function writeLog(
  open: () => Promise<ObjectStore>,
  { log, rotates }: { readonly log: string; readonly rotates: boolean },
): Promise<Content> {
  const [old, next] = [aSigner(log, 1), aSigner(log, 2)];
  const state: State = { mark: null };
  let first = 0;
  const page = (days: number, stream: string, ids: readonly string[]): HeldPage => {
    const made = aPage({ stream, ids: ids.map((id) => (id === often ? id : `${log}-${id}`)) });
    first += ids.length;
    const fetchedAt = Date.now() - days * dayMs;
    const context = { ...made.context, fetchedAt };
    return { ...made, context, first: first - ids.length, count: ids.length };
  };
  const gone = [page(40, 'audit', ['a', 'b'])];
  const kept = [page(20, 'audit', ['c', often, 'd']), page(20, 'logs/a', [often, 'e'])];
  const last = [page(0, 'audit', ['f', often, often]), page(0, 'logs/a', ['g'])];
  let now = Date.now() - 40 * dayMs;
  let writer = await aWriter({ store: await open(), state, signer: old, now: () => now });
  await archived(writer, gone);
  now = Date.now() - 20 * dayMs;
  await archived(writer, kept);
  await writer.close();
  if (rotates) {
    const store = await open();
    await rotateKey(
      {
        ...{ store, clock: systemClock(), signer: old, spool: 'spool-1', staleMs: 30_000 },
        mark: state.mark,
        remember: async (mark) => {
          state.mark = mark;
        },
      },
      next,
    );
  }
  now = Date.now();
  const store = await open();
  writer = await aWriter({ store, state, signer: rotates ? next : old });
  const [erased = ''] = uidsOfPages(kept);
  const span = { from: timeText(now - 30 * dayMs), to: timeText(now) };
  const request = { uid: erased, reason: 'a case', asked_at: timeText(now), ...span };
  await store.put(requestPath(erased), [encodeRequest(request)]);
  await store.put(prunePath, [encodeWish(now - 30 * dayMs, now)]);
  await archived(writer, last.slice(0, 1));
  await archived(writer, last.slice(1));
  await writer.close();
  const there = uidsOfPages([...kept, ...last]).filter((uid) => uid !== erased);
  return { there, pruned: uidsOfPages(gone), erased: [erased] };
}

const vkeyOf = (rotates: boolean) => aSigner('archive.test', rotates ? 2 : 1).verifier.vkey;

async function inDirectory(shards: number, rotates: boolean): Promise<Place & Content> {
  const root = join(tempDir(), 'archive');
  const contents = await Promise.all(
    Array.from({ length: shards }, (_, i) => {
      const log = shards === 1 ? 'archive.test' : `archive.test/${i}`;
      const place = shards === 1 ? root : join(root, `${i}`);
      return writeLog(async () => openDirectory(place), { log, rotates });
    }),
  );
  return { location: root, env: {}, vkey: vkeyOf(rotates), ...joined(contents) };
}

async function inBucket(shards: number, rotates: boolean): Promise<Place & Content> {
  const server = await sharedS3();
  const bucket = await server.bucket();
  const contents: Content[] = [];
  for (let i = 0; i < shards; i += 1) {
    const log = shards === 1 ? 'archive.test' : `archive.test/${i}`;
    const prefix = shards === 1 ? 'audit' : `audit/${i}`;
    contents.push(await writeLog(() => server.store(bucket, prefix), { log, rotates }));
  }
  const location = `s3://${bucket}/audit`;
  return { location, env: server.env, vkey: vkeyOf(rotates), ...joined(contents) };
}

function joined(contents: readonly Content[]): Content {
  const all = (key: keyof Content) => contents.flatMap((one) => one[key]);
  return { there: all('there'), pruned: all('pruned'), erased: all('erased') };
}

/** In this process, or in one of its own where credentials come from the environment. */
const run = ({ env }: Pick<Place, 'env'>, ...args: readonly string[]) =>
  Object.keys(env).length === 0
    ? runHere(['archive', ...args])
    : runSluice(['archive', ...args], { env });
/** Records go to the process's own stdout. */
const shown = ({ env, location }: Pick<Place, 'env' | 'location'>) =>
  runSluice(['archive', 'search', location, '--raw'], { env });

/** A file with this text. */
function aFile(text: string): string {
  const file = join(tempDir(), 'file');
  writeFileSync(file, text);
  return file;
}

describe.each([
  ['in a directory', inDirectory],
  ['in a bucket', inBucket],
] as const)('%s', (_, make) => {
  describe.each([
    ['one log', 1, false],
    ['two shards, their key handed on', 2, true],
  ] as const)('%s', (__, shards, rotates) => {
    const tags = make === inBucket && shards === 1 ? ['long'] : [];
    test('is verified, compared, shown and proven from', {
      timeout: s3BuildMsMax,
      tags,
    }, async () => {
      const place = await make(shards, rotates);
      const { location, vkey, there, pruned, erased } = place;
      const list = (uids: readonly string[]) => aFile(uids.map((uid) => `${uid}\n`).join(''));
      const compared = (uids: readonly string[]) =>
        run(place, 'reconcile', location, '--key', vkey, '--uids', list(uids));

      const verified = await run(place, 'verify', location, '--key', vkey);
      const equal = await compared([...there, ...erased]);
      const more = await compared([...there, ...pruned]);
      const newestUid = there.at(-1) ?? '';
      const fewer = await compared(there.slice(0, -1));
      const raw = await shown(place);

      expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
      expect(equal).toMatchObject({ exitCode: 0, stderr: '' });
      expect(equal.stdout).toContain(`pruned: ${2 * shards};`);
      expect(equal.stdout).toContain(`erased from the archive: ${shards}, of which ${shards} are`);
      expect(more).toMatchObject({ exitCode: 1, stderr: '' });
      expect(more.stdout).toContain(`in the list and not in the archive: ${2 * shards}`);
      expect(fewer).toMatchObject({ exitCode: 1, stderr: '' });
      expect(fewer.stdout).toContain(`missing there ${newestUid}`);

      const lines = raw.stdout.split('\n').slice(0, -1);
      const ids = lines.map((line) => JSON.parse(line).id as string);
      expect(raw).toMatchObject({ exitCode: 0 });
      expect(raw.stderr).toContain('skipped');
      const log = (i: number) => (shards === 1 ? 'archive.test' : `archive.test/${i}`);
      const own = ['often', 'd', 'often', 'e', 'f', 'often', 'often', 'g'];
      expect(ids).toEqual(
        Array.from({ length: shards }, (___, i) =>
          own.map((id) => (id === often ? id : `${log(i)}-${id}`)),
        ).flat(),
      );

      const [record = ''] = lines.filter((line) => JSON.parse(line).id === often);
      const newest = lines.at(-1) ?? '';
      const old = newest.replace(/-g"/, '-c"');
      for (const one of [record, newest, old]) {
        const file = aFile(one);
        const proof = await run(place, 'prove', location, '--match', file);
        expect(proof, one).toMatchObject({ exitCode: 0, stderr: '' });
        const checked = await run(
          place,
          ...['check-proof', aFile(proof.stdout), '--record', file, '--key', vkey],
        );
        expect(checked, one).toMatchObject({ exitCode: 0, stderr: '' });
      }
      const lost = await run(
        place,
        'prove',
        location,
        '--match',
        aFile(newest.replace(/-g"/, '-a"')),
      );
      expect(lost).toMatchObject({ exitCode: 1, stdout: '' });
    });
  });
});

describe('three shards, one of which', () => {
  test('is damaged: uids in other parts are proven, and absent ones are not denied', async () => {
    const place = await inDirectory(3, false);
    const raw = await shown(place);
    const record =
      raw.stdout.split('\n').findLast((line) => line.includes('archive.test/2-g')) ?? '';
    const note = join(place.location, '0', 'checkpoint');
    const whole = readFileSync(note);
    const uid = place.there.at(-1) ?? '';
    for (const damage of ['checkpoint', 'segments'] as const) {
      if (damage === 'checkpoint') writeFileSync(note, 'x');
      else {
        writeFileSync(note, whole);
        renameSync(join(place.location, '0', 'segments'), join(place.location, '0', 'aside'));
      }
      for (const by of [
        ['--match', aFile(record)],
        ['--uid', uid],
      ]) {
        expect(await run(place, 'prove', place.location, ...by), damage).toMatchObject({
          exitCode: 0,
        });
      }
      const none = await run(place, 'prove', place.location, '--match', aFile('{"id":"none"}'));
      expect(none.exitCode, damage).not.toBe(0);
      expect(none.stderr, damage).toContain(`${place.location}/0`);
    }
  });

  test('has archived nothing yet: the others are read', async () => {
    const place = await inDirectory(3, false);
    const empty = join(place.location, '3');
    mkdirSync(empty);
    const writer = await aWriter({
      store: openDirectory(empty),
      signer: aSigner('archive.test/3'),
    });
    const list = aFile(place.there.map((uid) => `${uid}\n`).join(''));
    const own = ['--key', place.vkey];

    const [first = ''] = place.there;
    const results = {
      verify: await run(place, 'verify', place.location, ...own),
      raw: await shown(place),
      prove: await run(place, 'prove', place.location, '--uid', first),
      reconcile: await run(place, 'reconcile', place.location, ...own, '--uids', list),
    };
    await writer.close();

    for (const [name, { exitCode }] of Object.entries(results))
      expect([name, exitCode]).toEqual([name, 0]);
  });

  test('was started by an older version under the name of the key, and is replaced by a copy of another such log', async () => {
    const location = join(tempDir(), 'archive');
    // Of a version whose entries do not say whether a shard writes the log.
    const keys = [0, 1].map((shard) => {
      const log = naiveArchive([{ pages: [{ stream: 'audit' }] }], 'archive.test');
      writeNaive(log, join(location, `${shard}`));
      return log.vkeys[0] ?? '';
    });
    const own = keys.flatMap((key) => ['--key', key]);
    const verify = () => runHere(['archive', 'verify', location, ...own]);
    const whole = await verify();
    rmSync(join(location, '1'), { recursive: true });
    cpSync(join(location, '0'), join(location, '1'), { recursive: true });
    const copied = await verify();

    expect(whole).toMatchObject({ exitCode: 0 });
    expect(copied).toMatchObject({ exitCode: 1 });
    expect(copied.stdout).toContain(`the log of ${join(location, '0')} is here a second time`);
  });

  test('is at the common location: the others are verified all the same', async () => {
    const place = await inDirectory(2, false);
    const { location } = place;
    cpSync(join(location, '0'), location, { recursive: true });
    const own = ['--key', place.vkey];
    const whole = await run(place, 'verify', location, ...own);
    const list = aFile([...place.there, ...place.erased].map((uid) => `${uid}\n`).join(''));
    const compared = await run(place, 'reconcile', location, ...own, '--uids', list);
    const segments = join(location, '1', 'segments');
    const [year = ''] = readdirSync(segments);
    renameSync(join(segments, year), join(location, 'aside'));
    const broken = await run(place, 'verify', location, ...own);

    expect(whole.stdout).toContain('archive archive.test/1 in');
    expect(compared.exitCode).toBe(0);
    expect(broken).toMatchObject({ exitCode: 1 });
  });
});
