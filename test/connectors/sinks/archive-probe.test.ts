// `check --connect` of an archive: every cause that would fail the first write is reported before, at a real S3 server,
// a real time stamp authority and a real witness, and nothing is left there.

import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { archiveSink } from '../../../connectors/sinks/archive.ts';
import { signingKeyText } from '../../../src/archive/note.ts';
import type { Json } from '../../../src/contracts/json.ts';
import { aSigner } from '../../archive/a-writer.ts';
import { sent } from '../../archive/anchored.ts';
import { aSetup } from '../../commands/a-setup.ts';
import { startWitness } from '../../support/archive/oracles.ts';
import { startTimeStampAuthority } from '../../support/archive/time-stamp-authority.ts';
import { runHere, runOnceHere } from '../../support/cli.ts';
import { startHttpReceiver } from '../../support/http-receiver.ts';
import { s3BuildMsMax, sharedS3 } from '../../support/s3.ts';
import { s3ServerName } from '../../support/s3-program.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';

const never = new AbortController().signal;
const signing_key = signingKeyText('archive.test', Buffer.alloc(32, 1));

function probe(config: Readonly<Record<string, unknown>>, mark: Json | null = null) {
  const settings = parseSettings(archiveSink, { signing_key, ...config });
  return archiveSink.probe(settings, testTools(), never, mark);
}

/** An archive with some events, and what its sink has had remembered. */
async function written(config: Readonly<Record<string, unknown>>, first = 0) {
  const state: { mark: Json | null } = { mark: null };
  const remember = async (mark: Json) => {
    state.mark = mark;
  };
  const { sink, batch } = await openSink(archiveSink, { signing_key, ...config }, { remember });
  await sent(sink, batch(someEvents(2, first)));
  await sink.close();
  return state;
}

test('witnesses of checkpoints are contacted, before there is one and after', async (context) => {
  const tsa = await startTimeStampAuthority();
  const other = await startTimeStampAuthority();
  const witness = await startWitness(context, { log: aSigner().verifier.vkey });
  const stranger = await startWitness(context, { log: aSigner('other.test').verifier.vkey });
  const nonsense = await startHttpReceiver({
    answer: () => ({ answer: 'reply', status: 200, body: '<html>' }),
  });
  const location = join(tempDir(), 'archive');
  const asked = (stamps: object, sees: object) =>
    probe({
      location,
      tsa: { url: tsa.url, ca_file: tsa.caFile, ...stamps },
      witnesses: [{ url: witness.url, key: witness.vkey, ...sees }],
    });
  const flawed = [
    [{ ca_file: other.caFile }, {}, /time-stamp authority .*(trusted|lead|authorit)/],
    [{ url: nonsense.url }, {}, /time-stamp authority/],
    [{ url: 'http://127.0.0.1:1/' }, {}, /time-stamp authority/],
    [{}, { url: stranger.url }, /witness .* does not know this log \(404\)/],
    [{}, { url: nonsense.url }, /requesting a cosignature from the witness/],
    [{}, { url: 'http://127.0.0.1:1/' }, /requesting a cosignature from the witness/],
    [
      { url: nonsense.url },
      { url: nonsense.url },
      /authority .*; requesting a cosignature from the witness/,
    ],
  ] as const;

  for (const isWritten of [false, true]) {
    if (isWritten) await written({ location });
    await asked({}, {});
    for (const [stamps, sees, text] of flawed) {
      await expect(asked(stamps, sees), `${text}`).rejects.toThrow(text);
    }
  }
  await expect(asked({}, { key: stranger.vkey })).rejects.toThrow(/no signature of its key/);
});

test('the archive is compared with the state’s last known size', async () => {
  const dir = tempDir();
  const location = join(dir, 'archive');
  await probe({ location });
  expect(readdirSync(dir)).toEqual([]);
  const { mark: older } = await written({ location });
  cpSync(location, join(dir, 'older'), { recursive: true });
  const { mark } = await written({ location }, 2);
  const replacedBy = async (other: string) => {
    rmSync(location, { recursive: true, force: true });
    cpSync(join(dir, other), location, { recursive: true });
  };
  cpSync(location, join(dir, 'kept'), { recursive: true });
  await written({ location: join(dir, 'second') });

  await probe({ location }, mark);
  await probe({ location }, older);
  renameSync(location, join(dir, 'away'));
  await expect(probe({ location }, mark)).rejects.toThrow('it is gone: archive.json is not');
  await replacedBy('older');
  await expect(probe({ location }, mark)).rejects.toThrow('an older copy was put back');
  await replacedBy('second');
  await expect(probe({ location }, mark)).rejects.toThrow('it is another archive than the one');
  await probe({ location });
  await replacedBy('kept');
  const manifest = join(location, 'archive.json');
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"version": 1', '"version": 2'));
  await expect(probe({ location })).rejects.toThrow('the archive has format 2');
});

test('the program says that an archive is gone which its state has written, and that another state’s is at work', async () => {
  const dir = tempDir();
  writeFileSync(join(dir, 'key'), signing_key);
  const sinks = [
    `  proof: { type: archive, location: ${dir}/archive, signing_key: "\${file:${dir}/key}" }`,
  ];
  const { config } = await aSetup({ sinks });
  const asked = () => runHere(['check', '-c', config, '--connect']);

  const before = await asked();
  const run = await runOnceHere(config);
  const after = await asked();
  const writer = join(dir, 'archive', 'writer');
  const ended = readFileSync(writer, 'utf8');
  const atWork = { ...JSON.parse(ended), renewed_at: new Date().toISOString() };
  writeFileSync(writer, JSON.stringify(atWork));
  const own = await asked();
  const { config: another } = await aSetup({ sinks });
  const others = await runHere(['check', '-c', another, '--connect']);
  rmSync(join(dir, 'archive'), { recursive: true });
  const gone = await asked();

  expect([before, run, after, own].map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0]);
  expect(others).toMatchObject({
    exitCode: 3,
    stdout: expect.stringMatching(/FAIL +sink proof: connection: .*another process writes to it/),
  });
  expect(gone).toMatchObject({
    exitCode: 3,
    stdout: expect.stringMatching(/FAIL +sink proof: connection: .*it is gone/),
  });
  expect(readdirSync(dir)).toEqual(['key']);
});

const name = await s3ServerName();

describe(`a bucket of ${name}`, () => {
  beforeAll(async () => void (await sharedS3()), s3BuildMsMax);

  test.skipIf(name === 'moto')(
    'that may not be written, or not be emptied, is refused',
    async () => {
      const server = await sharedS3();
      const [reads, removes] = [['ListBucket', 'GetObject'], 'DeleteObject'];
      const asked = async (actions: readonly string[], more: object = {}) => {
        const bucket = await server.bucket();
        const credentials = await server.whoMay(bucket, actions);
        const location = `s3://${bucket}/some`;
        try {
          await probe({ ...server.settings, credentials, location, ...more });
        } finally {
          expect((await server.objects(bucket)).size).toBe(0);
        }
      };
      const keep = { keep: { bodies: '30d' } };

      await asked([...reads, 'PutObject']);
      await asked([...reads, 'PutObject', removes], keep);
      await expect(asked(reads)).rejects.toMatchObject({
        code: 'sink_refused',
        message: expect.stringMatching(/writing check in s3:.*403/),
      });
      await expect(asked([...reads, 'PutObject'], keep)).rejects.toMatchObject({
        code: 'sink_refused',
        message: expect.stringMatching(/removing check in s3:.*403/),
        next: expect.stringContaining('s3:DeleteObject'),
      });
    },
  );

  test('with versions is left as it was', async () => {
    const server = await sharedS3();
    const bucket = await server.bucket(true);
    const location = `s3://${bucket}/some`;

    await probe({ ...server.settings, location, keep: { bodies: '30d' } });

    expect(await server.versions(bucket)).toBe(0);
  });

  test('of a service without conditional writes is refused, and the probe’s objects are removed', async () => {
    const { settings } = await sharedS3();
    const none = {
      answer: 'reply',
      status: 404,
      body: '<Error><Code>NoSuchKey</Code></Error>',
    } as const;
    const careless = await startHttpReceiver({
      answer: ({ method, path }) =>
        path.includes('list-type=2')
          ? {
              answer: 'reply',
              status: 200,
              body: '<ListBucketResult><Name>bucket</Name></ListBucketResult>',
            }
          : method === 'PUT'
            ? { answer: 'reply', status: 200, headers: { etag: '"1"' } }
            : method === 'DELETE'
              ? { answer: 'reply', status: 204 }
              : none,
    });

    const probed = probe({ ...settings, endpoint: careless.url, location: 's3://bucket/some' });

    await expect(probed).rejects.toThrow(/also where its condition does not hold/);
    const changed = careless.requests.filter(({ method }) => method !== 'GET' && method !== 'HEAD');
    expect(changed.map(({ method, path }) => `${method} ${path.split('?')[0]}`)).toEqual([
      'PUT /bucket/some/check',
      'DELETE /bucket/some/check',
    ]);
  });
});
