// Writes an archive's events beside it as Parquet (src/parquet/lake.ts). It belongs to an `archive`
// with a `lake`, gets the same events at its own pace, and so never delays the archive. A directory
// has no object metadata: the facts about a cut are the first line of its object here, in any
// store. Invariants: nothing is written before this state's archive was opened there, which decides
// the ownership and whether it is writable; no cut that others may have written or changed decides
// which events are written.

import { hash } from 'node:crypto';
import { z } from 'zod';
import {
  cutsPrefix,
  encodeLakeMade,
  isClaimedBy,
  manifestPath,
  parseManifest,
  readSmall,
  type Signer,
  type SigningSettings,
  StoredLakeCuts,
  signedFacts,
  signerOf,
  signerOfLog,
  signingSettings,
} from '../../src/archive/index.ts';
import { defineSink } from '../../src/contracts/config.ts';
import { ExportError, presentEpoch, type SinkOpening } from '../../src/contracts/index.ts';
import { bucketKeys, type ObjectStore, openStore } from '../../src/objects/index.ts';
import { onlyEvents } from '../shared/known-events.ts';
import { stemIn } from './s3/cut.ts';
import type { CutBody } from './s3/lines-body.ts';
import { objectSink } from './s3/object-sink.ts';
import type { TableNames } from './s3/parquet-body.ts';
import type { CutStore } from './s3/stored-object.ts';
import { uidList } from './s3/uid-list.ts';

/** The default of `every`. */
export const lakeEveryUsual = '15m';
/**
 * The archive is opened at the same time as its lake: how long the lake waits for it, and the poll
 * interval.
 */
const openingMs = 2_000;
const lookEveryMs = 50;
const lineEnd = 0x0a;
/** The sink of an archive's lake; no config names it. */
export const lakeSink = defineSink({
  type: 'lake',
  summary: 'Writes the events of an archive as Parquet beside it.',
  fields: { location: z.string(), ...bucketKeys, ...signingSettings.shape, every: z.number() },
  carries: ['rows'],
  usualFormat: 'parquet',
  sample: { to: null, lines: () => [] },
  inFlightMax: 1_000,
  batch: { events: 5000, bytes: 1024 * 1024, waitMs: 1000 },
  assurance: () => 'once',
  testSettings: () => null,
  own: ({ location }) => ({ key: 'location', name: location, shardSeparator: '/' }),

  async open(settings, opening) {
    const store = await openStore(settings.location, settings);
    // Loaded only if a lake is written.
    const { parquetBody, parquetBytesMax } = await import('./s3/parquet-body.ts');
    const names = await lakeNames(settings.region ?? 'local');
    return objectSink({
      store: storeOfCuts(store, { opening, signing: settings }),
      opening,
      rotate: { bytes: parquetBytesMax, every: settings.every },
      body: () => bodyOfPages(parquetBody(names)),
      isSigned: true,
    });
  },

  async probe(settings) {
    (await openStore(settings.location, settings)).close();
  },
});

/** Sinks' own reports are in no page of the archive, and so in no object here. */
function bodyOfPages(body: CutBody): CutBody {
  return {
    get bytes() {
      return body.bytes;
    },
    add: (batch) => body.add(onlyEvents(batch, ({ context }) => context.isOfSink !== true)),
    finish: (cut) => body.finish(cut),
  };
}

async function lakeNames(region: string): Promise<TableNames> {
  const { lakeName } = await import('../../src/parquet/index.ts');
  return {
    nameOf: (object) => lakeName(object, region),
    list: (made, uids) => ({
      ending: 'cut',
      body: [encodeLakeMade(made), uidList(uids, 'gzip')],
    }),
  };
}

/**
 * The store for the object writer: cuts have a folder of their own, and their facts in their first
 * line, signed by the archive's key. Other objects are named by their content: an existing one with
 * other bytes was written by a third party, and is replaced.
 */
function storeOfCuts(
  store: ObjectStore,
  { opening, signing }: { readonly opening: SinkOpening; readonly signing: SigningSettings },
): CutStore {
  const refused = new Set<string>();
  const cuts = new StoredLakeCuts({
    store,
    async key() {
      const by = await signerThere(store, signing);
      return by && { key: by.signer.verifier, archive: by.archive };
    },
    refused(object, error) {
      if (refused.has(object)) return;
      refused.add(object);
      const next =
        'Find out who wrote to the archive. Its events are written again where they are still held.';
      opening.tools.log.warn('lake_cut_ignored', 'a cut of the lake does not count', {
        object,
        error,
        next,
      });
    },
  });
  return {
    location: store.location,
    close: () => store.close(),
    async create(name, body, about) {
      await untilOpened(store, opening);
      if (stemIn(name) === null) {
        if ((await store.create(name, body, about)) === 'exists') await settle(store, name, body);
        return 'created';
      }
      const [metadata, object] = [about?.metadata ?? {}, `${cutsPrefix}${name}`];
      const by = await signerThere(store, signing);
      const facts =
        by === null
          ? Buffer.from(`${JSON.stringify(metadata)}\n`)
          : await signedFacts(metadata, body, { ...by, object });
      const whole = [facts, ...body];
      if ((await store.create(object, whole, about)) === 'created') return 'created';
      const found = await store.facts(object);
      if (found === null || (await cuts.read(object)) !== null) return 'exists';
      // A third party has written it.
      return (await store.replace(object, whole, found.tag)) === null ? 'exists' : 'created';
    },
    async facts(name) {
      const found = await cuts.read(`${cutsPrefix}${name}`);
      if (found === null) return null;
      const { body, tag } = found;
      const line = Buffer.from(body.subarray(0, body.indexOf(lineEnd))).toString('latin1');
      return { bytes: body.length, tag, metadata: metadataIn(line) };
    },
    async read(name, { from, length } = { from: 0, length: Number.POSITIVE_INFINITY }) {
      const found = await cuts.read(`${cutsPrefix}${name}`);
      return found && { ...found, body: found.body.subarray(from, from + length) };
    },
    async *list(prefix, after = '') {
      await untilOpened(store, opening);
      const behind = after === '' ? undefined : `${cutsPrefix}${after}`;
      for await (const { name, bytes } of store.list(`${cutsPrefix}${prefix}`, behind)) {
        yield { name: name.slice(cutsPrefix.length), bytes };
      }
    },
  };
}

/** Writes these bytes where an object with this name exists already. */
async function settle(
  store: ObjectStore,
  name: string,
  body: readonly Uint8Array[],
): Promise<void> {
  const bytes = body.reduce((sum, { length }) => sum + length, 0);
  const found = await readSmall(store, name, bytes);
  if (found !== null && Buffer.concat(body).equals(found.body)) return;
  await store.replace(name, body, found?.tag ?? null);
}

/**
 * The signer of the cuts of the archive there; null: its config has no key, as in tests of the lake
 * alone.
 */
async function signerThere(
  store: ObjectStore,
  signing: SigningSettings,
): Promise<{ readonly signer: Signer; readonly archive: string } | null> {
  if (signing.signing_key === undefined && signing.signing_key_command === undefined) return null;
  const manifest = await readSmall(store, manifestPath);
  const origin = manifest === null ? null : parseManifest(manifest.body).origin;
  return {
    signer: signerOfLog(signerOf(signing), { shard: signing.shard, origin }),
    archive: hash('sha256', manifest?.body ?? '', 'hex'),
  };
}

/** Throws if the archive's sink has not opened the archive there: it may be another's, or unavailable. */
async function untilOpened(
  store: ObjectStore,
  { name, numbering, tools: { clock } }: SinkOpening,
): Promise<void> {
  const archive = name.replace(/\.[^.]*$/, '');
  const state = { spool: numbering.spool, epoch: presentEpoch(numbering), sink: archive };
  const until = clock.monotonic() + openingMs;
  while (!(await isClaimedBy(store, state))) {
    if (clock.monotonic() < until) {
      await clock.sleep(lookEveryMs);
      continue;
    }
    throw new ExportError(
      'sink_unreachable',
      `writing the lake in ${store.location}: ${archive} has not opened the archive there`,
      {
        next: `Look why ${archive} does not open it; the lake resumes after that. Nothing is lost: the events stay in the spool.`,
      },
    );
  }
}

function metadataIn(line: string): Readonly<Record<string, string>> {
  try {
    return z.record(z.string(), z.string()).parse(JSON.parse(line));
  } catch {
    return {};
  }
}
