// An archive in a bucket, read by the program as an auditor would: with credentials from the environment.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runSluice } from '../support/cli.ts';
import { s3BuildMsMax, sharedS3 } from '../support/s3.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, uidsOfPages } from './a-writer.ts';

test('a bucket is verified, proven from and exported; missing objects are reported', {
  timeout: s3BuildMsMax,
}, async () => {
  const server = await sharedS3();
  const { env } = server;
  const bucket = await server.bucket();
  const location = `s3://${bucket}/audit/2026`;
  const dir = tempDir();
  const key = ['--key', aSigner().verifier.vkey];
  const pages = heldPages(300);
  const writer = await aWriter({ store: await server.store(bucket, 'audit/2026') });
  await archived(writer, pages.slice(0, 200));
  await archived(writer, pages.slice(200));
  await writer.close();

  const sluice = (...args: readonly string[]) => runSluice(['archive', ...args], { env });
  const whole = await sluice('verify', location, ...key);
  const [uid = ''] = uidsOfPages(pages).slice(-1);
  const record = join(dir, 'record.json');
  const proven = await sluice('prove', location, '--uid', uid, '--record', record);
  writeFileSync(join(dir, 'proof'), proven.stdout);
  const checked = await sluice('check-proof', join(dir, 'proof'), '--record', record, ...key);
  const span = ['--from', '2000-01-01T00:00:00Z', '--to', '2100-01-01T00:00:00Z'];
  const exported = await sluice('export', location, ...span, '--out', join(dir, 'out'));
  const copy = await sluice('verify', join(dir, 'out'), ...key);
  const segments = await server.objects(bucket, 'audit/2026/segments/');
  const [gone = ''] = [...segments.keys()];
  await server.destroy(bucket, gone);
  const broken = await sluice('verify', location, ...key, '--json');
  const nothing = await sluice('verify', `s3://${bucket}/other`, ...key);

  expect(whole).toMatchObject({ exitCode: 0, stderr: '' });
  expect(whole.stdout).toContain(`archive archive.test in s3://${bucket}/audit/2026`);
  expect(checked).toMatchObject({ exitCode: 0, stderr: '' });
  expect(exported).toMatchObject({ exitCode: 0, stderr: '' });
  expect(copy).toMatchObject({ exitCode: 0 });
  expect(broken.exitCode).toBe(1);
  expect(
    new Set(JSON.parse(broken.stdout).breaks.map(({ object }: { object: string }) => object)),
  ).toEqual(new Set([gone.replace('audit/2026/', '')]));
  expect(nothing.exitCode).toBe(2);
});
