// A file in checkpoints/ that is newer by its name than the newest checkpoint: the writer signs nothing beside it. The
// message names the file, and says whether the key has signed it.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkArchive } from '../../src/archive/recovery.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, type State } from './a-writer.ts';

let place = '';
const state: State = { mark: null };

beforeAll(async () => {
  place = join(tempDir(), 'archive');
  const writer = await aWriter({ store: openDirectory(place), state });
  for (let i = 0; i < 3; i += 1) await archived(writer, heldPages(1, i * 3));
  await writer.close();
});

/** A copy of the archive, and the day under checkpoints/ that has its newest one. */
function copied() {
  const at = join(tempDir(), 'archive');
  cpSync(place, at, { recursive: true });
  const days = readdirSync(join(at, 'checkpoints'), { recursive: true, withFileTypes: true });
  const [note] = days.filter((one) => one.isFile()).toSorted((a, b) => (a.name < b.name ? 1 : -1));
  return {
    at,
    day: note?.parentPath ?? '',
    newest: join(note?.parentPath ?? '', note?.name ?? ''),
  };
}

const planted = (size: number) => `${String(size).padStart(20, '0')}.note`;
const mark = (at: string) => JSON.parse(JSON.stringify(state.mark).replaceAll(place, at));

const plants: Readonly<Record<string, (path: string, newest: string) => void>> = {
  'nothing signed': (path) => writeFileSync(path, 'archive.test\n999\nAAAA\n\n— x AAAA\n'),
  'an empty file': (path) => writeFileSync(path, ''),
  'a signed checkpoint of another size': (path, newest) => cpSync(newest, path),
  'a checkpoint that another key has signed': (path, newest) =>
    writeFileSync(path, readFileSync(newest, 'utf8').replace(/\n— (\S+) ..../, '\n— $1 AAAA')),
};

describe.each([
  ['with the state of its writer', false],
  ['with a state that is lost', true],
])('%s', (_, isLost) => {
  test.each(Object.entries(plants))('%s is no newer checkpoint', async (__, plant) => {
    const { at, day, newest } = copied();
    plant(join(day, planted(999)), newest);
    const own = { store: openDirectory(at), state: { mark: isLost ? null : mark(at) } };

    await expect(aWriter(own)).rejects.toMatchObject({
      code: 'sink_refused',
      message: expect.stringMatching(
        /checkpoints\/\S+999\.note is newer by its name .* key has not signed it/,
      ),
      next: expect.stringMatching(
        /verify --since.*move checkpoints\/\S+999\.note out of the archive/,
      ),
    });

    const { exitCode, stdout } = await runHere([
      ...['archive', 'verify', at, '--key', aSigner().verifier.vkey],
    ]);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/checkpoints\/\S+999\.note/);
    // The next step of the message works.
    rmSync(join(day, planted(999)));
    const writer = await aWriter(own);
    await archived(writer, heldPages(1, isLost ? 0 : 9));
    await writer.close();
  });
});

test('a true newer checkpoint is the one that is named, also beside a planted one', async () => {
  const { at, day, newest } = copied();
  writeFileSync(join(day, planted(999)), 'x');
  const older = readdirSync(day)
    .filter((name) => name.endsWith('.note'))
    .toSorted()[0];
  cpSync(join(day, older ?? ''), join(at, 'checkpoint'));

  await expect(aWriter({ store: openDirectory(at), state: { mark: null } })).rejects.toMatchObject({
    message: expect.stringContaining('were signed: it is gone, or an older one was put back'),
    next: expect.stringContaining(`Copy ${newest.slice(at.length + 1)} to checkpoint`),
  });
});

test('a check beside a process that signs reads again, and one beside a checkpoint that was put back does not pass', async () => {
  const { at, day, newest } = copied();
  const older = join(day, readdirSync(day).toSorted()[0] ?? '');
  const store = openDirectory(at);
  const check = (of: typeof store) => {
    cpSync(older, join(at, 'checkpoint'));
    const asked = { store: of, signer: aSigner(), mark: null, shard: undefined };
    return checkArchive({ ...asked, configured: at, staleMs: 1_000 }, Date.now());
  };
  const signs: typeof store.list = (...of) => {
    cpSync(newest, join(at, 'checkpoint'));
    return store.list(...of);
  };
  const beside = new Proxy(store, {
    get(of, name) {
      const found = Reflect.get(of, name);
      if (name === 'list') return signs;
      return typeof found === 'function' ? found.bind(of) : found;
    },
  });

  expect((await check(beside)).newest).not.toBeNull();
  await expect(check(store)).rejects.toMatchObject({
    message: expect.stringContaining('an older one was put back'),
  });
});

test('a directory at the path of a checkpoint file is no checkpoint', async () => {
  const { at, day } = copied();
  mkdirSync(join(day, planted(999)));

  const writer = await aWriter({ store: openDirectory(at), state: { mark: mark(at) } });
  await archived(writer, heldPages(1, 9));
  await writer.close();
});
