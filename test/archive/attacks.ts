// Attacks on an archive in a directory by somebody who can write there and has no key, and archives of a writer that
// signed what it should not have. Each breaks an archive; verifiers of every kind are tried against all of them.

import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';

/** One attack. */
export interface Attack {
  readonly name: string;
  /** The part of an archive that the short verifiers do not check, in the words of deploy/verifiers/README.md. */
  readonly unseen?: 'the lake' | 'the tiles of the tree' | 'removals' | 'the logs of other shards';
  /** Changes the archive in this directory. */
  readonly apply: (place: string) => void | Promise<void>;
}

/** Names of an archive's files that start so, in order. */
function namesIn(place: string, start = ''): readonly string[] {
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(place.length + 1))
    .filter((name) => name.startsWith(start) && !name.startsWith('.'))
    .toSorted();
}

/** A file of each kind; the bundles and tiles of a directory that grew are many, and the widest counts. */
const kinds: Readonly<Record<string, (place: string) => string>> = {
  'archive.json': () => 'archive.json',
  'the checkpoint': () => 'checkpoint',
  'a bundle of entries': (place) => widest(place, 'tile/entries/'),
  'a tile of the tree': (place) => widest(place, 'tile/0/'),
  'a segment': (place) => namesIn(place, 'segments/').at(-1) ?? '',
  'a segment with an erased record': (place) => namesIn(place, 'segments/')[0] ?? '',
  'an older checkpoint': (place) => namesIn(place, 'checkpoints/')[0] ?? '',
  'a manifest': (place) => namesIn(place, 'manifests/')[0] ?? '',
  'a cut of the lake': (place) => namesIn(place, 'lake/cuts/').at(-1) ?? '',
  'an object of the lake': (place) => namesIn(place, 'lake/6003/').at(-1) ?? '',
};
const unseen: Readonly<Record<string, NonNullable<Attack['unseen']>>> = {
  'a tile of the tree': 'the tiles of the tree',
  'a cut of the lake': 'the lake',
  'an object of the lake': 'the lake',
};

function widest(place: string, start: string): string {
  const width = (name: string) => Number(/\.p\/(\d+)$/.exec(name)?.[1] ?? 256);
  return namesIn(place, start).toSorted((a, b) => width(b) - width(a))[0] ?? '';
}

const edit = (change: (bytes: Buffer) => Uint8Array) => (path: string) =>
  writeFileSync(path, change(readFileSync(path)));
const flipAt = (part: number) =>
  edit((bytes) => {
    const at = Math.floor((bytes.length - 1) * part);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return bytes;
  });
const inPlace = (make: (path: string) => unknown) => (path: string) => {
  rmSync(path);
  make(path);
};

const faults: Readonly<Record<string, (path: string) => void>> = {
  'a bit at its start': flipAt(0.05),
  'a bit in its middle': flipAt(0.5),
  'a bit at its end': flipAt(0.97),
  'cut in half': edit((bytes) => bytes.subarray(0, bytes.length >> 1)),
  'one byte less': edit((bytes) => bytes.subarray(0, -1)),
  empty: edit(() => Buffer.alloc(0)),
  gone: (path) => rmSync(path),
  'other JSON': edit(() => Buffer.from('{"t":"page"}\n')),
  'a directory in its place': inPlace((path) => mkdirSync(path)),
  'a pipe in its place': inPlace((path) => spawnSync('mkfifo', [path])),
  'a device in its place': inPlace((path) => symlinkSync('/dev/zero', path)),
  'a link to itself in its place': inPlace((path) => symlinkSync(path, path)),
  '64 GiB of nothing in its place': edit(() => Buffer.alloc(0)),
};

const files: readonly Attack[] = Object.entries(kinds).flatMap(([kind, find]) =>
  Object.entries(faults).map(([fault, spoil]): Attack => {
    const apply = (place: string) => {
      const path = join(place, find(place));
      // Narrower bundles and tiles, which a directory keeps, do not stand in for this one.
      spoil(path);
      if (fault.startsWith('64 GiB')) truncateSync(path, 64 * 2 ** 30);
    };
    const part = unseen[kind];
    return { name: `${kind}: ${fault}`, apply, ...(part !== undefined && { unseen: part }) };
  }),
);

const swapped = (place: string, one: string, other: string) => {
  renameSync(join(place, one), join(place, 'x'));
  renameSync(join(place, other), join(place, one));
  renameSync(join(place, 'x'), join(place, other));
};
/** The newest bundle with other bytes, of the same length. */
const inEntries = (from: string | RegExp, to: string) => (place: string) =>
  edit((bytes) => Buffer.from(bytes.toString('latin1').replace(from, to), 'latin1'))(
    join(place, widest(place, 'tile/entries/')),
  );
/** The entries of the newest bundle in another order or number. */
const entries = (change: (all: Buffer[]) => readonly Buffer[]) => (place: string) =>
  edit((bytes) => {
    const all: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += 2 + bytes.readUInt16BE(at))
      all.push(bytes.subarray(at, at + 2 + bytes.readUInt16BE(at)));
    return Buffer.concat(change(all));
  })(join(place, widest(place, 'tile/entries/')));

const changes: readonly Attack[] = [
  { name: 'a page read at another time', apply: inEntries(/("fetched_at":"20)2/, '$11') },
  { name: 'a hold over another span', apply: inEntries(/("t":"hold".*?"from":"20)2/, '$11') },
  {
    name: 'an erasure for another reason',
    apply: inEntries('"reason":"a case"', '"reason":"a vase"'),
  },
  { name: 'an entry taken out', apply: entries((all) => all.toSpliced(5, 1)) },
  { name: 'an entry put in', apply: entries((all) => all.toSpliced(5, 0, all[4] ?? Buffer.of())) },
  {
    name: 'two entries in the place of each other',
    apply: entries(([a, b, c, ...all]) => [a, c, b, ...all].filter((one) => one !== undefined)),
  },
  {
    name: 'two segments in the place of each other',
    apply(place) {
      const [one = '', other = ''] = namesIn(place, 'segments/');
      swapped(place, one, other);
    },
  },
  {
    name: 'two manifests in the place of each other',
    apply(place) {
      const [one = '', other = ''] = namesIn(place, 'manifests/');
      swapped(place, one, other);
    },
  },
  {
    name: 'two objects of the lake in the place of each other',
    unseen: 'the lake',
    apply(place) {
      const [one = '', other = ''] = namesIn(place, 'lake/3002/');
      swapped(place, one, other);
    },
  },
  {
    name: 'an older checkpoint with the newest size',
    apply(place) {
      const [older = ''] = namesIn(place, 'checkpoints/');
      const text = readFileSync(join(place, older), 'utf8');
      const size = readFileSync(join(place, 'checkpoint'), 'utf8').split('\n')[1];
      writeFileSync(join(place, 'checkpoint'), text.replace(/\n\d+\n/, `\n${size}\n`));
    },
  },
  {
    name: 'an older unsigned checkpoint in place of a kept one',
    apply(place) {
      const [older = '', newer = ''] = namesIn(place, 'checkpoints/');
      cpSync(join(place, older), join(place, newer));
    },
  },
  {
    name: 'an older checkpoint put back, and newer ones left in checkpoints/',
    apply(place) {
      const notes = namesIn(place, 'checkpoints/').filter((name) => name.endsWith('.note'));
      cpSync(join(place, notes.at(-2) ?? ''), join(place, 'checkpoint'));
    },
  },
  {
    name: 'a proof of a newer checkpoint left in checkpoints/',
    apply(place) {
      const [note = ''] = namesIn(place, 'checkpoints/');
      writeFileSync(join(place, dirname(note), '00000000000000009999.cosig'), 'a proof');
    },
  },
  {
    name: 'a copy of the newest checkpoint with another signature',
    apply(place) {
      const newest = namesIn(place, 'checkpoints/').findLast((name) => name.endsWith('.note'));
      edit((note) => {
        note[note.length - 20] = note[note.length - 20] === 65 ? 66 : 65;
        return note;
      })(join(place, newest ?? ''));
    },
  },
  {
    name: 'an older checkpoint as the copy of the newest',
    apply(place) {
      const notes = namesIn(place, 'checkpoints/').filter((name) => name.endsWith('.note'));
      cpSync(join(place, notes[0] ?? ''), join(place, notes.at(-1) ?? ''));
    },
  },
  {
    name: 'another log of the same name',
    apply(place) {
      const { origin } = JSON.parse(readFileSync(join(place, 'archive.json'), 'utf8'));
      rmSync(place, { recursive: true });
      mkdirSync(place);
      writeNaive(naiveArchive([{ pages: [{ stream: 'audit' }] }], origin), place);
    },
  },
  {
    name: 'the log of another key behind the true first checkpoint',
    apply(place) {
      const { origin } = JSON.parse(readFileSync(join(place, 'archive.json'), 'utf8'));
      writeNaive(
        {
          files: new Map(
            [
              ...naiveArchive(
                [{ pages: [{ stream: 'audit' }] }, { pages: [], rotates: true }],
                origin,
              ).files,
            ].filter(([name]) => name !== 'archive.json'),
          ),
        },
        place,
      );
    },
  },
  {
    name: 'all segments gone',
    apply: (place) => rmSync(join(place, 'segments'), { recursive: true }),
  },
  {
    name: 'a file in the place of all segments',
    apply(place) {
      rmSync(join(place, 'segments'), { recursive: true });
      writeFileSync(join(place, 'segments'), 'x');
    },
  },
  {
    name: 'a segment under the name of a removed one and its own gone',
    apply(place) {
      const [name = ''] = namesIn(place, 'segments/');
      const removed = 'segments/2020/01/01/00000000000000000001.zst';
      mkdirSync(dirname(join(place, removed)), { recursive: true });
      renameSync(join(place, name), join(place, removed));
    },
  },
];

/** Those that need no key and no writer. */
const attacks: readonly Attack[] = [...files, ...changes];

// Mutants of the short verifiers other than the few of each run need all of them.
const isLong =
  process.env.SLUICE_TEST_LONG === '1' || (process.env.SLUICE_VERIFIER_MUTANTS ?? '') !== '';

/**
 * The attacks of a run of the tests: of the faults of files every fourth one, another one for the next kind of file, and
 * all others. Two suites have a quarter each, any-file.test.ts has them for `verify`; SLUICE_TEST_LONG=1: all.
 */
export function attacksIn(half: 0 | 1): readonly Attack[] {
  const ofKind = Object.keys(faults).length;
  return attacks.filter((attack) => {
    const at = files.indexOf(attack);
    return isLong || at < 0 || ((at % ofKind) + Math.floor(at / ofKind)) % 4 === half * 2;
  });
}
