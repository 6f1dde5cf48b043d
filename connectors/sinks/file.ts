// Writes events as lines to a file, each once. The active file is exactly `path`; when it is full
// or old enough it is renamed to a name with the spool offset of its first event, and compressed in
// the background. file/segment-file.ts explains how each event is written once, and
// file/segment-note.ts the note beside the file. The age is checked when a batch comes, so a file
// without new events stays active: the engine owns the timers, and an old file does no harm.
// With `{company}` or `{source}` in `path` there are several files (file/page-files.ts).

import { constants, existsSync } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { defineSink, duration, size } from '../../src/contracts/config.ts';
import {
  type Delivery,
  ExportError,
  errorCodeOf,
  type Log,
  type Tools,
} from '../../src/contracts/index.ts';
import { isPerPage, pageNames, patternFlaw } from '../shared/destination-names.ts';
import { probeDirectory } from '../shared/writable-directory.ts';
import { faultOf, isOfFile } from './file/file-faults.ts';
import { filesOf, lockedPath, type OpenFiles } from './file/open-files.ts';
import { PageFileFailure, sameFile } from './file/page-files.ts';

/** `type: file`. */
export const fileSink = defineSink({
  type: 'file',
  summary: 'Writes events as lines to a file, each event once, with rotation and compression.',
  fields: {
    path: z
      .string()
      .min(1)
      .describe(
        'the active file, with `{company}` and `{source}` (docs/destinations.md); relative to the working directory',
      ),
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
  flaw: ({ path }) => patternFlaw('path', path) ?? nulFlaw(path) ?? longNameFlaw(path),
  assurance: () => 'once',
  shared: () => ({
    assurance: 'answered',
    advice: [
      'with state.kafka at least once: a process that is paused in the middle of a write (SIGSTOP, a suspended machine) and resumes may write events that its successor has written',
      'a local directory of each machine gives repeats at each takeover, since the successor cannot see the file; use a directory that all machines share, or a sink whose destination refuses repeats (kafka with exactly_once, s3, elasticsearch)',
    ],
  }),
  testSettings: () => null,
  own: ({ path }) => ({ key: 'path', name: nameOfFile(path) }),
  writes: ({ path }) => lockedPath(path),

  async open(settings, opening) {
    const { name, tools } = opening;
    const files = filesOf(settings, opening);
    let sink: OpenFiles | null = await files
      .open()
      .catch((error: unknown) => report(error, files.log));
    return {
      ...(isPerPage(settings.path) && {
        destinationOf: pageNames(settings.path),
        hasPositions: true,
      }),
      async send(batch, signal) {
        signal.throwIfAborted();
        try {
          sink ??= await files.open();
          return await sink.write(batch, tools.clock.now());
        } catch (error) {
          // With placeholders, the operator has to know which of the files is at fault.
          const { path, cause } =
            error instanceof PageFileFailure ? error : { path: settings.path, cause: error };
          return failureMeaning(cause, `sending to ${name}: writing to ${path}`);
        }
      },
      isDoneOnceDelivered: true,
      committed: async () => sink?.reach() ?? null,
      async close() {
        await sink?.close().catch((error: unknown) => report(error, files.log));
        await files.close();
      },
    };
  },

  async probe({ path }, tools, signal) {
    signal.throwIfAborted();
    const inUse = whoWrites(lockedPath(path), tools);
    if (inUse !== null) throw inUse;
    try {
      if (!isPerPage(path) && (await exists(path))) {
        const found = await stat(path);
        if (found.isDirectory()) throw Object.assign(new Error(path), { code: 'EISDIR' });
        if (!found.isFile()) throw new Error('it is not a regular file');
        await access(path, constants.R_OK | constants.W_OK);
      }
      await probeDirectory(dirname(resolve(lockedPath(path))));
    } catch (error) {
      const { what, next } = faultOf(error, 'Create its directory, or change path.');
      const message = `looking whether ${path} can be written: ${what}`;
      throw new ExportError('sink_refused', message, { next, cause: error });
    }
  },
});

/** File systems allow 255 bytes in a name; the note's name and those of finished files are longer. */
const nameBytesMax = 200;

function nulFlaw(path: string): string | null {
  return path.includes('\0') ? 'path: it has a NUL character, which no file name may have' : null;
}

/** As `sameFile`; a path that cannot be looked up stands for itself, so that `send` reports the fault. */
function nameOfFile(path: string): string {
  try {
    return sameFile(path);
  } catch {
    return resolve(path);
  }
}

function longNameFlaw(path: string): string | null {
  if (!isPerPage(path)) return null;
  const longest = path
    .split('/')
    .map((part) => Buffer.byteLength(part.replaceAll(/\{(company|source)\}/g, 'x'.repeat(64))))
    .reduce((most, bytes) => Math.max(most, bytes));
  if (longest <= nameBytesMax) return null;
  return `path: a name in it may have ${longest} bytes, as a value has up to 64; expected at most ${nameBytesMax}: put the placeholders into different directories, or shorten the fixed text`;
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
  const { what, next } = faultOf(
    error,
    'Nothing was lost: the events stay held and are written again.',
  );
  const message = `${doing}: ${what}`;
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT': {
      const cause = new ExportError('disk_full', message, {
        next: 'Free space on the disk of path; nothing was lost, the events stay held.',
        cause: error,
      });
      return { outcome: 'retry', cause };
    }
    default: {
      if (isOfFile(error)) {
        const lossless = `${next} Nothing was lost.`;
        const cause = new ExportError('sink_refused', message, { next: lossless, cause: error });
        return { outcome: 'refused', scope: 'sink', cause };
      }
      const cause = new ExportError('sink_unreachable', message, { next, cause: error });
      return { outcome: 'retry', cause };
    }
  }
}
