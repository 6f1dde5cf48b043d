// When the config is read again: at SIGHUP, and when the content of its file or of a companies file has changed. The
// content is compared and not its time, so it makes no difference whether an editor writes the file, renames another
// file over it, or Kubernetes switches a link above it. A terminal that closes sends SIGHUP too, and ends the run.
// Invariant: a change is reported once its content was seen twice, so a file that is being written is not read.

import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type Config, digestOf } from '../config/index.ts';
import type { Clock } from '../contracts/index.ts';

/** Why the config is to be read again. */
export type ReloadReason =
  | 'SIGHUP'
  | 'the file has changed'
  | 'a companies file has changed'
  | typeof refusedBefore;

/** The reason of a further try of a refused config. */
export const refusedBefore = 'it was refused before';

/** Listening for both. */
export interface ReloadRequests {
  /** Resolves with the next one; `again` is one too, once it aborts. Rejects with the reason of `stop`. */
  next(stop: AbortSignal, again?: AbortSignal): Promise<ReloadReason>;
  /** Watches the companies files of the config that runs, from the content that it was made from. */
  follow(config: Pick<Config, 'upstreams'>): void;
  /** Stops listening; SIGHUP ends the process again as it does by default. */
  release(): void;
}

/** A change is reported after two checks with the same content. */
const lookEveryMs = 1_000;

/** Listens until released; changes are relative to the file's content now. */
export async function listenForReloads(file: string, clock: Clock): Promise<ReloadRequests> {
  let isAsked = false;
  let wake = new AbortController();
  const hadTerminal = hasTerminal();
  const received = () => {
    // The terminal is gone, so no operator could stop a run that was started by hand.
    if (hadTerminal && !hasTerminal()) {
      process.kill(process.pid, 'SIGTERM');
      return;
    }
    isAsked = true;
    wake.abort(new Error('SIGHUP'));
  };
  process.on('SIGHUP', received);
  const companies = new Map<string, string>();
  const contents = async () => {
    const paths = [file, ...companies.keys()];
    const found = await Promise.all(paths.map(contentOf));
    return new Map(paths.map((path, index) => [path, found[index] ?? '']));
  };
  let taken = await contents();
  let seen = taken;
  return {
    async next(stop, again) {
      for (;;) {
        stop.throwIfAborted();
        if (isAsked) {
          isAsked = false;
          wake = new AbortController();
          taken = await contents();
          return 'SIGHUP';
        }
        await clock.sleep(lookEveryMs, AbortSignal.any([stop, wake.signal])).catch(() => undefined);
        const now = await contents();
        const stoodStill = changedIn(seen, now).length === 0;
        seen = now;
        if (!stoodStill || isAsked) continue;
        const changed = changedIn(taken, now);
        if (changed.length === 0) {
          if (again?.aborted) return refusedBefore;
          continue;
        }
        taken = now;
        return changed.includes(file) ? 'the file has changed' : 'a companies file has changed';
      }
    },
    follow({ upstreams }) {
      companies.clear();
      for (const { companiesFile: read } of Object.values(upstreams)) {
        if (read === undefined || read.path === file) continue;
        companies.set(read.path, read.digest);
        taken.set(read.path, read.digest);
      }
    },
    release: () => process.off('SIGHUP', received),
  };
}

/** The files whose content differs. */
function changedIn(
  before: ReadonlyMap<string, string>,
  now: ReadonlyMap<string, string>,
): readonly string[] {
  return [...now].flatMap(([path, content]) => (before.get(path) === content ? [] : [path]));
}

/** True for a run in a terminal that is still open: where that closes, SIGHUP comes as well. */
function hasTerminal(): boolean {
  if (process.stderr.isTTY !== true) return false;
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/** A digest of the content; empty if the file cannot be read. */
async function contentOf(file: string): Promise<string> {
  try {
    return digestOf(await readFile(file));
  } catch {
    return '';
  }
}
