// What goes from an archive in a bucket, and what a lock keeps there: erasures and pruning at a real server, looked at past
// sluice, where older versions of objects show.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ListObjectVersionsCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { lockedStore } from '../../connectors/sinks/archive/locked.ts';
import { lakeSink } from '../../connectors/sinks/lake.ts';
import { encodeHold } from '../../src/archive/holds.ts';
import { signingKeyText } from '../../src/archive/note.ts';
import { Secret } from '../../src/contracts/secret.ts';
import { openStore } from '../../src/objects/open.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { readUids } from '../../src/parquet/read.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { anEvent } from '../support/an-event.ts';
import { runSluice } from '../support/cli.ts';
import { testSome } from '../support/long.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../support/s3.ts';
import { s3ServerName } from '../support/s3-program.ts';
import { openSink } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aSigningKey, aWriter, heldPages, uidsOfPages } from './a-writer.ts';

const name = await s3ServerName();
const { vkey } = aSigner().verifier;
const hourMs = 3_600_000;
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

async function aPlace(isLocked: boolean) {
  const bucket = await server.bucket(isLocked);
  const { credentials, endpoint, region } = server.settings;
  const { access_key_id, secret_access_key: text } = credentials;
  const settings = {
    ...{ endpoint, region },
    credentials: { access_key_id, secret_access_key: new Secret(() => text) },
  };
  const location = `s3://${bucket}/some`;
  const env = {
    ...{ AWS_ACCESS_KEY_ID: access_key_id, AWS_SECRET_ACCESS_KEY: text },
    ...{ AWS_REGION: region, AWS_ENDPOINT_URL: endpoint },
  };
  return {
    ...{ bucket, location, given: server.settings, store: await openStore(location, settings) },
    sluice: (...args: readonly string[]) => runSluice(['archive', ...args], { env }),
  };
}

async function versionsOf(Bucket: string, prefix: string): Promise<readonly string[]> {
  const found = await server.client.send(
    new ListObjectVersionsCommand({ Bucket, Prefix: `some/${prefix}` }),
  );
  return [...(found.Versions ?? []), ...(found.DeleteMarkers ?? [])].map(({ Key = '' }) => Key);
}

async function parquetIn(store: ObjectStore): Promise<readonly string[]> {
  const all = await Array.fromAsync(store.list('lake/'));
  return all.map(({ name }) => name).filter((name) => name.endsWith('.parquet'));
}

const erasing = (uid: string) => ['--uid', uid, '--reason', 'request 17', '--yes'];

testSome(1, [
  ['that keeps versions', true],
  ['that keeps none', false],
])(
  `in a bucket of ${name} %s nothing is left of what was erased or pruned`,
  async (_, isLocked) => {
    const { bucket, location, given, store, sluice } = await aPlace(isLocked);
    const pages = heldPages(5);
    const [first = '', second = ''] = uidsOfPages(pages);
    const writer = await aWriter({ store });
    await archived(writer, pages.slice(0, 2));
    const lake = await openSink(lakeSink, {
      ...{ location, every: hourMs, signing_key: aSigningKey() },
      ...given,
    });
    const events = uidsOfPages(pages.slice(0, 2)).map((uid, offset) => anEvent({ offset, uid }));
    const signal = new AbortController().signal;
    await lake.sink.committed?.(signal);
    const [sent] = [lake.sink.send(lake.batch(events), signal), await lake.sink.close()];
    expect(await sent).toEqual({ outcome: 'delivered' });
    await archived(writer, heldPages(1, 15));
    const [object = ''] = await parquetIn(store);

    const erased = await sluice('erase', location, ...erasing(second));
    await archived(writer, pages.slice(2, 3));
    const whole = await sluice('verify', location, '--key', vkey);
    const proven = await sluice('prove', location, '--uid', first);
    const versions = await versionsOf(bucket, 'segments/');
    const lakeVersions = await versionsOf(bucket, object);
    const left = await readUids((await store.read(object))?.body ?? new Uint8Array(0));
    const before = new Date().toISOString();
    const pruned = await sluice('prune', location, '--before', before, '--yes');
    await archived(writer, pages.slice(3, 4));
    await writer.close();
    const verified = await sluice('verify', location, '--key', vkey);

    expect(erased).toMatchObject({ exitCode: 0, stderr: '' });
    expect(whole).toMatchObject({ exitCode: 0, stderr: '' });
    expect(whole.stdout).toContain('request 17');
    expect(proven).toMatchObject({ exitCode: 0, stderr: '' });
    expect(whole.stdout).toContain('went with records that were erased, as entries say: 1');
    expect(versions).toHaveLength(3);
    expect(lakeVersions).toHaveLength(1);
    expect(left.toSorted()).toEqual(
      uidsOfPages(pages.slice(0, 2))
        .filter((uid) => uid !== second)
        .toSorted(),
    );
    expect(pruned.stdout).toContain('3 segments');
    expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await versionsOf(bucket, 'segments/')).toHaveLength(1);
    expect(await versionsOf(bucket, 'prune.json')).toHaveLength(0);
  },
);

test(`in a bucket of ${name} with locks what they keep stays, and is reported with its date`, {
  tags: ['long'],
}, async () => {
  const { bucket, location, store, sluice } = await aPlace(true);
  const lock = { mode: 'COMPLIANCE', retain: hourMs } as const;
  const pages = heldPages(4);
  const [uid = ''] = uidsOfPages(pages);
  const writer = await aWriter({ store: lockedStore(store, lock, systemClock()) });
  await archived(writer, pages.slice(0, 2));
  const until = new Date(Date.now() + hourMs).toISOString().slice(0, 10);

  const erased = await sluice('erase', location, ...erasing(uid));
  const before = new Date().toISOString();
  const pruned = await sluice('prune', location, '--before', before, '--yes');
  await archived(writer, pages.slice(2));
  await writer.close();
  const verified = await sluice('verify', location, '--key', vkey);

  expect(erased).toMatchObject({ exitCode: 1, stdout: '' });
  expect(erased.stderr).toContain(`it is locked (COMPLIANCE) until ${until}`);
  expect(pruned.stdout).toContain(
    `1 segment under a lock: it is locked (COMPLIANCE) until ${until}`,
  );
  expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
  expect(verified.stdout).not.toContain('went, as entries say');
  expect(await versionsOf(bucket, 'segments/')).toHaveLength(2);
});

test(`in a bucket of ${name} with locks a hold is the bucket’s own as well, until it is released`, async () => {
  const { bucket, location, store, sluice } = await aPlace(true);
  const writer = await aWriter({ store });
  await archived(writer, heldPages(2));
  const [uid = ''] = uidsOfPages(heldPages(1));
  const id = ['--id', 'case-1'];
  const [segment = ''] = await versionsOf(bucket, 'segments/');

  const set = await sluice('hold', 'add', location, ...id, '--reason', 'a case');
  const again = await sluice('hold', 'add', location, ...id, '--reason', 'a case');
  await expect(server.destroy(bucket, segment)).rejects.toThrow(/lock|hold|Access ?Denied/i);
  const erased = await sluice('erase', location, ...erasing(uid));
  const released = await sluice('hold', 'release', location, ...id);
  const asked = await sluice('erase', location, ...erasing(uid));
  await archived(writer, heldPages(1, 6));
  await writer.close();
  const verified = await sluice('verify', location, '--key', vkey);

  for (const one of [set, again]) {
    expect(one).toMatchObject({ exitCode: 0, stderr: '' });
    expect(one.stdout).toContain('under a legal hold of the bucket as well: 1 segment');
  }
  expect(erased.stderr).toContain('the hold case-1 keeps a page');
  expect(released.stdout).toContain('lifted from 1 segment');
  expect(asked).toMatchObject({ exitCode: 0, stderr: '' });
  expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
  expect(verified.stdout).toContain('request 17');
});

test(`in a bucket of ${name} a release lifts no lock of another hold whose file was changed or deleted`, {
  tags: ['long'],
}, async () => {
  const { bucket, location, store, sluice } = await aPlace(true);
  const writer = await aWriter({ store, accept_requests: false });
  await archived(writer, heldPages(2));
  const [segment = ''] = await versionsOf(bucket, 'segments/');
  const key = join(tempDir(), 'key');
  const { name: origin } = aSigner().verifier;
  writeFileSync(key, signingKeyText(origin, Buffer.alloc(32, 1)));
  for (const id of ['case-1', 'case-2', 'case-3']) {
    await sluice('hold', 'add', location, '--id', id, '--reason', 'a case');
  }
  await archived(writer, heldPages(1, 6));
  await writer.close();
  const hold = { id: 'case-2', from: null, to: null, reason: 'a case' };
  const times = { placed_at: new Date(0).toISOString(), released_at: new Date().toISOString() };
  await store.put('holds/case-2.json', [encodeHold({ ...hold, ...times })]);
  await store.remove('holds/case-3.json');

  const released = await sluice(
    ...['hold', 'release', location, '--id', 'case-1', '--sign-with', key],
  );

  expect(released).toMatchObject({ exitCode: 0, stderr: '' });
  expect(released.stdout).not.toContain('lifted');
  await expect(server.destroy(bucket, segment)).rejects.toThrow(/lock|hold|Access ?Denied/i);
});
