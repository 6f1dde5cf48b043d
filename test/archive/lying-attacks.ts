// Archives whose own key has signed a false page, segment or other entry, one false fact at a time: each check of a
// verifier is tested alone here, since all hashes are right. And a log at another log's location.

import { hash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointText } from '../../src/archive/checkpoint.ts';
import { type Entry, encodeEntry } from '../../src/archive/entries.ts';
import { segmentPath } from '../../src/archive/layout.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { leafHash } from '../../src/archive/merkle.ts';
import { parseNote, signNote } from '../../src/archive/note.ts';
import { preparePage } from '../../src/archive/page-entry.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { openArchiveLog } from '../../src/archive/recovery.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { archived, aSigner, aWriter, heldPages } from './a-writer.ts';
import type { Attack } from './attacks.ts';

type Loose = Record<string, unknown>;

type More = (page: Loose, place: string) => readonly Loose[] | Promise<readonly Loose[]>;

/** A segment of one page of a stream of its own, and what follows them, as they are signed. */
interface Lie {
  /** Entries before that of the segment, which is named. */
  readonly before?: (object: string) => readonly Loose[];
  readonly bytes?: (bytes: Buffer) => Buffer;
  readonly segment?: Loose;
  readonly page?: (page: Loose) => Loose;
  readonly more?: readonly Loose[] | More;
  /** Which records of the body the page says to have kept. */
  readonly kept?: Uint32Array;
}

/** Signs them behind all that the archive has. */
async function signed(place: string, lie: Lie): Promise<string> {
  const { before, bytes: change, segment, page, more = [], kept } = lie;
  const store = openDirectory(place);
  const log = await openArchiveLog({
    ...{ store, clock: systemClock(), signer: aSigner(), spool: 'spool-1', staleMs: 1 },
    ...{ mark: null, remember: async () => undefined },
  });
  const [held] = heldPages(1, 9_000, 'lied');
  if (held === undefined) throw new Error('there is no page');
  const { frames, entry, body } = await preparePage(kept === undefined ? held : { ...held, kept }, {
    epoch: 1,
    salt: log.deps.salt,
  });
  const whole = Buffer.concat(frames);
  const bytes = change?.(whole) ?? whole;
  const first = before?.('').length ?? 0;
  const object = segmentPath(log.size + first, Date.now());
  const facts = { object, bytes: bytes.length, sha256: hash('sha256', bytes, 'hex'), pages: 1 };
  const at = { segment: object, at: 0, length: frames[0].length };
  const made = { ...entry, seq: 0, prev: null, body: { ...body, ...at } };
  const lied = page?.(made) ?? made;
  const after = typeof more === 'function' ? await more(lied, place) : more;
  const entries = [
    ...(before?.(object) ?? []),
    ...[{ t: 'segment', ...facts, ...segment }, lied, ...after],
  ];
  for (const one of entries) log.append(one as unknown as Entry);
  await log.publish([{ name: object, parts: [bytes] }], Date.now());
  await log.deps.claim.renew(true);
  return object;
}

const zeros = '0'.repeat(64);
const within = (name: string, change: (of: Loose) => Loose) => (page: Loose) => ({
  ...page,
  [name]: { ...(page[name] as Loose), ...change(page[name] as Loose) },
});
const number = (of: Loose, name: string) => Number(of[name]);
const at = '2026-11-25T00:00:00.000Z';

async function lastCheckpoint(place: string): Promise<Entry | undefined> {
  const reader = new ArchiveReader(openDirectory(place));
  const { size } = await newestCheckpoint(reader);
  const all = await Array.fromAsync(loggedEntries(reader, size));
  return all.findLast(({ entry }) => entry.t === 'checkpoint')?.entry;
}

/** One more uid than the page has records. */
function withAnotherUid(): Lie {
  let sha256 = '';
  return {
    bytes(bytes) {
      const header = bytes.indexOf(Buffer.of(0x50, 0x2a, 0x4d, 0x18));
      const uids = Buffer.concat([bytes.subarray(header + 8), Buffer.alloc(32)]);
      sha256 = hash('sha256', uids, 'hex');
      const changed = Buffer.concat([bytes.subarray(0, header + 8), uids]);
      changed.writeUInt32LE(uids.length, header + 4);
      return changed;
    },
    page: (page) => within('uids', (of) => ({ bytes: number(of, 'bytes') + 32, sha256 }))(page),
  };
}

const lies: Readonly<Record<string, Lie>> = {
  'a page whose uids have another hash': { page: within('uids', () => ({ sha256: zeros })) },
  'a page whose uids are fewer': {
    page: (page) => within('uids', (of) => ({ bytes: number(of, 'bytes') - 32 }))(page),
  },
  'a page whose uids are more': withAnotherUid(),
  'a frame of uids that is none': {
    bytes: (bytes) => {
      const header = bytes.indexOf(Buffer.of(0x50, 0x2a, 0x4d, 0x18));
      return Buffer.concat([bytes.subarray(0, header), Buffer.of(0), bytes.subarray(header + 1)]);
    },
  },
  'a page whose body has another hash': { page: within('body', () => ({ sha256: zeros })) },
  'a page whose body has another length': {
    page: within('body', (of) => ({ bytes: number(of, 'bytes') + 1 })),
  },
  'a page whose records have another root': { page: within('events', () => ({ root: zeros })) },
  'a page whose tree has another count': { page: within('events', () => ({ count: 9 })) },
  'a page that kept more records than it has uids': { page: (page) => ({ ...page, kept: 4 }) },
  'a page that says it has more records than its body': {
    kept: Uint32Array.of(0, 1, 2),
    page: (page) => ({ ...page, records: 4 }),
  },
  'a page in the place of the one before': {
    segment: { pages: 2 },
    more: (page) => [
      { ...page, seq: 1, prev: leafHash(encodeEntry(page as unknown as Entry)).toString('hex') },
    ],
  },
  'a page whose records are elsewhere': { page: (page) => ({ ...page, items: 'elsewhere' }) },
  'a page with a number too high': { page: (page) => ({ ...page, seq: 1 }) },
  'a page that follows another one': { page: (page) => ({ ...page, prev: zeros }) },
  'a page of another segment': {
    page: within('body', () => ({ segment: 'segments/2020/01/01/00000000000000000001.zst' })),
  },
  'a segment with a page too many': { segment: { pages: 2 }, more: [{ t: 'stop', at }] },
  'a segment with a page too many at the end': { segment: { pages: 2 } },
  'a segment with a page too few': { segment: { pages: 0 } },
  'a segment with another hash': { segment: { sha256: zeros } },
  'a checkpoint with the root of its tree, whose file is another': {
    more: async (_, place) => {
      const bytes = readFileSync(join(place, 'archive.json'));
      const sha256 = hash('sha256', bytes, 'hex');
      return [{ ...(await lastCheckpoint(place)), object: 'archive.json', sha256 }];
    },
  },
  'a checkpoint with its file and another root': {
    more: async (_, place) => [{ ...(await lastCheckpoint(place)), root: zeros }],
  },
  'a time stamp whose file is another': {
    more: [{ t: 'anchor', at, size: 1, object: 'archive.json', sha256: zeros }],
  },
  'a checkpoint with another root': {
    more: [{ t: 'checkpoint', at, size: 3, root: zeros, object: 'archive.json', sha256: zeros }],
  },
  'a start with another archive.json': {
    more: [{ t: 'start', at, archive: zeros, spool: 'spool-1', version: '9' }],
  },
  'an entry of a kind that there is not': { more: [{ t: 'unheard_of', at }] },
};

/** The file with the newest entries, and the last of them. */
function lastBundle(place: string) {
  const [, size = ''] = readFileSync(join(place, 'checkpoint'), 'utf8').split('\n');
  const [index, width] = [Math.floor(Number(size) / 256), Number(size) % 256];
  const file = join(place, `tile/entries/${String(index).padStart(3, '0')}.p/${width}`);
  return { file, bytes: readFileSync(file, 'latin1') };
}

const replaced: readonly Attack[] = [
  {
    name: 'a missing segment that was pruned before it was written',
    async apply(place) {
      const about = { pages: 1, first: at, last: at, why: 'asked' };
      const before = (object: string) => [{ t: 'pruned', at, object, ...about }];
      rmSync(join(place, await signed(place, { before })));
    },
  },
  {
    name: 'the last entry at another time',
    apply(place) {
      const { file, bytes } = lastBundle(place);
      const from = bytes.lastIndexOf('"at":"20') + '"at":"20'.length;
      writeFileSync(file, `${bytes.slice(0, from)}1${bytes.slice(from + 1)}`, 'latin1');
    },
  },
  {
    name: 'the checkpoint signed by another key of the same name',
    async apply(place) {
      const { text } = parseNote(readFileSync(join(place, 'checkpoint')));
      const note = await signNote(text, [aSigner('archive.test', 9)]);
      writeFileSync(join(place, 'checkpoint'), note);
    },
  },
  {
    name: 'the checkpoint with a signature that is of another text',
    async apply(place) {
      const [origin = '', size = '', root = ''] = readFileSync(
        join(place, 'checkpoint'),
        'utf8',
      ).split('\n');
      const older = checkpointText({ origin, size: 1, root: Buffer.from(root, 'base64') });
      const { signatures } = parseNote(Buffer.from(await signNote(older, [aSigner()])));
      const lines = signatures.map(
        ({ name, keyId, signature }) =>
          `— ${name} ${Buffer.concat([keyId, signature]).toString('base64')}\n`,
      );
      writeFileSync(join(place, 'checkpoint'), `${origin}\n${size}\n${root}\n\n${lines.join('')}`);
    },
  },
  {
    name: 'a log of the same key under another name',
    async apply(place) {
      rmSync(place, { recursive: true });
      const writer = await aWriter({ store: openDirectory(place), signer: aSigner('other.test') });
      await archived(writer, heldPages(2));
      await writer.close();
    },
  },
];

/** Those that end in a broken archive. */
export const lyingAttacks: readonly Attack[] = [
  ...Object.entries(lies).map(([name, lie]) => ({
    name,
    apply: async (place: string) => void (await signed(place, lie)),
  })),
  ...replaced,
];
