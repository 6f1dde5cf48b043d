// Writes whole pages as upstream sent them into an archive that proves itself (src/archive/). A
// batch is answered when a signed checkpoint that covers it is durable. Whatever fails, the archive
// is opened anew before the next batch: what a crash leaves and what a failure leaves is the same,
// and only the opening knows how far the far side has come.

import { resolve } from 'node:path';
import { z } from 'zod';
import { parseSigningKey } from '../../src/archive/note.ts';
import { checkArchive } from '../../src/archive/recovery.ts';
import { type ArchiveWriter, openWriter } from '../../src/archive/writer.ts';
import { defineSink } from '../../src/contracts/definition.ts';
import { asExportError, ExportError, errorCodeOf, errorText } from '../../src/contracts/errors.ts';
import { reachOf } from '../../src/contracts/numbering.ts';
import { duration, type Secret, secret } from '../../src/contracts/settings.ts';
import type { Delivery } from '../../src/contracts/sink.ts';
import { openStore } from '../../src/objects/open.ts';
import { bucketKeys } from '../../src/objects/s3-settings.ts';
import { probeDirectory } from '../shared/writable-directory.ts';
import { CheckpointEvents } from './archive/checkpoint-events.ts';
import { lakeEveryUsual, lakeSink } from './lake.ts';

/** A checkpoint in a directory costs some flushes of the disk, one in a bucket some requests. */
const checkpointEveryMs = { directory: 10_000, bucket: 300_000 };

interface Settings {
  readonly location: string;
  readonly checkpoint_every?: number | undefined;
}

/** `type: archive`. */
export const archiveSink = defineSink({
  type: 'archive',
  summary:
    'Keeps every page as upstream sent it in an archive that proves offline that it is whole.',
  takes: 'pages',
  fields: {
    location: z
      .string()
      .min(1)
      .describe('a directory, relative to the working directory, or `s3://BUCKET/PREFIX`'),
    ...bucketKeys,
    origin: z
      .string()
      .min(1)
      .optional()
      .describe('the log’s name, which is the signing key’s; given, it must be that'),
    signing_key: secret().describe(
      'the key that `sluice archive keys new` has made, usually `${file:…}`',
    ),
    checkpoint_every: duration()
      .optional()
      .describe('what was archived is signed this often; left out: `10s`, in a bucket `5m`'),
    lake: z
      .strictObject({
        every: duration()
          .prefault(lakeEveryUsual)
          .describe('objects are finished when their first event has waited for so long'),
      })
      .optional()
      .describe('writes the events as Parquet as well, below `lake/`; left out: it does not'),
  },
  carries: ['json'],
  usualFormat: 'json',
  companion: ({ lake, ...place }) =>
    lake === undefined
      ? null
      : {
          suffix: 'lake',
          definition: lakeSink,
          settings: { ...place, type: 'lake', every: lake.every },
        },
  sample: {
    to: { what: 'the directory of the archive', usual: './archive' },
    lines: (to) => [
      `location: ${JSON.stringify(to)}`,
      'signing_key: ${file:./archive.key} # made by: npx sluice archive keys new archive.key',
      '# checkpoint_every: 10s',
    ],
  },
  // Pages wait for their checkpoint; ready() bounds how many.
  inFlightMax: 10_000,
  batch: { events: 5000, bytes: 1024 * 1024, waitMs: 250 },
  assurance: () => 'once',
  answersEveryMs: everyMs,
  own: ({ location }) => ({
    key: 'location',
    name: isBucket(location) ? location : resolve(location),
  }),
  advice: ({ signing_key: key }) => [
    'Whoever has the archive and its signing key can write another history: keep checkpoints elsewhere as well, and check against them with `archive verify --since`.',
    ...(key.reference?.startsWith('file:') === false
      ? ['Keep the signing key in a file that only sluice may read, as signing_key: ${file:…}.']
      : []),
  ],

  async open(settings, opening) {
    const { name, numbering, mark, remember, tools } = opening;
    const events = new CheckpointEvents(opening, everyMs(settings));
    const store = await openStore(settings.location, settings);
    let kept = mark;
    let writer: Promise<ArchiveWriter> | null = null;
    /** The writer where it is open. */
    let open: ArchiveWriter | null = null;
    let isHurried = false;
    let isClosed = false;
    const opened = async (): Promise<ArchiveWriter> => {
      writer ??= openWriter({
        store,
        clock: tools.clock,
        signer: signerOf(settings),
        numbering,
        checkpointEveryMs: everyMs(settings),
        mark: kept,
        remember: async (next) => {
          await remember(next);
          kept = next;
        },
        signed: async (checkpoint) => {
          await events.signed(checkpoint);
          if (isHurried) await events.finish();
        },
      });
      try {
        const ready = await writer;
        open = ready;
        if (!ready.isBroken) return ready;
      } catch (error) {
        writer = null;
        throw error;
      }
      writer = null;
      return await opened();
    };
    const reach = async () => {
      const { place } = await opened();
      return place === null ? null : reachOf(place, numbering);
    };
    return {
      async send(batch, signal) {
        signal.throwIfAborted();
        isHurried = false;
        try {
          const archive = await opened();
          if (((await reach())?.position ?? 0) > batch.start) return stoodThere(name);
          const added = archive.add(batch.pages);
          if (isHurried) await archive.flush();
          await added;
          return { outcome: 'delivered' };
        } catch (error) {
          return failureMeaning(asExportError(error, `archiving in ${store.place}`));
        }
      },
      async ready(signal) {
        await (await writer?.catch(() => null))?.ready(signal);
      },
      flush() {
        isHurried = true;
        writer?.then((archive) => archive.flush()).catch(() => undefined);
      },
      dueInMs: () => open?.dueInMs ?? null,
      committed: reach,
      async close() {
        // The engine closes a sink again that it has closed to have it settle.
        if (isClosed) return;
        isClosed = true;
        isHurried = true;
        try {
          await (await writer)?.close();
          await events.finish();
        } catch (error) {
          const { code, message } = asExportError(error, `closing the archive ${store.place}`);
          tools.log.warn('the archive could not be closed well; that is mended at the next start', {
            sink: name,
            code,
            error: message,
          });
        } finally {
          store.close();
        }
      },
    };
  },

  async probe(settings, _tools, signal) {
    signal.throwIfAborted();
    const { location } = settings;
    if (!isBucket(location)) await probeDirectory(location).catch(tellNotWritable(location));
    const store = await openStore(location, settings);
    try {
      await checkArchive(store, signerOf(settings));
    } finally {
      store.close();
    }
  },
});

function tellNotWritable(location: string) {
  return (error: unknown): never => {
    const what = errorCodeOf(error) || errorText(error);
    throw new ExportError('sink_refused', `looking whether ${location} can be written: ${what}`, {
      next: 'Let the user that runs sluice write there, or change location.',
      cause: error,
    });
  };
}

function isBucket(location: string): boolean {
  return location.startsWith('s3://');
}

function everyMs({ location, checkpoint_every: every }: Settings): number {
  return every ?? (isBucket(location) ? checkpointEveryMs.bucket : checkpointEveryMs.directory);
}

/** Read anew at each opening, so that a key that was mended in its file is taken. */
function signerOf({
  signing_key: key,
  origin,
}: {
  signing_key: Secret;
  origin?: string | undefined;
}) {
  try {
    const signer = parseSigningKey(key.reveal());
    const { name } = signer.verifier;
    if (origin === undefined || origin === name) return signer;
    throw new SyntaxError(`it is a key of ${name}, and origin is ${origin}`);
  } catch (error) {
    if (error instanceof ExportError) throw error;
    throw new ExportError('sink_refused', `reading signing_key: ${errorText(error)}`, {
      next: 'Make a key with `sluice archive keys new FILE`, and name it as signing_key: ${file:FILE}.',
    });
  }
}

/** The archive was not asked before how far it is: the engine asks, and goes on from there. */
function stoodThere(name: string): Delivery {
  const message = `sending to ${name}: pages of the batch stand in the archive`;
  const next = 'Nothing: it goes on behind them.';
  const cause = new ExportError('sink_unreachable', message, { next });
  return { outcome: 'retry', afterMs: 0, cause };
}

/** Pages are never refused one by one: what refuses one refuses the archive. */
function failureMeaning(cause: ExportError): Delivery {
  switch (cause.code) {
    case 'disk_full':
    case 'sink_unreachable':
    case 'sink_throttled':
      return { outcome: 'retry', cause };
    default:
      return { outcome: 'refused', scope: 'sink', cause };
  }
}
