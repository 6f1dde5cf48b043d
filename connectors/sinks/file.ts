// Writes events as lines to a file, each once. The active file is exactly `path`; when it is full
// or old enough it is renamed to a name with the spool offset of its first event, and compressed in
// the background. file/segment-file.ts explains how each event is written once, and
// file/segment-note.ts the note beside the file. The age is checked when a batch comes, so a file
// without new events stays active: the engine owns the timers, and an old file does no harm.

import { constants, existsSync, statSync } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { defineSink, duration, size } from '../../src/contracts/config.ts';
import {
  type Delivery,
  ExportError,
  epochBegin,
  errorCodeOf,
  errorText,
  type FileLock,
  type Log,
  makeDirectory,
  realPathOf,
  type Tools,
} from '../../src/contracts/index.ts';
import { fixedNameFlaw } from '../shared/destination-names.ts';
import { forget, keptUid, withoutKnown } from '../shared/known-events.ts';
import { linesOf } from '../shared/lines.ts';
import { probeDirectory } from '../shared/writable-directory.ts';
import { directoryMode } from './file/durable-files.ts';
import { compressSegments } from './file/segment-compression.ts';
import { openSegmentFile, type SegmentFile } from './file/segment-file.ts';
import { finishedSegments } from './file/segment-names.ts';

/** `type: file`. */
export const fileSink = defineSink({
  type: 'file',
  summary: 'Writes events as lines to a file, each event once, with rotation and compression.',
  fields: {
    path: z.string().min(1).describe('the active file; relative to the working directory'),
    rotate: z
      .strictObject({
        bytes: size().optional().describe('finish the file before a batch exceeds this size'),
        every: duration()
          .optional()
          .describe('finish a file of this age when the next events arrive'),
      })
      .optional()
      .describe('when the file is finished and a new one starts; default: never'),
    compress: z.enum(['none', 'gzip']).default('none').describe('compression of finished files'),
    fsync: z
      .boolean()
      .default(true)
      .describe('flush each batch to the disk; without it a power cut can lose events'),
  },
  carries: ['lines', 'json', 'gelf'],
  usualFormat: 'json',
  sample: {
    to: { what: 'the file to write', usual: './out/events.ndjson' },
    lines: (to) => [
      `path: ${JSON.stringify(to)}`,
      'format: json # one OCSF event a line; { type: json, schema: original } is the record as it came',
      '# rotate: { bytes: 100MiB, every: 1h }',
      '# compress: gzip # of files that are finished',
    ],
  },
  inFlightMax: 1,
  batch: { events: 5000, bytes: 1024 * 1024, waitMs: 250 },
  flaw: ({ path }) => fixedNameFlaw('path', path),
  assurance: () => 'once',
  shared: () => ({
    assurance: 'answered',
    advice: [
      'with state.kafka at least once: a process that is paused in the middle of a write (SIGSTOP, a suspended machine) and resumes may write events that its successor has written',
      'a local directory of each machine gives repeats at each takeover, since the successor cannot see the file; use a directory that all machines share, or a sink whose destination refuses repeats (kafka with exactly_once, s3, elasticsearch)',
    ],
  }),
  testSettings: () => null,
  own: ({ path }) => ({ key: 'path', name: sameFile(path) }),
  writes: ({ path }) => path,

  async open(settings, { name, numbering, mark, tools }) {
    const log = tools.log.with({ sink: name });
    const writer = { spool: numbering.spool, sharesState: tools.confirm !== undefined };
    const compression = settings.compress === 'gzip' ? compressSegments(log) : null;
    let lock: FileLock | null = null;
    const openFile = async () => {
      if (tools.lockFile !== undefined)
        makeDirectory(dirname(resolve(settings.path)), directoryMode);
      lock ??= tools.lockFile?.(settings.path, writer) ?? null;
      return await openSegmentFile({
        path: settings.path,
        numbering,
        mark,
        rotateBytes: settings.rotate?.bytes,
        rotateEveryMs: settings.rotate?.every,
        flush: settings.fsync,
        log,
        onFinished: (path) => compression?.add(path),
      });
    };
    for (const path of compression === null ? [] : await leftOver(settings.path)) {
      compression?.add(path);
    }
    let file: SegmentFile | null = await openFile().catch((error: unknown) => report(error, log));
    return {
      async send(batch, signal) {
        signal.throwIfAborted();
        try {
          file ??= await openFile();
          if (file.reach.position > batch.start) return alreadyThere(name);
          const { events, lines } = withoutKnown(batch, file.known);
          if (events.length > 0) {
            const bytes = linesOf(lines, { from: 0, to: events.length });
            const uids = events.map(keptUid).join('');
            const { start: from, end: to } = batch;
            await file.append({ bytes, from, to, uids }, tools.clock.now());
          }
          forget(batch, file.known, epochBegin(numbering));
          return { outcome: 'delivered' };
        } catch (error) {
          return failureMeaning(error, `sending to ${name}: writing to ${settings.path}`);
        }
      },
      committed: async () => file?.reach ?? null,
      async close() {
        await file?.close().catch((error: unknown) => report(error, log));
        await compression?.done();
        lock?.release();
        lock = null;
      },
    };
  },

  async probe({ path }, tools, signal) {
    signal.throwIfAborted();
    const inUse = whoWrites(path, tools);
    if (inUse !== null) throw inUse;
    try {
      if (await exists(path)) {
        if (!(await stat(path)).isFile()) throw new Error('it is not a regular file');
        await access(path, constants.R_OK | constants.W_OK);
      }
      await probeDirectory(dirname(resolve(path)));
    } catch (error) {
      const what = errorCodeOf(error) || errorText(error);
      throw new ExportError('sink_refused', `looking whether ${path} can be written: ${what}`, {
        next: 'Let the user that runs sluice write the file and its directory, or change path.',
        cause: error,
      });
    }
  },
});

/** Segments that were finished and not compressed when the process last ended. */
async function leftOver(path: string): Promise<readonly string[]> {
  return await finishedSegments(path).catch(() => []); // No directory yet, or no read permission: `send` reports it.
}

/** The same text for every path to one file, hard links included. */
function sameFile(path: string): string {
  const real = realPathOf(path);
  const found = statSync(real, { throwIfNoEntry: false });
  return found?.isFile() && found.nlink > 1 ? `inode ${found.dev}:${found.ino}` : real;
}

/** The error if another process writes to the file; null: the file is free. */
function whoWrites(path: string, { lockFile }: Tools): ExportError | null {
  if (lockFile === undefined || !existsSync(dirname(resolve(path)))) return null;
  try {
    lockFile(path, { spool: '', sharesState: false }).release();
    return null;
  } catch (error) {
    // Other faults are reported when the file itself is opened.
    return error instanceof ExportError ? error : null;
  }
}

function report(error: unknown, log: Log): null {
  log.warn('file_retried', 'the file could not be opened or closed; retrying', {
    error: error instanceof ExportError ? error.message : errorCodeOf(error),
  });
  return null;
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** The file's position could not be read before: the engine reads it now and resumes from there. */
function alreadyThere(name: string): Delivery {
  const message = `sending to ${name}: events of the batch are in the file`;
  const next = 'No action needed: the sink continues after them.';
  const cause = new ExportError('sink_unreachable', message, { next });
  return { outcome: 'retry', afterMs: 0, cause };
}

/**
 * A full disk and transient faults are retried; a missing permission stops the sink. Events stay in
 * the spool.
 */
function failureMeaning(error: unknown, doing: string): Delivery {
  if (error instanceof ExportError) {
    const isPassing = error.code === 'sink_unreachable';
    if (isPassing) return { outcome: 'retry', cause: error };
    return { outcome: 'refused', scope: 'sink', cause: error };
  }
  const code = errorCodeOf(error);
  const message = `${doing}: ${code || errorText(error)}`;
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT': {
      const next = 'Free space on the disk of path; nothing was lost, the events stay held.';
      return {
        outcome: 'retry',
        cause: new ExportError('disk_full', message, { next, cause: error }),
      };
    }
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'EISDIR':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENAMETOOLONG': {
      const next = 'Let the user that runs sluice write there, or change path; nothing was lost.';
      const cause = new ExportError('sink_refused', message, { next, cause: error });
      return { outcome: 'refused', scope: 'sink', cause };
    }
    default: {
      const next = 'Nothing was lost: the events stay held and are written again.';
      const cause = new ExportError('sink_unreachable', message, { next, cause: error });
      return { outcome: 'retry', cause };
    }
  }
}
