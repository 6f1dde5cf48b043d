// The names around a file sink's path. For `out/events.ndjson`: the active segment is that file
// itself; a finished one is `out/events.0000000000000042.ndjson`, named by the spool offset of its
// first event, with `.gz` once compressed; `out/.events.ndjson.sluice` is the note about the active
// segment (segment-note.ts). Invariant: an existing name is never reused: if a new spool begins at
// offset 0 beside an old one's files, its names end in `-2`, `-3` and so on.

import { existsSync } from 'node:fs';
import { readdir, rename } from 'node:fs/promises';
import { basename, dirname, join, parse } from 'node:path';
import { flushNames, type Offset } from '../../../src/contracts/index.ts';
import type { SegmentFileSettings } from './segment-settings.ts';

const offsetDigits = 16;

/** The path of the note about the active segment. */
export function notePath(path: string): string {
  return join(dirname(path), `.${basename(path)}.sluice`);
}

/** A free name for the finished segment that begins with event `first`. */
export function finishedPath(path: string, first: Offset): string {
  const { dir, name, ext } = parse(path);
  const stem = `${name}.${String(first).padStart(offsetDigits, '0')}`;
  for (let turn = 1; ; turn++) {
    const candidate = join(dir, `${stem}${turn === 1 ? '' : `-${turn}`}${ext}`);
    if (!existsSync(candidate) && !existsSync(`${candidate}.gz`)) return candidate;
  }
}

/** Renames the active file to its finished name. */
export async function renameFinished(
  { path, flush, onFinished }: Pick<SegmentFileSettings, 'path' | 'flush' | 'onFinished'>,
  finished: string,
): Promise<void> {
  await rename(path, finished);
  if (flush) await flushNames(path);
  onFinished(finished);
}

/** The finished segments of `path` that are not compressed, oldest first. */
export async function finishedSegments(path: string): Promise<readonly string[]> {
  const { dir, name, ext } = parse(path);
  const isFinished = (entry: string) => {
    if (!entry.startsWith(`${name}.`) || !entry.endsWith(ext)) return false;
    return /^\d{16}(-\d+)?$/.test(entry.slice(name.length + 1, entry.length - ext.length));
  };
  const entries = await readdir(dir === '' ? '.' : dir);
  return entries
    .filter(isFinished)
    .sort()
    .map((entry) => join(dir, entry));
}
