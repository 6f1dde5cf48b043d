// Each file of an archive may have any content. There is always a verdict, with the file's name, and a writer that
// opens the archive refuses it or leaves everything else unchanged. The suite tries a part of the table, in turn for
// each kind of file; SLUICE_TEST_LONG=1 tries all.

import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/index.ts';
import { memoryStore } from '../support/archive/memory-store.ts';
import { runHere } from '../support/cli.ts';
import { s3BuildMsMax, sharedS3 } from '../support/s3.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, type State } from './a-writer.ts';
import {
  contents,
  type EveryKind,
  type Fault,
  faults,
  jsonFaults,
  writeEveryKind,
  writtenAt,
} from './every-kind.ts';

const day = 86_400_000;
const isLong = process.env.SLUICE_TEST_LONG === '1';

/** All of them, or in the short form one of `step`, beginning at another one for each kind of file. */
function inTurn<T>(all: readonly T[], step: number, kind: string): readonly T[] {
  const first = Object.keys({ ...evidence, ...wishes }).indexOf(kind);
  return isLong ? all : all.filter((_, index) => (index + first) % step === 0);
}

/** By how their names begin and end: the first file of each kind, or the last one. */
const evidence = {
  'archive.json': /^archive\.json$/,
  'the checkpoint': /^checkpoint$/,
  'a kept checkpoint': /^checkpoints\/.*\.note$/,
  'a time stamp': /^checkpoints\/.*\.tsr$/,
  'a cosignature': /^checkpoints\/.*\.cosig$/,
  'a segment': /^segments\//,
  'a manifest': /^manifests\//,
  'a cut of the lake': /^lake\/cuts\//,
  'an object of the lake': /^lake\/.*\.parquet$/,
  'a full tile': /^tile\/0\/000$/,
  'a partial tile': /^tile\/1\/000\.p\/1$/,
  'a full bundle': /^tile\/entries\/000$/,
  'a partial bundle': /^tile\/entries\/001\.p\/(?!6$|16$|22$|29$)/,
} as const;
const wishes = {
  'a hold': /^holds\//,
  'a request to erase': /^erase\//,
  'a request to prune': /^prune\.json$/,
  'the claim of a writer': /^writer$/,
} as const;
/** What leaves no object there; a link to a device is none either. */
const noObject: ReadonlySet<string> = new Set([
  ...['nothing', 'a directory', 'a directory with a file', 'a pipe'],
  ...['a link to nothing', 'a link to itself', 'a link to a device'],
]);

interface Base extends EveryKind {
  readonly dir: string;
  readonly files: ReadonlyMap<string, Buffer>;
}

/** With a full tile and a full bundle. */
let large: Base;
/** The same kinds of files otherwise, of a few pages: each verdict costs a tenth. */
let small: Base;
let bare = '';

function filesIn(dir: string): Map<string, Buffer> {
  const found = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(dir.length + 1))
    .filter((name) => !name.startsWith('.'));
  return new Map(found.toSorted().map((name) => [name, readFileSync(join(dir, name))]));
}

async function aBase(pages: number): Promise<Base> {
  const dir = join(tempDir(), 'archive');
  const written = await writeEveryKind(dir, pages);
  return { ...written, dir, files: filesIn(dir) };
}

beforeAll(async () => {
  large = await aBase(260);
  small = await aBase(4);
  bare = join(tempDir(), 'bare');
  const writer = await aWriter({ store: openDirectory(bare) });
  await archived(writer, heldPages(2));
  await writer.close();
});

/** The archive for faults of this kind of file, and the file's name. */
function placeOf(pattern: RegExp): Base & { readonly name: string; readonly bytes: Buffer } {
  const has = ({ files }: Base) => [...files.keys()].some((one) => pattern.test(one));
  const base = isLong || !has(small) ? large : small;
  const name = named(pattern, base.files);
  return { ...base, name, bytes: base.files.get(name) ?? Buffer.alloc(0) };
}

function named(pattern: RegExp, of: ReadonlyMap<string, Buffer>): string {
  const name = [...of.keys()].find((one) => pattern.test(one));
  if (name === undefined) throw new Error(`the archive has no ${pattern}`);
  return name;
}

/** Replaces a file by a fault, runs the check, and restores the file. */
async function withFault<T>(
  [dir, name]: readonly [string, string],
  fault: Fault,
  look: () => Promise<T>,
): Promise<T> {
  const path = join(dir, name);
  const bytes = readFileSync(path);
  rmSync(path);
  await fault(path, bytes);
  try {
    return await look();
  } finally {
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, bytes);
  }
}

interface VerifyReport {
  readonly breaks: readonly { readonly object: string | null; readonly index: number | null }[];
  readonly remarks: readonly string[];
}

/** The verdict of the command, and its report. */
async function judged(dir: string) {
  const { vkey } = aSigner().verifier;
  const { exitCode, stdout, stderr } = await runHere([
    ...['archive', 'verify', dir, '--key', vkey, '--json'],
  ]);
  const report: VerifyReport = stdout === '' ? { breaks: [], remarks: [] } : JSON.parse(stdout);
  return { exitCode, report, stderr };
}

const isPlaced = (name: string, { breaks }: VerifyReport) =>
  breaks.some(({ object }) => object === name) ||
  // For a bundle that can be read in part, the entry has the position.
  (name.startsWith('tile/entries/') && breaks.some(({ index }) => index !== null));

const trusted = [aSigner().verifier];

/** The verdict on the archive where a file has other bytes. */
async function verifiedWith(name: string, bytes: Buffer, of: Base['files']) {
  const store = memoryStore(new Map([...of, [name, bytes]]));
  return await verifyArchive(new ArchiveReader(store), { trusted });
}

describe('verify, with any other content at the location of', () => {
  test.each(Object.entries(evidence))('%s: a break that names it', async (kind, pattern) => {
    const { name, dir, bytes, files } = placeOf(pattern);
    const wrong: unknown[] = [];
    for (const [what, fault] of inTurn(Object.entries(faults), 3, kind)) {
      const { exitCode, report, stderr } = await withFault([dir, name], fault, () => judged(dir));
      const isRight = exitCode === 1 && isPlaced(name, report) && stderr === '';
      if (!isRight) wrong.push([what, exitCode, stderr, report.breaks]);
    }
    for (const [what, made] of inTurn(Object.entries(contents), 2, kind)) {
      const report = await verifiedWith(name, made(bytes), files);
      if (!isPlaced(name, report)) wrong.push([what, report.breaks]);
    }
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(wishes))(
    '%s: no break, and its name where it is damaged',
    async (kind, pattern) => {
      const { name, dir, bytes, files } = placeOf(pattern);
      const wrong: unknown[] = [];
      const isNamed = ({ remarks }: VerifyReport) =>
        remarks.some((remark) => remark.startsWith(name));
      for (const [what, fault] of inTurn(Object.entries(faults), 3, kind)) {
        const { exitCode, report, stderr } = await withFault([dir, name], fault, () => judged(dir));
        // The log has the hold; a request that is not there is none.
        const isSilent = noObject.has(what) && !name.startsWith('holds/');
        const isRight = exitCode === 0 && stderr === '' && (isSilent || isNamed(report));
        if (!isRight) wrong.push([what, exitCode, stderr, report.remarks]);
      }
      for (const [what, made] of inTurn(Object.entries(contents), 2, kind)) {
        const report = await verifiedWith(name, made(bytes), files);
        // Its last byte is the line end.
        const isSilent = what === 'all but its last byte';
        if (report.breaks.length > 0 || isNamed(report) === isSilent) wrong.push([what, report]);
      }
      expect(wrong).toEqual([]);
    },
  );

  test('the files of an archive without lake, manifests and holds: a break that names them', async () => {
    const own = filesIn(bare);
    const wrong: unknown[] = [];
    let count = 0;
    for (const name of own.keys()) {
      // What proves nothing: the writer's claim, tiles that others have replaced, the copy of the newest checkpoint.
      if (name === 'writer' || /\.p\/4$|checkpoints\/.*6\.note$/.test(name)) continue;
      count += 1;
      for (const [what, made] of Object.entries(contents)) {
        const { breaks, remarks } = await verifiedWith(
          name,
          made(own.get(name) ?? Buffer.alloc(0)),
          own,
        );
        if (!isPlaced(name, { breaks, remarks })) wrong.push([name, what, breaks]);
      }
    }
    expect(wrong).toEqual([]);
    expect(count).toBe(6);
  });
});

describe('verify, with any value at each key of', () => {
  const kinds = Object.entries({ ...evidence, ...wishes }).filter(([kind]) =>
    /json|manifest|cut|hold|request|claim/.test(kind),
  );

  test.each(kinds)('%s', async (kind, pattern) => {
    const { name, bytes, files } = placeOf(pattern);
    const isEvidence = kind in evidence;
    const wrong: unknown[] = [];
    let count = 0;
    const all = [...jsonFaults(bytes.toString('latin1'))];
    for (const [what, text] of inTurn(all, all.length > 60 ? 12 : 2, kind)) {
      count += 1;
      const { breaks } = await verifiedWith(name, Buffer.from(text, 'latin1'), files);
      const isRight = isEvidence
        ? breaks.some(({ object }) => object === name)
        : breaks.length === 0;
      if (!isRight) wrong.push([what, breaks]);
    }
    expect(wrong).toEqual([]);
    expect(count).toBeGreaterThan(isLong ? 10 : 5);
  });
});

describe('verify of several shards', () => {
  const two = async () => {
    const location = join(tempDir(), 'shards');
    for (const shard of [0, 1]) {
      const signer = aSigner(`archive.test/${shard}`);
      const writer = await aWriter({ store: openDirectory(join(location, `${shard}`)), signer });
      await archived(writer, heldPages(1));
      await writer.close();
    }
    return location;
  };

  test('with any other content at the location of a shard’s archive is not exit 0, or lists the others only', async () => {
    const location = await two();
    const key = ['--key', aSigner().verifier.vkey];
    const away = join(tempDir(), 'away');
    const wrong: unknown[] = [];
    for (const [what, fault] of Object.entries(faults)) {
      renameSync(join(location, '0'), away);
      await fault(join(location, '0'), Buffer.from('x'));
      const { exitCode, stderr } = await runHere(['archive', 'verify', location, ...key]);
      rmSync(join(location, '0'), { recursive: true, force: true });
      renameSync(away, join(location, '0'));
      const isGone = noObject.has(what) && what !== 'a directory with a file';
      const isRight = isGone
        ? stderr.includes(`${location}/0 is not there`)
        : exitCode === 2 && stderr.includes(`${location}/0`);
      if (!isRight) wrong.push([what, exitCode, stderr]);
    }
    expect(wrong).toEqual([]);
    expect(await runHere(['archive', 'verify', location, ...key])).toMatchObject({
      ...{ exitCode: 0, stderr: '' },
    });
  });

  test('also looks at those below an archive from before there were shards', async () => {
    const location = await two();
    const writer = await aWriter({ store: openDirectory(location) });
    await archived(writer, heldPages(1));
    await writer.close();
    const key = ['--key', aSigner().verifier.vkey];
    const all = await runHere(['archive', 'verify', location, ...key]);
    rmSync(join(location, '1', named(/^segments\//, filesIn(join(location, '1')))));

    const { exitCode, stdout } = await runHere(['archive', 'verify', location, ...key]);

    expect(all.exitCode).toBe(0);
    expect(all.stdout.match(/^whole:/gm)).toHaveLength(3);
    expect(exitCode).toBe(1);
    expect(stdout).toContain(`${location}/1`);
  });
});

describe('a writer that finds any other content at the location of', () => {
  const some = ['nothing', 'a pipe', '4 GiB of nothing', 'half of it'];

  test.each(Object.entries({ ...evidence, ...wishes }))('%s', async (kind, pattern) => {
    const { name, bytes, dir: whole, state, next } = placeOf(pattern);
    const wrong: unknown[] = [];
    for (const [at, what] of some.entries()) {
      for (const known of inTurn([state.mark, null], 2, at % 2 === 0 ? kind : 'archive.json')) {
        const dir = join(tempDir(), 'archive');
        cpSync(whole, dir, { recursive: true });
        // What it would carry out is another test's.
        for (const wish of ['erase', 'prune.json']) {
          if (!name.startsWith(wish)) rmSync(join(dir, wish), { recursive: true, force: true });
        }
        const before = filesIn(dir);
        rmSync(join(dir, name));
        mkdirSync(dirname(join(dir, name)), { recursive: true });
        const made = contents[what]?.(bytes);
        if (made !== undefined) writeFileSync(join(dir, name), made);
        await faults[what]?.(join(dir, name), bytes);
        const refusal = await written(dir, known, next);
        const isChanged = ([other, was]: readonly [string, Buffer]) =>
          other !== name &&
          !['checkpoint', 'writer'].includes(other) &&
          !readFileSync(join(dir, other)).equals(was);
        const { exitCode, report, stderr } = await judged(dir);
        const others = report.breaks.filter(
          ({ object, index }) => object !== name && index === null,
        );
        const isRight =
          (refusal === null || refusal instanceof ExportError) &&
          ![...before].some(isChanged) &&
          [0, 1].includes(exitCode ?? -1) &&
          others.length === 0;
        if (!isRight) wrong.push([what, String(refusal), exitCode, stderr, report.breaks]);
        rmSync(dir, { recursive: true });
      }
    }
    expect(wrong).toEqual([]);
  });
});

/** Archives a page; what it was refused with, null where it was archived. */
async function written(dir: string, mark: State['mark'], next: number): Promise<unknown> {
  try {
    const own = { mark: structuredClone(mark) };
    const store = openDirectory(dir);
    const writer = await aWriter({ store, state: own, now: () => writtenAt + 2 * day });
    await archived(writer, heldPages(1, next));
    return null;
  } catch (error) {
    return error;
  }
}

describe('verify of a bucket, with any other content at the location of', () => {
  beforeAll(async () => void (await sharedS3()), s3BuildMsMax);
  const megabytes = 20;
  const bytes = {
    'other JSON': Buffer.from('{"a":[null,1e999]}'),
    'nothing at all': Buffer.alloc(0),
    'a huge object': Buffer.alloc(megabytes * 2 ** 20),
  } as const;

  test('each kind of object: a break that names it', { tags: ['long'] }, async () => {
    const s3 = await sharedS3();
    const stores = { small: await s3.store(), large: await s3.store() };
    for (const [name, body] of small.files) await stores.small.put(name, [body]);
    for (const [name, body] of large.files) await stores.large.put(name, [body]);
    const bucketOf = (pattern: RegExp) => {
      const place = placeOf(pattern);
      return { ...place, store: place.dir === small.dir ? stores.small : stores.large };
    };
    const verified = (store: ObjectStore) => verifyArchive(new ArchiveReader(store), { trusted });
    const wrong: unknown[] = [];
    for (const [kind, pattern] of Object.entries(evidence)) {
      const { name, store, bytes: own } = bucketOf(pattern);
      for (const [what, body] of inTurn(Object.entries(bytes), 3, kind)) {
        await store.put(name, [body]);
        const { breaks } = await verified(store);
        if (!isPlaced(name, { breaks, remarks: [] })) wrong.push([name, what, breaks]);
      }
      await store.put(name, [own]);
    }
    const wished = Object.values(wishes).map(bucketOf);
    for (const { store, name } of wished) await store.put(name, [bytes['a huge object']]);
    const { breaks, remarks } = await verified(isLong ? stores.large : stores.small);
    expect(wrong).toEqual([]);
    expect(breaks).toEqual([]);
    for (const { name } of wished) expect(remarks.join('\n')).toContain(name);
  });
});
