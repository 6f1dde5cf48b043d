// What is in a segment: bodies that any zstd opens, the uids behind each, and the tree over a page's records.

import { hash } from 'node:crypto';
import { zstdDecompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { contextOf, encodeEntry, type PageEntry, parseEntry } from '../../src/archive/entries.ts';
import {
  checkpointPath,
  encodeManifest,
  keptCheckpointPath,
  manifestPath,
  parseManifest,
  segmentPath,
  writerPath,
} from '../../src/archive/layout.ts';
import { rootOf } from '../../src/archive/merkle.ts';
import { parseSigningKey, signingKeyText } from '../../src/archive/note.ts';
import { keptRecords, recordLeaf } from '../../src/archive/records.ts';
import {
  type ArchivedPage,
  compressBody,
  encodeKept,
  pageRange,
  readPage,
  skippableFrame,
} from '../../src/archive/segments.ts';
import { releasePage } from '../../src/archive/verify/page-bodies.ts';
import { aPage } from '../support/a-page.ts';

const sha256 = (bytes: Uint8Array) => hash('sha256', bytes, 'hex');

async function anEntry(page: ArchivedPage, at: number): Promise<[PageEntry, Buffer]> {
  const frame = await compressBody(page.body);
  const content = encodeKept(page);
  const kept = page.uids.length / 32;
  const entry: PageEntry = {
    t: 'page',
    stream: 'audit',
    seq: 3,
    prev: null,
    place: [1, 7],
    source: 'audit',
    kind: 'audit',
    parent: 'p-1',
    is_update: true,
    delivery: { id: 'd', event: null },
    fetched_at: '2026-11-22T01:02:03.004Z',
    records: 3,
    kept,
    items: 'data',
    body: {
      sha256: sha256(page.body),
      bytes: page.body.length,
      segment: 'segments/x.zst',
      at,
      length: frame.length,
    },
    uids: { sha256: sha256(content), bytes: content.length },
    events: { root: sha256(content), count: kept },
  };
  return [entry, Buffer.concat([frame, skippableFrame(content)])];
}

const { body, uids } = aPage({ ids: ['a', 'b', 'c'] });

describe('segments', () => {
  test('each page is read by itself, and zstd opens all bodies at once', async () => {
    const whole: ArchivedPage = { body: Buffer.from(body), uids, kept: null };
    const part = { ...whole, uids: uids.subarray(0, 64), kept: Uint32Array.of(0, 2) };
    const [first, firstBytes] = await anEntry(whole, 0);
    const [second, secondBytes] = await anEntry(part, firstBytes.length);
    const segment = Buffer.concat([firstBytes, secondBytes]);
    const rangeOf = (entry: PageEntry) => {
      const { from, length } = pageRange(entry);
      return segment.subarray(from, from + length);
    };

    expect(readPage(first, rangeOf(first))).toEqual({ ...whole, uids: Buffer.from(uids) });
    expect(readPage(second, rangeOf(second))).toEqual({
      ...part,
      uids: Buffer.from(part.uids),
    });
    expect(zstdDecompressSync(segment)).toEqual(Buffer.concat([body, body]));
  });

  test('a page with no body and no records is one as well', async () => {
    const none = { body: Buffer.alloc(0), uids: new Uint8Array(0), kept: null };
    const [entry, bytes] = await anEntry(none, 0);

    const read = readPage({ ...entry, records: 0, kept: 0 }, bytes);

    expect(read.body).toHaveLength(0);
  });

  test('no byte of a page may be another, and none may lack', async () => {
    const [entry, bytes] = await anEntry({ body: Buffer.from(body), uids, kept: null }, 0);
    const lies: string[] = [];

    for (let at = 0; at < bytes.length; at += 1) {
      const bad = Buffer.from(bytes);
      bad[at] = (bad[at] ?? 0) ^ 0x80;
      try {
        if (!readPage(entry, bad).body.equals(body)) lies.push(`byte ${at}`);
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
      }
    }

    expect(lies).toEqual([]);
    expect(() => readPage(entry, bytes.subarray(0, -1))).toThrow(SyntaxError);
    expect(() =>
      readPage({ ...entry, body: { ...entry.body, bytes: body.length - 1 } }, bytes),
    ).toThrow(SyntaxError);
  });
});

test('a large body is freed when it is released, and a small one is not, because it lies beside others', async () => {
  const large = Buffer.from(JSON.stringify({ data: [1, 2, 'x'.repeat(200_000)] }));

  for (const [own, left] of [
    [large, 0],
    [Buffer.from(body), body.length],
  ] as const) {
    const [entry, bytes] = await anEntry({ body: own, uids, kept: null }, 0);
    const page = { ...readPage(entry, bytes), records: [] };

    releasePage(page);

    expect(page.body.length).toBe(left);
    expect(page.uids).toEqual(Buffer.from(uids));
  }
});

describe('entries', () => {
  test('one is read as it was written, with the facts about its page', async () => {
    const [entry] = await anEntry({ body: Buffer.from(body), uids, kept: null }, 0);

    expect(parseEntry(encodeEntry(entry))).toEqual(entry);
    expect(contextOf(entry)).toEqual({
      source: 'audit',
      stream: 'audit',
      kind: 'audit',
      parent: 'p-1',
      isUpdate: true,
      fetchedAt: Date.parse(entry.fetched_at),
      delivery: { id: 'd', event: null },
    });
    expect(() => parseEntry(encodeEntry({ ...entry, prev: 'x' }))).toThrow(/prev/);
    expect(() => parseEntry(Buffer.from('{"t":"poem"}'))).toThrow(SyntaxError);
    expect(() => parseEntry(Buffer.from('{'))).toThrow(SyntaxError);
    expect(() => encodeEntry({ ...entry, stream: 'x'.repeat(65_000) })).toThrow(/65535/);
  });
});

test('records of a page are those that were kept, as upstream sent them', () => {
  const page = aPage({ ids: ['a', 'b', 'c'] });
  const texts = (kept: Uint32Array | null) =>
    keptRecords({ ...page, kept }).map((record) => JSON.parse(Buffer.from(record).toString()).id);

  expect(texts(null)).toEqual(['a', 'b', 'c']);
  expect(texts(Uint32Array.of(0, 2))).toEqual(['a', 'c']);
  expect(texts(new Uint32Array(0))).toEqual([]);
  expect(rootOf([recordLeaf(Buffer.from('{}'))]).toString('hex')).toBe(
    // printf '{}' | sha256sum, behind a zero byte
    sha256(Buffer.concat([Buffer.of(0), Buffer.from(sha256(Buffer.from('{}')), 'hex')])),
  );
});

describe('layout', () => {
  test('names hold the day and the number', () => {
    const at = Date.UTC(2026, 10, 2);

    expect([manifestPath, checkpointPath, writerPath]).toEqual([
      'archive.json',
      'checkpoint',
      'writer',
    ]);
    expect(segmentPath(12, at)).toBe('segments/2026/11/02/00000000000000000012.zst');
    expect(keptCheckpointPath(300, at)).toBe('checkpoints/2026/11/02/00000000000000000300.note');
  });

  test('the manifest is read as it was written; a newer or another is refused', () => {
    const { verifier } = parseSigningKey(signingKeyText('o', Buffer.alloc(32, 1)));
    const about = { origin: 'o', key: verifier.vkey, salt: '0'.repeat(64) };
    const bytes = encodeManifest({ ...about, created_at: '2026-11-22T00:00:00Z' });

    expect(parseManifest(bytes)).toMatchObject({ ...about, version: 1 });
    expect(() => parseManifest(Buffer.from(`${bytes}`.replace('1,', '2,')))).toThrow(/format 2/);
    expect(() => parseManifest(Buffer.from(`${bytes}`.replace('sluice', 'tar')))).toThrow(/not/);
  });
});
