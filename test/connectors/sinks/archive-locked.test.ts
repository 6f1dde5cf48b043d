// An archive in a bucket with Object Lock, written by the program at a real server: what proves something cannot be deleted,
// what others follow can, and a bucket without locks gets nothing.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { runHere, runOnceHere, runSluice, startSluice } from '../../support/cli.ts';
import { anEdge } from '../../support/edge.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../../support/s3.ts';
import { s3ServerName } from '../../support/s3-program.ts';
import { tempDir } from '../../support/temp.ts';

const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

async function anArchive(bucket: string) {
  const dir = tempDir();
  const { upstreams, env } = await anEdge(300);
  const { stdout } = await runHere(['archive', 'keys', 'new', join(dir, 'key')]);
  const { access_key_id: id, secret_access_key: secret } = server.settings.credentials;
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s }
sinks:
  proof:
    type: archive
    location: s3://${bucket}/some
    endpoint: "${server.endpoint}"
    credentials: { access_key_id: ${id}, secret_access_key: ${secret} }
    signing_key: \${file:${dir}/key}
    object_lock: { mode: COMPLIANCE, retain: 1h }
`,
  );
  const vkey = stdout.trim().split('\n').at(-1) ?? '';
  return { config, env, vkey, keys: { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } };
}

describe(`an archive in a bucket of ${name}`, () => {
  test('with Object Lock keeps proofs from being deleted', async () => {
    const bucket = await server.bucket(true);
    const { config, env, vkey, keys } = await anArchive(bucket);

    expect(await runHere(['check', '-c', config, '--connect'], env)).toMatchObject({ exitCode: 0 });
    expect(await runOnceHere(config, env)).toMatchObject({ exitCode: 0 });

    const names = [...(await server.objects(bucket)).keys()];
    const segment = names.find((object) => object.includes('/segments/')) ?? '';
    const note = names.find((object) => object.includes('/checkpoints/')) ?? '';
    const edge = names.find((object) => object.includes('.p/')) ?? '';
    for (const object of [segment, note]) {
      await expect(server.destroy(bucket, object)).rejects.toThrow(/lock|Access ?Denied/i);
    }
    const verified = await runSluice(['archive', 'verify', `s3://${bucket}/some`, '--key', vkey], {
      env: { ...keys, AWS_ENDPOINT_URL: server.endpoint, AWS_REGION: 'us-east-1' },
    });
    expect(verified).toMatchObject({ exitCode: 0 });
    await server.destroy(bucket, 'some/checkpoint');
    await server.destroy(bucket, edge);
  });

  test('without Object Lock gets nothing, and says why', async () => {
    const bucket = await server.bucket();
    const { config, env } = await anArchive(bucket);

    const checked = await runHere(['check', '-c', config, '--connect'], env);
    await startSluice(['run', '-c', config], { env }).waitForLine('has no Object Lock');

    expect(checked).toMatchObject({
      exitCode: 3,
      stdout: expect.stringMatching(/has no Object Lock/),
    });
    expect(await server.objects(bucket)).toHaveProperty('size', 0);
  });
});
