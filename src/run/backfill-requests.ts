// Backfills that are asked for, as files in the state directory, so that the process that runs there can take them up and go
// on with them after a crash. A request is written by the command alone and says what is wanted; beside it stands how
// far it has come, written only by whoever reads it. Both are replaced whole by rename. One that is done is kept a while
// under another name, to be looked at; one whose request is gone was cancelled.

import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../config/config.ts';
import { isMade } from '../hold/database.ts';
import { makePrivateDirectory, makePrivateFile } from '../hold/private-files.ts';
import { changeIn } from '../hold/store.ts';

const request = z.object({
  version: z.literal(1),
  id: z.string().regex(/^[0-9a-f-]+$/),
  source: z.string(),
  /** The time asked for, epoch milliseconds: from `from` on, before `to`. */
  from: z.number(),
  to: z.number(),
  /** False where no end was given, and `to` is when it was asked for. */
  isBounded: z.boolean(),
  /** When it was last asked for: a failure before that is no answer. */
  askedAt: z.number(),
  wanted: z.boolean(),
});

/** A backfill that is asked for; where it is not `wanted` it is stopped, to go on another time. */
export type BackfillRequest = Readonly<z.infer<typeof request>>;

const progress = z.object({
  version: z.literal(1),
  state: z.enum(['reading', 'delivering', 'done', 'failed', 'stopped']),
  /** When this was so. Times are epoch milliseconds. */
  at: z.number(),
  /** Records read, held for the sinks, and of those without a readable time. */
  read: z.number(),
  held: z.number(),
  untimed: z.number(),
  /** Time of the record read last. */
  reachedAt: z.number().nullable(),
  /** Share of the reading that is done; null while nobody can say. */
  share: z.number().nullable(),
  /** Events in the spool that the slowest sink still has to get. */
  behind: z.number(),
  error: z.object({ message: z.string(), next: z.string() }).nullable(),
});

/** How far a backfill has come. */
export type BackfillProgress = Readonly<z.infer<typeof progress>>;

/** What is asked for on a command line. */
export type Wish = Pick<BackfillRequest, 'source' | 'from'> & { readonly to: number | null };

/** What is done can be looked at for so long. */
const doneForMs = 7 * 86_400_000;

/** The requests in a state directory that are not done, oldest first. */
export function requestsIn(dir: string): readonly BackfillRequest[] {
  return requestsNamed(dir, /^[0-9a-f-]+\.json$/);
}

/** Those that were done lately, oldest first. */
export function doneIn(dir: string): readonly BackfillRequest[] {
  return requestsNamed(dir, /^[0-9a-f-]+\.done\.json$/);
}

function requestsNamed(dir: string, pattern: RegExp): readonly BackfillRequest[] {
  if (!existsSync(folder(dir))) return [];
  return readdirSync(folder(dir))
    .filter((name) => pattern.test(name))
    .flatMap((name) => read(join(folder(dir), name), request) ?? [])
    .toSorted((a, b) => a.askedAt - b.askedAt);
}

/** The request as it is now; null where it is gone. */
export function requestOf(dir: string, id: string): BackfillRequest | null {
  return read(join(folder(dir), `${id}.json`), request);
}

/** Asks for it: goes on with an unfinished one that was asked for alike, or begins one. */
export function ask(dir: string, wish: Wish, now: number): BackfillRequest {
  forgetDone(dir, now - doneForMs);
  const unfinished = alike(dir, wish);
  const asked: BackfillRequest = {
    version: 1,
    id: randomUUID(),
    source: wish.source,
    from: wish.from,
    to: wish.to ?? now,
    isBounded: wish.to !== null,
    ...unfinished,
    askedAt: now,
    wanted: true,
  };
  writeRequest(dir, asked);
  return asked;
}

/** The unfinished request that was asked for alike, if there is one. */
export function alike(dir: string, wish: Wish): BackfillRequest | undefined {
  return requestsIn(dir).find(
    ({ source, from, to, isBounded }) =>
      source === wish.source && from === wish.from && (isBounded ? to : null) === wish.to,
  );
}

/** Writes a request. */
export function writeRequest(dir: string, asked: BackfillRequest): void {
  write(join(folder(dir), `${asked.id}.json`), asked);
}

/** How far it has come; null before it was taken up, or where it is gone. */
export function progressOf(dir: string, id: string): BackfillProgress | null {
  return read(join(folder(dir), `${id}.progress.json`), progress);
}

/** Writes how far it has come. Not made to survive a power cut: what counts is in the state database. */
export function writeProgress(dir: string, id: string, now: BackfillProgress): void {
  write(join(folder(dir), `${id}.progress.json`), now);
}

/** The name of a stream's memory in a backfill, in the place of a stream's. */
export function keyOf({ id }: Pick<BackfillRequest, 'id'>, stream: string): string {
  return `${stream}#backfill-${id}`;
}

/** Takes a request back: whoever reads it stops, and forgets it. */
export function withdraw(dir: string, { id }: BackfillRequest): void {
  remove(dir, [`${id}.json`]);
}

/** Removes a request, how far it has come, and what is remembered for it. */
export function forget(config: Config, { id }: BackfillRequest): void {
  remove(config.state.dir, [`${id}.json`, `${id}.progress.json`]);
  forgetMemory(config, id);
}

/** Sets a request aside that is done, and removes what is remembered for it. */
export function setDone(config: Config, { id }: BackfillRequest): void {
  const path = join(folder(config.state.dir), id);
  // The request first: memory without one is never asked for, while a request without memory would begin anew.
  renameSync(`${path}.json`, `${path}.done.json`);
  forgetMemory(config, id);
}

function forgetMemory(config: Config, id: string): void {
  if (!isMade(config.state.dir)) return;
  changeIn(config.state, (store) =>
    store.transaction(() => store.streams.forgetAll(`#backfill-${id}`)),
  );
}

function forgetDone(dir: string, before: number): void {
  for (const { id, askedAt } of doneIn(dir)) {
    if ((progressOf(dir, id)?.at ?? askedAt) >= before) continue;
    remove(dir, [`${id}.done.json`, `${id}.progress.json`]);
  }
}

function remove(dir: string, names: readonly string[]): void {
  for (const name of names) rmSync(join(folder(dir), name), { force: true });
}

function folder(dir: string): string {
  return join(dir, 'backfills');
}

function read<T>(path: string, shape: z.ZodType<T>): T | null {
  try {
    return shape.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    // Gone meanwhile, or of another version: nothing that this one has to do with. What cannot be read just now is not gone.
    const code = error instanceof Error && 'code' in error ? error.code : 'ENOENT';
    if (code === 'ENOENT') return null;
    throw error;
  }
}

function write(path: string, value: BackfillRequest | BackfillProgress): void {
  makePrivateDirectory(join(path, '..'));
  const next = `${path}.next`;
  makePrivateFile(next);
  writeFileSync(next, `${JSON.stringify(value)}\n`, { flush: 'askedAt' in value });
  renameSync(next, path);
}
