// Attacks on the seams of an archive, from docs/archive alone, by somebody with write access and without a key: the entry
// of a cutover, the first entries of a log that continues a moved one, and files beside checkpoints. The attack comes
// between two runs of the writer. Each ends in a writer that refuses, in a break, or in an archive that has exactly what
// upstream sent, with the true seam.

import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { openDirectory } from '../../src/objects/directory.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, uidsOfPages } from './a-writer.ts';
import { type SeamArchive, seamArchive, seamAttacks } from './seam-attacks.ts';

const { vkey } = aSigner().verifier;
let { before, place, state, uids }: SeamArchive = {
  ...{ before: '', place: '', state: { mark: null }, uids: [] },
};

beforeAll(async () => {
  ({ before, place, state, uids } = await seamArchive());
});

describe.each([
  ['with the state of its writer', false],
  ['with a state that is lost', true],
])('%s', (_, isLost) => {
  test.each(Object.entries(seamAttacks))('%s', async (__, attack) => {
    const at = join(tempDir(), 'archive');
    cpSync(place, at, { recursive: true });
    attack(at, before);
    const mark = isLost ? null : JSON.parse(JSON.stringify(state.mark).replaceAll(place, at));
    const added: string[] = [];
    try {
      const writer = await aWriter({
        ...{ store: openDirectory(at), state: { mark } },
        ...(isLost && { spool: 'spool-2' }),
      });
      const pages = heldPages(2, 22, 'new');
      await archived(writer, pages);
      added.push(...uidsOfPages(pages));
      await writer.close();
    } catch (error) {
      expect(error).toMatchObject({ code: expect.any(String) });
    }
    const list = join(tempDir(), 'uids.txt');
    writeFileSync(list, [...uids, ...added].join('\n'));

    const { exitCode, stdout } = await runHere(['archive', 'verify', at, '--key', vkey, '--json']);

    expect(stdout).not.toContain('a fault in sluice');
    if (exitCode === 1 || exitCode === 2) return;
    const compared = await runHere(['archive', 'reconcile', at, '--key', vkey, '--uids', list]);
    expect(compared, stdout).toMatchObject({ exitCode: 0 });
    const { successions, remarks } = JSON.parse(stdout);
    expect(successions).toMatchObject([
      { predecessor: 'old', successor: 'new', phase: 'cut_over', matched: 9 },
    ]);
    expect(remarks.join('\n')).toContain('old continues at its page 2 from the archive');
  });
});

test('the earlier archive restored: the writer refuses, and a kept checkpoint shows it', async () => {
  const at = join(tempDir(), 'archive');
  cpSync(before, at, { recursive: true });
  const mark = JSON.parse(JSON.stringify(state.mark).replaceAll(place, at));

  await expect(aWriter({ store: openDirectory(at), state: { mark } })).rejects.toMatchObject({
    code: 'sink_refused',
    message: expect.stringContaining(
      'it is another archive than the one that this state has written',
    ),
  });
  const since = ['--since', join(place, 'checkpoint')];
  const judged = await runHere(['archive', 'verify', at, '--key', vkey, ...since]);

  expect(judged.exitCode).toBe(1);
});
