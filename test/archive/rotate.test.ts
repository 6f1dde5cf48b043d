// An archive whose key is rotated: a verifier that trusts either key verifies all of the archive, and a rotation that
// was killed at any step is finished when it is run again.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ArchiveLogSettings } from '../../src/archive/recovery.ts';
import { rotateKey } from '../../src/archive/rotate.ts';
import type { Json } from '../../src/contracts/json.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { aSetup } from '../commands/a-setup.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import {
  archived,
  aSigner,
  aWriter,
  heldPages,
  type Kill,
  Killed,
  mortal,
  readArchive,
  type State,
  uidsOfPages,
} from './a-writer.ts';

const [old, next] = [aSigner('archive.test', 1), aSigner('archive.test', 2)];
const pages = heldPages(9);

const auditPath = '/v1/audit/events';

/** An archive with some pages, closed as it should be. */
async function written(dir: string, state: State): Promise<void> {
  const writer = await aWriter({ store: openDirectory(dir), state });
  await archived(writer, pages.slice(0, 3));
  await writer.close();
}

function settings(store: ObjectStore, state: State): ArchiveLogSettings {
  return {
    ...{ store, clock: systemClock(), signer: old, spool: 'spool-1', staleMs: 30_000 },
    mark: state.mark,
    async remember(mark) {
      state.mark = structuredClone(mark) as Json;
    },
  };
}

async function goesOn(dir: string, state: State): Promise<void> {
  const writer = await aWriter({ store: openDirectory(dir), state, signer: next });
  await archived(writer, pages.slice(3));
  await writer.close();
}

describe('a rotation', () => {
  test('leaves an archive that either key verifies, and that only the new one writes', async () => {
    const [dir, state] = [tempDir(), { mark: null }];
    await written(dir, state);

    await rotateKey(settings(openDirectory(dir), state), next);
    await expect(aWriter({ store: openDirectory(dir), state })).rejects.toThrow(
      'the signing key another',
    );
    await goesOn(dir, state);

    for (const signer of [old, next]) {
      const args = ['archive', 'verify', dir, '--key', signer.verifier.vkey];
      expect(await runHere(args)).toMatchObject({ exitCode: 0 });
    }
    expect((await readArchive(dir, next)).uids).toEqual(uidsOfPages(pages));
  });

  test('killed at each change of the store, it is finished by another one', async () => {
    for (const when of ['before', 'after'] as const) {
      for (let left = 1; ; left += 1) {
        const [dir, state] = [tempDir(), { mark: null } as State];
        await written(dir, state);
        const kill: Kill = { left, when, isDead: false };
        const error = await rotateKey(settings(mortal(openDirectory(dir), kill), state), next).then(
          () => null,
          (error: unknown) => error,
        );
        if (error !== null) {
          expect(error).toBeInstanceOf(Killed);
          await rotateKey(settings(openDirectory(dir), state), next);
        }
        await goesOn(dir, state);
        const { entries, uids } = await readArchive(dir, next);
        const args = ['archive', 'verify', dir, '--key', old.verifier.vkey];
        const { exitCode, stdout } = await runHere(args);

        expect([left, exitCode, exitCode === 0 ? '' : stdout]).toEqual([left, 0, '']);
        expect(entries.filter(({ t }) => t === 'key')).toHaveLength(1);
        expect(uids).toEqual(uidsOfPages(pages));
        if (error === null) break;
        expect(left).toBeLessThan(20);
      }
    }
  });

  test('is refused to a key of another name, is not needed where nothing is signed, and restores a checkpoint that is gone', async () => {
    const [dir, empty, state] = [tempDir(), tempDir(), { mark: null }];
    await written(dir, state);

    const other = rotateKey(settings(openDirectory(dir), state), aSigner('other.test', 2));
    await expect(other).rejects.toThrow('the new key is one of other.test');
    expect(await rotateKey(settings(openDirectory(empty), { mark: null }), next)).toBeNull();
    rmSync(join(dir, 'checkpoint'));
    expect(await rotateKey(settings(openDirectory(dir), state), next)).toBeGreaterThan(0);
  });
});

test('sluice archive keys rotate, between two runs', async () => {
  const dir = tempDir();
  const [first, second] = [join(dir, 'first.key'), join(dir, 'second.key')];
  const made = await runHere(['archive', 'keys', 'new', first]);
  await runHere(['archive', 'keys', 'new', second]);
  const location = join(dir, 'archive');
  const { config, sandbox } = await aSetup({
    sinks: [`  proof: { type: archive, location: ${location}, signing_key: "\${file:${first}}" }`],
  });
  const run = ['run', '-c', config, '--once'];
  const rotate = ['archive', 'keys', 'rotate', '-c', config, '--to', second];

  const early = await runHere(rotate);
  expect(await runSluice(run)).toMatchObject({ exitCode: 0 });
  const rotated = await runHere(rotate);
  sandbox.control.grow(auditPath, 5);
  const refused = await runSluice([...run, '--timeout', '2s']);
  writeFileSync(config, readFileSync(config, 'utf8').replace(first, second));
  expect(await runSluice(run)).toMatchObject({ exitCode: 0 });

  expect(early).toMatchObject({ exitCode: 64, stdout: '' });
  expect(rotated).toMatchObject({ exitCode: 0 });
  expect(refused.exitCode).not.toBe(0);
  for (const vkey of [made.stdout.trim(), rotated.stdout.trim()]) {
    const verified = await runHere(['archive', 'verify', location, '--key', vkey]);
    expect(verified).toMatchObject({ exitCode: 0 });
  }
});
