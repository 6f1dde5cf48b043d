// The open file of a file sink, or its files if the path has placeholders, with their lock and compression.

import { dirname, resolve } from 'node:path';
import {
  type Batch,
  type Delivery,
  ExportError,
  epochBegin,
  type FileLock,
  makeDirectory,
  type PositionReach,
  type Refusal,
  type SinkOpening,
} from '../../../src/contracts/index.ts';
import { isPerPage, pageNames, splitAtPlaceholder } from '../../shared/destination-names.ts';
import { forget, keptUid, withoutKnown } from '../../shared/known-events.ts';
import { linesOf } from '../../shared/lines.ts';
import { probeDirectory } from '../../shared/writable-directory.ts';
import { directoryMode } from './durable-files.ts';
import { faultOf, isOfFile } from './file-faults.ts';
import { type PageFileFailure, PageFiles } from './page-files.ts';
import { compressSegments } from './segment-compression.ts';
import { openSegmentFile, type SegmentFile } from './segment-file.ts';
import { finishedSegments } from './segment-names.ts';

/** The settings of a file sink that concern its files. */
export interface FileSettings {
  readonly path: string;
  readonly rotate?:
    | { readonly bytes?: number | undefined; readonly every?: number | undefined }
    | undefined;
  readonly compress: 'none' | 'gzip';
  readonly fsync: boolean;
}

/** The open file or files of a sink. */
export interface OpenFiles {
  write(batch: Batch, nowMs: number): Promise<Delivery>;
  reach(): PositionReach;
  close(): Promise<void>;
}

/** The lock and the compression of a sink, and the function that opens its files. */
export function filesOf(
  settings: FileSettings,
  { name, numbering, mark, position, tools }: SinkOpening,
) {
  const log = tools.log.with({ sink: name });
  const writer = { spool: numbering.spool, sharesState: tools.confirm !== undefined };
  const compression = settings.compress === 'gzip' ? compressSegments(log) : null;
  let lock: FileLock | null = null;
  const locked = (path: string) => {
    if (tools.lockFile !== undefined) makeDirectory(dirname(resolve(path)), directoryMode);
    return tools.lockFile?.(path, writer) ?? null;
  };
  const addLeftOver = async (path: string) => {
    for (const left of compression === null ? [] : await leftOver(path)) compression?.add(left);
  };
  const openFile = (path: string) =>
    openSegmentFile({
      ...{ path, sink: name, numbering, mark, log },
      rotateBytes: settings.rotate?.bytes,
      rotateEveryMs: settings.rotate?.every,
      flush: settings.fsync,
      onFinished: (finished) => compression?.add(finished),
    });
  const openOne = async (): Promise<OpenFiles> => {
    await addLeftOver(settings.path);
    const file = await openFile(settings.path);
    return {
      write: (batch, nowMs) => writeOne(file, batch, { name, numbering, nowMs }),
      reach: () => file.reach,
      close: () => file.close(),
    };
  };
  const openSeveral = (): OpenFiles => {
    const pathOf = pageNames(settings.path);
    const files = new PageFiles({
      ...{ pathOf, numbering, lock: locked },
      async open(path) {
        await addLeftOver(path);
        return await openFile(path);
      },
    });
    return {
      async write(batch, nowMs) {
        const failures = await files.write(batch, nowMs);
        const [first] = failures;
        if (first === undefined) return { outcome: 'delivered' };
        const passing = failures.find(({ cause }) => !isOfFile(cause));
        if (passing !== undefined) throw passing;
        const failed = failures.reduce((sum, { events }) => sum + events.length, 0);
        if (failed === batch.events.length) await expectWritable(settings.path, first);
        return { outcome: 'partly', again: [], refused: failures.flatMap(refusalsOf) };
      },
      // Each file has its own position; the sink's is the one of the state.
      reach: () => ({ position, ahead: files.isAhead }),
      close: () => files.close(),
    };
  };
  return {
    log,
    async open(): Promise<OpenFiles> {
      lock ??= locked(lockedPath(settings.path));
      return isPerPage(settings.path) ? openSeveral() : await openOne();
    },
    async close(): Promise<void> {
      await compression?.done();
      lock?.release();
      lock = null;
    },
  };
}

/** Rejects with the failure if the sink can create no file at all. */
async function expectWritable(path: string, failure: PageFileFailure): Promise<void> {
  await probeDirectory(dirname(resolve(lockedPath(path)))).catch(() => {
    throw failure;
  });
}

/** As messages show it, without sluice's own next step. */
function refusalsOf({ path, events, cause }: PageFileFailure): readonly Refusal[] {
  const { what } = faultOf(cause, '');
  const reason = `writing to ${path}: ${what}`;
  return events.map(({ uid }) => ({ uid, reason, by: 'only_destination' }));
}

async function writeOne(
  file: SegmentFile,
  batch: Batch,
  { name, numbering, nowMs }: Pick<SinkOpening, 'name' | 'numbering'> & { readonly nowMs: number },
): Promise<Delivery> {
  if (file.reach.position > batch.start) return alreadyThere(name);
  const { events, lines } = withoutKnown(batch, file.known);
  if (events.length > 0) {
    const bytes = linesOf(lines, { from: 0, to: events.length });
    const uids = events.map(keptUid).join('');
    const { start: from, end: to } = batch;
    await file.append({ bytes, from, to, uids }, nowMs);
  }
  forget(batch, file.known, epochBegin(numbering));
  return { outcome: 'delivered' };
}

/** The path that stands for all files of a sink, in the directory above the first placeholder. */
export function lockedPath(path: string): string {
  const [fixed, pattern] = splitAtPlaceholder(path);
  return `${fixed}${pattern.replaceAll('/', '_')}`;
}

/** Segments that were finished and not compressed when the process last ended. */
async function leftOver(path: string): Promise<readonly string[]> {
  return await finishedSegments(path).catch(() => []); // No directory yet, or no read permission: `send` reports it.
}

/** The file's position could not be read before: the engine reads it now and resumes from there. */
function alreadyThere(name: string): Delivery {
  const message = `sending to ${name}: events of the batch are in the file`;
  const next = 'No action needed: the sink continues after them.';
  const cause = new ExportError('sink_unreachable', message, { next });
  return { outcome: 'retry', afterMs: 0, cause };
}
