// Attacks that docs/archive.md suggests to somebody who can write to the store and has no key, before the writer runs on.
// Each ends in a writer that refuses, in a break, or in an archive that has exactly what upstream sent.

import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { encodeWish, prunePath } from '../../src/archive/retention.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, type State, uidsOfPages } from './a-writer.ts';
import { type FullArchive, fullArchive } from './full-archive.ts';

const key = ['--key', aSigner().verifier.vkey];
const tomorrow = Date.now() + 86_400_000;
let full: FullArchive;
/** Entries that the log has before the attack, and the day on which the writer runs on. */
let size = 0;
const today = timeText(Date.now()).slice(0, 10).replaceAll('-', '/');

beforeAll(async () => {
  full = await fullArchive();
  size = Number(readFileSync(join(full.place, 'checkpoint'), 'utf8').split('\n')[1]);
});

const put = (place: string, name: string, bytes: string | Uint8Array) => {
  mkdirSync(dirname(join(place, name)), { recursive: true });
  writeFileSync(join(place, name), bytes);
};
const prune = (place: string) => put(place, prunePath, encodeWish(tomorrow, Date.now()));
const digits = (number: number) => String(number).padStart(20, '0');
const bundle = (place: string) =>
  join(
    place,
    'tile/entries/000.p',
    String(Math.max(...readdirSync(join(place, 'tile/entries/000.p')).map(Number))),
  );
const inBundle = (place: string, from: RegExp, to: string) => {
  const text = readFileSync(bundle(place), 'latin1').replaceAll(from, to);
  writeFileSync(bundle(place), text, 'latin1');
};
const older = (place: string) => {
  const day = join(place, 'checkpoints', today);
  const [name = ''] = readdirSync(day).toSorted();
  return join(day, name);
};
const erasure = (more: object) => {
  const [uid = ''] = full.uids.slice(-1);
  const wish = { uid, reason: 'r', asked_at: timeText(Date.now()), ...more };
  return { name: requestPath(uid), bytes: encodeRequest(wish) };
};

const attacks: Readonly<Record<string, (place: string) => void>> = {
  'an unsigned prune': prune,
  'an unsigned erasure': (place) => put(place, erasure({}).name, erasure({}).bytes),
  'an erasure that names another archive’s signature': (place) =>
    put(
      place,
      erasure({}).name,
      erasure({ signed: readFileSync(join(place, 'checkpoint'), 'utf8') }).bytes,
    ),
  'a request in the place of another uid': (place) =>
    put(place, `erase/${'0'.repeat(64)}.json`, erasure({}).bytes),
  'a directory in the place of a request': (place) =>
    mkdirSync(join(place, `erase/${'0'.repeat(64)}.json`), { recursive: true }),
  'a pipe in the place of a request': (place) => spawnSync('mkfifo', [join(place, prunePath)]),
  'the hold over another span, and a prune': (place) => {
    const file = join(place, 'holds/case-1.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"from": ?"20/, '"from":"19'));
    prune(place);
  },
  'the hold gone, and a prune': (place) => {
    rmSync(join(place, 'holds'), { recursive: true });
    prune(place);
  },
  'the hold released without a signature, and a prune': (place) => {
    const file = join(place, 'holds/case-1.json');
    const text = readFileSync(file, 'utf8');
    writeFileSync(
      file,
      text.replace(/"released_at": ?null/, `"released_at":"${timeText(Date.now())}"`),
    );
    prune(place);
  },
  'pages that were read in 1990, and a prune': (place) => {
    inBundle(place, /("fetched_at":")20/g, '$119');
    prune(place);
  },
  'archive.json that accepts requests': (place) => {
    const file = join(place, 'archive.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace('{', '{ "requests": "accepted",'));
    prune(place);
  },
  'another salt of cursors': (place) => {
    const file = join(place, 'archive.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/("salt": ?")../, '$1ff'));
  },
  'an older checkpoint': (place) => cpSync(older(place), join(place, 'checkpoint')),
  'no checkpoint': (place) => rmSync(join(place, 'checkpoint')),
  'no entries': (place) => rmSync(join(place, 'tile/entries'), { recursive: true }),
  'no hashes of the tree': (place) => rmSync(join(place, 'tile/0'), { recursive: true }),
  'another kind of entry': (place) => inBundle(place, /"t":"pruned"/g, '"t":"prunex"'),
  'a wider bundle of entries': (place) =>
    put(
      place,
      `tile/entries/000.p/${size + 5}`,
      Buffer.concat([readFileSync(bundle(place)), Buffer.from('\0\x02{}'.repeat(5))]),
    ),
  'a segment in the place of the next': (place) =>
    put(place, `segments/${today}/${digits(size + 1)}.zst`, 'a forged segment'),
  'segments in the place of all that may come': (place) => {
    for (let i = 0; i < 30; i += 1) put(place, `segments/${today}/${digits(size + i)}.zst`, 'x');
  },
  'older checkpoints in the place of all that may come': (place) => {
    for (let i = 0; i < 30; i += 1)
      put(place, `checkpoints/${today}/${digits(size + i)}.note`, 'x');
  },
  'tiles in the place of all that may come': (place) => {
    for (let i = 1; i < 30; i += 1) {
      put(place, `tile/entries/000.p/${size + i}`, '\0\x02{}'.repeat(size + i));
      put(place, `tile/0/000.p/${size + i}`, Buffer.alloc(32 * (size + i)));
    }
  },
  'an unsigned cut of the lake': (place) => {
    const cuts = join(place, 'lake/cuts');
    const [year = ''] = readdirSync(cuts);
    const name = readdirSync(join(cuts, year), { recursive: true, encoding: 'utf8' })
      .filter((one) => one.endsWith('.cut'))
      .at(-1);
    put(
      place,
      `lake/cuts/${today}/9999999999999-0000000000000999.cut`,
      readFileSync(join(cuts, year, name ?? '')),
    );
  },
  'a file in the place of the lake': (place) => {
    rmSync(join(place, 'lake'), { recursive: true });
    put(place, 'lake', 'x');
  },
  'a manifest of a day that is not over': (place) =>
    put(place, `manifests/audit/${today.replaceAll('/', '-')}.json`, '{"pages":9}'),
  'a link to an empty directory in the place of the segments': (place) => {
    rmSync(join(place, 'segments'), { recursive: true });
    symlinkSync(tempDir(), join(place, 'segments'));
  },
  'another writer that never ends': (place) =>
    put(place, 'writer', '{"by":"me","until":"2099-01-01T00:00:00Z"}'),
  'a directory in the place of the writer': (place) => {
    rmSync(join(place, 'writer'));
    mkdirSync(join(place, 'writer'));
  },
  'a pipe in the place of who holds the lock': (place) => {
    const path = join(place, '.sluice/owner.json');
    rmSync(path, { force: true });
    spawnSync('mkfifo', [path]);
  },
  'an export in its place': (place) => {
    for (const year of readdirSync(join(place, 'segments')))
      renameSync(join(place, 'segments', year), join(tempDir(), year));
  },
};

const isLong = process.env.SLUICE_TEST_LONG === '1';

describe.each([
  ['with the state of its writer', false],
  ['with a state that is lost', true],
])('%s', (_, isLost) => {
  // Every second attack, and the others with the other state; all with SLUICE_TEST_LONG=1.
  const tried = Object.entries(attacks).filter((_, i) => isLong || i % 2 === Number(isLost));

  test.each(tried)('%s', async (name, attack) => {
    const place = join(tempDir(), 'archive');
    cpSync(full.place, place, { recursive: true });
    attack(place);
    // A mark names its location: this is a copy.
    const state: State = { mark: isLost ? null : movedTo(place) };
    const added: string[] = [];
    try {
      const writer = await aWriter({
        ...{ store: openDirectory(place), state, accept_requests: false, now: () => tomorrow },
        ...(isLost && { spool: 'spool-2' }),
      });
      for (let i = 0; i < 3; i += 1) {
        const pages = heldPages(2, isLost ? i * 6 : full.next + i * 6, `new/${i}`);
        await archived(writer, pages);
        added.push(...uidsOfPages(pages));
      }
      await writer.close();
    } catch {
      // It refuses: what it has not acknowledged is not expected.
    }
    // These leave the log as it is, so its writer has no reason to stop.
    if (/^an? (prune|erasure) that/.test(name)) expect(added).toHaveLength(18);
    const list = join(tempDir(), 'uids.txt');
    writeFileSync(list, [...full.uids, ...added].join('\n'));

    const verified = await runHere(['archive', 'verify', place, ...key]);
    const compared = await runHere(['archive', 'reconcile', place, ...key, '--uids', list]);

    if (verified.exitCode === 0 || verified.exitCode === 3)
      expect(compared, verified.stdout).toMatchObject({ exitCode: 0 });
    else expect([1, 2]).toContain(verified.exitCode);
  });
});

/** The writer's mark, as it is of the copy. */
function movedTo(place: string) {
  return JSON.parse(JSON.stringify(full.state.mark).replaceAll(full.place, place));
}
