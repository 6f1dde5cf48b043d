// The real program with a file for each list of 100 companies: killed again and again, each file has each record once, in
// order, and a bounded number of files is open.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSluice } from '../support/cli.ts';
import { configOfMany, startManyCompanies } from '../support/many-companies.ts';
import { afterThisTest, freePort, tempDir, waitUntil } from '../support/temp.ts';

const companies = 100;
const lists = ['web', 'dns'];

test('a program that is killed writes each record once into the file of its company', {
  tags: ['long'],
}, async () => {
  const { upstream, url, close } = await startManyCompanies({ companies, recordEveryMs: 1_000 });
  afterThisTest(close);
  const dir = tempDir('file-companies-');
  const ids = join(dir, 'companies.txt');
  const config = join(dir, 'sluice.yaml');
  writeFileSync(ids, `${upstream.ids.join('\n')}\n`);
  const path = join(dir, 'out/{company}/{source}.ndjson');
  const sink = `{ type: file, path: "${path}", format: { type: json, schema: original } }`;
  writeFileSync(config, configOfMany(dir, url, { ids, every: '4s', page: await freePort(), sink }));
  const files = upstream.ids.flatMap((id) =>
    lists.map((list) => join(dir, 'out', id, `${list}.ndjson`)),
  );
  const lines = (file: string) =>
    existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  let filesMost = 0;

  for (let round = 1; round <= 2; round += 1) {
    const sluice = startSluice(['run', '-c', config]);
    const least = files.map((file) => lines(file).length + 1);
    await waitUntil(
      () => {
        const open = readdirSync(`/proc/${sluice.pid}/fd`).length;
        filesMost = Math.max(filesMost, open);
        return files.every((file, at) => lines(file).length >= (least[at] ?? 0));
      },
      {
        what: () =>
          `a record in each file in round ${round}; ${sluice.stderr.slice(-3).join('\n')}`,
      },
    );
    await sluice.kill('SIGKILL');
  }
  const last = startSluice(['run', '-c', config]);
  const least = files.map((file) => lines(file).length + 1);
  await waitUntil(() => files.every((file, at) => lines(file).length >= (least[at] ?? 0)), {
    what: () => `a record in each file at last; ${last.stderr.slice(-3).join('\n')}`,
  });
  const { exitCode } = await last.kill();

  expect(exitCode).toBe(0);
  for (const file of files) {
    const records = lines(file).map((line) => JSON.parse(line).id);
    const list = file.endsWith('web.ndjson') ? 'web' : 'dns';
    expect(records).toEqual(records.map((_, n) => `${list}-${n}`));
  }
  // Four descriptors for each of 64 files, and those of the rest of the program.
  expect(filesMost).toBeLessThan(64 * 4 + 100);
});
