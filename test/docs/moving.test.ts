// docs/moving.md as its reader runs it: from an API that ends to its successor while sluice runs, with the differences reported
// beforehand. At the end each record of the sandbox's ledger is at the sink once, and the archive is whole.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Block, blocksOf, pages } from '../../docs/generate/page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { aReader, follow } from './a-reader.ts';

const audit = /^(audit|audit_next)$/;

test('docs/moving.md, from the first read of the old API to the seam in the archive', async () => {
  const page = pages().find(({ path }) => path === 'moving.md');
  const blocks: readonly Block[] = page === undefined ? [] : blocksOf(page);
  const reader = await aReader(tempDir('reader-'));
  reader.copy('config/moving.yaml');
  const events = () =>
    readFileSync(join(reader.dir, 'out', 'moving.ndjson'), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).metadata);
  const control = (path: string, method = 'GET') =>
    fetch(`http://127.0.0.1:${reader.portOf('18080')}/_sandbox/${path}`, { method });

  await follow(
    reader,
    blocks.filter(({ info }) => info === 'sh'),
  );
  await control('rate?per_s=0', 'POST');
  const all = (await (await control('ledger/ids?path=/v1/audit/events')).text()).trim().split('\n');
  const idsOf = () =>
    events().flatMap(({ log_name: name, original_event_uid: id }) =>
      audit.test(name) ? [id] : [],
    );
  await waitUntil(() => new Set(all).difference(new Set(idsOf())).size === 0, {
    what: () => `every record; ${new Set(all).difference(new Set(idsOf())).size} are missing`,
  });

  const ids = idsOf();
  const repeated = ids.filter((id, at) => ids.indexOf(id) !== at);
  const twice = events().filter(({ original_event_uid: id }) => repeated.includes(id));
  expect(twice.map(({ log_name, original_event_uid: id }) => [log_name, id])).toEqual([]);
  expect(new Set(events().map(({ log_name: name }) => name))).toContain('audit_next');
  const { said } = reader;
  const differences = readFileSync(join(reader.dir, 'differences.yaml'), 'utf8');
  const [missing, differing, early] = Array.from(
    differences.matchAll(/\[(?:\{ id: )?(\d+)/g),
    ([, id]) => id,
  );
  // On a busy machine a record that one side shows late may stand before these.
  expect(said).toMatch(new RegExp(`only in audit, such as .*\\b${missing}\\b`));
  expect(said).toMatch(new RegExp(`only in audit_next, such as .*\\b${early}\\b`));
  expect(said).toMatch(new RegExp(`a field that differs, such as .*\\b${differing}\\b`));
  expect(said).toContain('field outcome differs in 1 records');
  expect(said).toMatch(/exit code 1/);
  expect(said).toContain('audit_next delivers from now on');
  expect(said).toContain('whole: nothing is missing, altered or out of order');
});
