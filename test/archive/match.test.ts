// A record that was erased: somebody who still has its bytes proves that it was in the archive, and no command shows it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, uidsOfPages } from './a-writer.ts';

test('an erased record is proven by its bytes, and shown no more', async () => {
  const location = join(tempDir(), 'archive');
  const record = join(tempDir(), 'record.json');
  const proof = join(tempDir(), 'record.tlog-proof');
  const store = openDirectory(location);
  const pages = heldPages(3);
  const [, uid = ''] = uidsOfPages(pages);
  const writer = await aWriter({ store });
  await archived(writer, pages.slice(0, 2));
  const before = await runHere(['archive', 'prove', location, '--uid', uid, '--record', record]);
  const at = pages[0]?.context.fetchedAt ?? 0;
  const span = { from: timeText(at), to: timeText(at + 1) };
  const request = { uid, reason: 'r', asked_at: timeText(Date.now()), ...span };
  await store.put(requestPath(uid), [encodeRequest(request)]);
  await archived(writer, pages.slice(2));
  await writer.close();

  const byUid = await runHere(['archive', 'prove', location, '--uid', uid]);
  const byBytes = await runHere(['archive', 'prove', location, '--match', record]);
  writeFileSync(proof, byBytes.stdout);
  const vkey = aSigner().verifier.vkey;
  const checked = await runHere([
    ...['archive', 'check-proof', proof, '--record', record, '--key', vkey],
  ]);
  const raw = await runSluice(['archive', 'search', location, '--raw']);

  expect(before.exitCode).toBe(0);
  expect(byUid).toMatchObject({ exitCode: 1, stdout: '' });
  expect(byUid.stderr).toContain('the record was erased');
  expect(byBytes.exitCode).toBe(0);
  expect(checked).toMatchObject({ exitCode: 0, stderr: '' });
  const ids = raw.stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line).id);
  expect(ids).toEqual(['0', '2', '3', '4', '5', '6', '7', '8']);
});
