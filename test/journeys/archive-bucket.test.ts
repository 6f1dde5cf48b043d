// An archive in a bucket beside everything that has to do with it: its lake, comparisons, a state that is older or lost, an
// older archive put back, search, replay. The real program at a real S3 server, killed on its way.

import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { aSigner, readArchive } from '../archive/a-writer.ts';
import { aJourney } from '../support/a-journey.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { type S3Server, s3BuildMsMax, sharedS3 } from '../support/s3.ts';
import { s3ServerName } from '../support/s3-program.ts';
import { waitUntil } from '../support/temp.ts';

const firstEvents = 200;
const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await sharedS3();
}, s3BuildMsMax);

async function aBucketJourney() {
  const bucket = await server.bucket();
  const location = `s3://${bucket}/some`;
  const { at, configure, env, grow, start } = await aJourney({
    ...{ events: firstEvents, source: 'every: 200ms, page_limit: 20', env: server.env },
  });
  writeFileSync(at('key'), signingKeyText('archive.test', Buffer.alloc(32, 1)));
  const config = configure('sluice', {
    state: 'state',
    sinks: `  disk: { type: file, path: ${at('events.ndjson')} }
  again: { type: file, path: ${at('again.ndjson')} }
  proof:
    type: archive
    location: ${location}
    endpoint: ${server.endpoint}
    region: us-east-1
    signing_key: "\${file:${at('key')}}"
    checkpoint_every: 100ms
    compare_every: 1s
    lake: { every: 1s }
    retry: { min: 50ms, max: 1s }`,
    more: "routes: [ { from: [audit], to: [disk, proof] }, { from: [audit], to: [again], where: 'false' } ]",
  });
  const store = await server.store(bucket, 'some');
  const sluice = (...args: readonly string[]) => runSluice(args, { env });
  /** Uids of all records; throws where the archive does not prove itself. */
  const archived = async () => new Set((await readArchive(store)).uids);
  return {
    ...{ at, config, location, store, sluice, archived, grow },
    once: () => sluice('run', '-c', config, '--once', '--timeout', '60s'),
    /** Runs until it says why it does not deliver. */
    async refusal(words: string) {
      const running = startSluice(['run', '-c', config, '--once'], { env });
      await running.waitForLine(words);
      await running.kill('SIGTERM');
    },
    /** Runs until that is so, and ends it by SIGKILL. */
    async killedWhen(what: string, isSo: () => Promise<boolean>) {
      const running = start(config);
      await waitUntil(() => isSo().catch(() => false), {
        what: () => `${what}; ${running.stderr.slice(-3).join('\n')}`,
      });
      await running.kill('SIGKILL');
    },
  };
}

test(`an archive in a bucket of ${name}, whatever becomes of the state and of it`, {
  tags: ['long'],
}, async () => {
  const { at, config, location, store, sluice, archived, grow, once, refusal, killedWhen } =
    await aBucketJourney();
  const size = async () => {
    const note = (await store.read('checkpoint'))?.body ?? [];
    return Number(Buffer.from(note).toString('utf8').split('\n')[1]);
  };
  await killedWhen('a lake and a comparison', async () => {
    const { done } = await store.list('lake/').next();
    return !done && readFileSync(at('events.ndjson'), 'utf8').includes('"archive.compared"');
  });
  cpSync(at('state'), at('older'), { recursive: true });
  const before = new Map<string, Uint8Array>();
  for await (const { name: object } of store.list('')) {
    before.set(object, (await store.read(object))?.body ?? new Uint8Array());
  }
  const sizeBefore = await size();
  grow(100);
  // Entries of other things come as well, which no state is behind of.
  await killedWhen('more', async () => {
    return (await size()) > sizeBefore && (await archived()).size >= firstEvents + 100;
  });
  rmSync(at('state'), { recursive: true });
  renameSync(at('older'), at('state'));
  grow(50);
  const restored = await once();
  cpSync(at('state'), at('newer'), { recursive: true });
  rmSync(at('state'), { recursive: true });
  const lost = await once();
  const uids = await archived();

  const verify = ['archive', 'verify', location, '--key', aSigner().verifier.vkey];
  const verified = await sluice(...verify, '--json');
  const where = 'event.metadata.log_name != "sluice"';
  const search = ['archive', 'search', location, '-c', config, '--where', where];
  const searched = await sluice(...search);
  writeFileSync(
    config,
    readFileSync(config, 'utf8').replace("where: 'false'", `where: '${where}'`),
  );
  const replayed = await sluice('archive', 'replay', '-c', config, location, '--sink', 'again');
  for await (const { name: object } of store.list('')) await store.remove(object);
  for (const [object, body] of before) await store.put(object, [body]);
  rmSync(at('state'), { recursive: true });
  renameSync(at('newer'), at('state'));
  await refusal('an older copy was put back');
  const checked = await sluice('check', '-c', config, '--connect');

  expect([restored.exitCode, restored.stderr.includes('state_older')]).toEqual([0, true]);
  expect([lost.exitCode, lost.stderr.includes('state_older')]).toEqual([0, true]);
  expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
  const uidsIn = (lines: string) =>
    lines
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).metadata.uid as string);
  const found = uidsIn(searched.stdout);
  expect([searched.exitCode, new Set(found).size]).toEqual([0, firstEvents + 150]);
  expect(found.filter((uid) => !uids.has(uid))).toEqual([]);
  expect(replayed).toMatchObject({ exitCode: 0 });
  const sentAgain = new Set(uidsIn(readFileSync(at('again.ndjson'), 'utf8')));
  expect(found.filter((uid) => !sentAgain.has(uid))).toEqual([]);
  expect(checked).toMatchObject({
    exitCode: 3,
    stdout: expect.stringContaining('an older copy was put back'),
  });
});
