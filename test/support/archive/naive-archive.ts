// Archives for tests, written straight from the formats (RFC 6962, C2SP tlog-tiles, signed-note and tlog-checkpoint,
// RFC 8878) and the docstrings of src/archive/entries.ts, in the simplest way: everything in memory, every hash
// computed each time. It shares no code with sluice's writer, so that a reader that accepts both follows the formats,
// not the writer's mistakes.
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';

/** A page as a test wants it; what is left out is made up. */
export interface NaivePage {
  readonly stream: string;
  /** Records in the body. Default 2. */
  readonly records?: number;
  /** The kept ones; undefined: all. */
  readonly kept?: readonly number[];
  /** Overrides of the entry. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** The body, in place of one that is made up, and its records. */
  readonly body?: string;
  readonly texts?: readonly string[];
}

/** What one checkpoint covers. */
export interface NaiveCommit {
  readonly pages: readonly NaivePage[];
  /** The log continues under a new key. */
  readonly rotates?: boolean;
}

/** An archive in memory. */
export interface NaiveArchive {
  /** By name. */
  readonly files: Map<string, Buffer>;
  /** The log's keys in their order. */
  readonly vkeys: readonly string[];
  /** The log's entries. */
  readonly entries: readonly Buffer[];
  /** Each checkpoint, as a signed note. */
  readonly notes: readonly Buffer[];
  /** uids of the kept records of each page, in the order of the log. */
  readonly uids: readonly (readonly string[])[];
}

const sha256 = (...parts: readonly (string | Uint8Array)[]) => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};

/** MTH of RFC 6962, section 2.1, over hashes of leaves. */
function naiveRoot(leaves: readonly Buffer[]): Buffer {
  const [first] = leaves;
  if (first === undefined) return sha256('');
  if (leaves.length === 1) return first;
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha256(Buffer.of(1), naiveRoot(leaves.slice(0, k)), naiveRoot(leaves.slice(k)));
}

/** Hash of a leaf, as RFC 6962 has it. */
function naiveLeaf(entry: Uint8Array): Buffer {
  return sha256(Buffer.of(0), entry);
}

/** Writes an archive into a directory. */
export function writeNaive({ files }: Pick<NaiveArchive, 'files'>, dir: string): void {
  for (const [name, bytes] of files) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), bytes);
  }
}

interface Key {
  readonly vkey: string;
  readonly id: Buffer;
  readonly secret: KeyObject;
}

function newKey(origin: string): Key {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  const typed = Buffer.concat([Buffer.of(1), raw]);
  const id = sha256(`${origin}\n`, typed).subarray(0, 4);
  const vkey = `${origin}+${id.toString('hex')}+${typed.toString('base64')}`;
  return { vkey, id, secret: privateKey };
}

const startMs = Date.UTC(2026, 0, 31, 8);
const minuteMs = 60_000;

/** Makes an archive of these commits, a minute apart; `edit` changes the text of an entry before it is signed. */
export function naiveArchive(
  commits: readonly NaiveCommit[],
  origin = 'sluice.test/naive',
  edit: (text: string, index: number) => string = (text) => text,
): NaiveArchive {
  const made = new Making(origin, edit);
  for (const [i, commit] of commits.entries()) made.commit(commit, startMs + i * minuteMs);
  return made;
}

class Making implements NaiveArchive {
  readonly files = new Map<string, Buffer>();
  readonly entries: Buffer[] = [];
  readonly notes: Buffer[] = [];
  readonly uids: string[][] = [];
  readonly #origin: string;
  readonly #edit: (text: string, index: number) => string;
  readonly #keys: Key[] = [];
  readonly #heads = new Map<string, { seq: number; leaf: string }>();
  #kept: object | null = null;
  #events = 0;

  constructor(origin: string, edit: (text: string, index: number) => string) {
    this.#origin = origin;
    this.#edit = edit;
    const key = newKey(origin);
    this.#keys.push(key);
    const manifest = {
      ...{ format: 'sluice-archive', version: 1, origin, key: key.vkey, salt: '5a'.repeat(32) },
      created_at: new Date(startMs).toISOString(),
    };
    this.files.set('archive.json', Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));
  }

  get vkeys(): readonly string[] {
    return this.#keys.map(({ vkey }) => vkey);
  }

  commit({ pages, rotates = false }: NaiveCommit, now: number): void {
    const at = new Date(now).toISOString();
    const signers = this.#keys.slice(-1);
    if (this.#kept === null) {
      const archive = sha256(this.files.get('archive.json') ?? '').toString('hex');
      this.#add({ t: 'start', at, archive, spool: 'spool-1', version: '0.1.0' });
    } else this.#add(this.#kept);
    if (rotates) {
      const key = newKey(this.#origin);
      signers.push(key);
      this.#keys.push(key);
      this.#add({ t: 'key', at, vkey: key.vkey });
    }
    if (pages.length > 0) this.#segment(pages, now);
    this.#sign(signers, now);
  }

  #segment(pages: readonly NaivePage[], now: number): void {
    const index = this.entries.length;
    const object = `segments/${day(now)}/${String(index).padStart(20, '0')}.zst`;
    const parts: Buffer[] = [];
    const entries = pages.map((page, i) => {
      const at = parts.reduce((sum, { length }) => sum + length, 0);
      return this.#page(page, { parts, segment: object, at, now, number: index + i });
    });
    const bytes = Buffer.concat(parts);
    const facts = { bytes: bytes.length, sha256: sha256(bytes).toString('hex') };
    this.#add({ t: 'segment', object, ...facts, pages: pages.length });
    for (const { stream, entry } of entries) {
      const head = this.#heads.get(stream);
      const chain = { t: 'page', stream, seq: (head?.seq ?? -1) + 1, prev: head?.leaf ?? null };
      const leaf = this.#add({ ...chain, ...entry });
      this.#heads.set(stream, { seq: chain.seq, leaf });
    }
    this.files.set(object, bytes);
  }

  #page(
    { stream, records: count = 2, kept, entry = {}, body: text, texts }: NaivePage,
    to: { parts: Buffer[]; segment: string; at: number; now: number; number: number },
  ) {
    const fetchedAt = new Date(to.now).toISOString();
    const made = (_: unknown, i: number) =>
      JSON.stringify({ id: `${stream}-${to.number}-${i}`, at: fetchedAt, note: 'ünïcode <b>' });
    const records = texts ?? Array.from({ length: count }, made);
    const body = Buffer.from(text ?? `{"data": [${records.join(', ')}],"next":null}`);
    const chosen = (kept ?? records.map((_, i) => i)).map((i) => records[i] ?? '');
    const uids = chosen.map((record) => sha256('uid', record));
    this.uids.push(uids.map((uid) => uid.toString('hex')));
    this.#events += chosen.length;
    const behind = Buffer.concat([
      ...uids,
      ...(kept === undefined ? [] : kept.map((i) => Buffer.of(i, 0, 0, 0))),
    ]);
    const frame = zstdCompressSync(body, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
    const header = Buffer.alloc(8);
    header.writeUInt32LE(0x184d2a50);
    header.writeUInt32LE(behind.length, 4);
    to.parts.push(frame, header, behind);
    const root = naiveRoot(chosen.map((record) => naiveLeaf(sha256(record)))).toString('hex');
    const hex = (bytes: Buffer) => sha256(bytes).toString('hex');
    const place = { segment: to.segment, at: to.at, length: frame.length };
    return {
      stream,
      entry: {
        ...{ place: [0, this.#events], source: stream, kind: 'log', fetched_at: fetchedAt },
        ...{ records: count, kept: chosen.length, items: 'data' },
        body: { sha256: hex(body), bytes: body.length, ...place },
        uids: { sha256: hex(behind), bytes: behind.length },
        events: { root, count: chosen.length },
        ...entry,
      },
    };
  }

  #add(entry: object): string {
    const bytes = Buffer.from(this.#edit(JSON.stringify(entry), this.entries.length));
    this.entries.push(bytes);
    return naiveLeaf(bytes).toString('hex');
  }

  #sign(signers: readonly Key[], now: number): void {
    this.#writeTiles();
    const size = this.entries.length;
    const root = naiveRoot(this.entries.map(naiveLeaf));
    const text = `${this.#origin}\n${size}\n${root.toString('base64')}\n`;
    const lines = signers.map(({ id, secret }) => {
      const signed = Buffer.concat([id, sign(null, Buffer.from(text), secret)]);
      return `— ${this.#origin} ${signed.toString('base64')}\n`;
    });
    const note = Buffer.from(`${text}\n${lines.join('')}`);
    const object = `checkpoints/${day(now)}/${String(size).padStart(20, '0')}.note`;
    this.files.set('checkpoint', note);
    this.files.set(object, note);
    this.notes.push(note);
    const facts = { size, root: root.toString('hex'), object };
    const at = new Date(now).toISOString();
    this.#kept = { t: 'checkpoint', at, ...facts, sha256: sha256(note).toString('hex') };
  }

  /** Tiles of the present size; partial ones of older sizes go. */
  #writeTiles(): void {
    for (const name of this.files.keys()) if (name.startsWith('tile/')) this.files.delete(name);
    const put = (level: string, row: readonly Buffer[]) => {
      for (let i = 0; i < row.length; i += 256) {
        const part = row.slice(i, i + 256);
        const partial = part.length < 256 ? `.p/${part.length}` : '';
        this.files.set(`tile/${level}/${groups(i / 256)}${partial}`, Buffer.concat(part));
      }
    };
    const sized = this.entries.map((entry) => {
      return Buffer.concat([Buffer.of(entry.length >> 8, entry.length & 255), entry]);
    });
    put('entries', sized);
    let row = this.entries.map(naiveLeaf);
    for (let level = 0; row.length > 0; level += 1) {
      put(String(level), row);
      const full = Math.floor(row.length / 256);
      row = Array.from({ length: full }, (_, i) => naiveRoot(row.slice(i * 256, i * 256 + 256)));
    }
  }
}

function groups(index: number): string {
  let path = String(index % 1000).padStart(3, '0');
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000)) {
    path = `x${String(rest % 1000).padStart(3, '0')}/${path}`;
  }
  return path;
}

function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10).replaceAll('-', '/');
}
