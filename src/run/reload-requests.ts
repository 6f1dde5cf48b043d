// When the config is to be read again: at SIGHUP, and when what stands in its file has changed. The
// content is looked at and not its time, so that it does not matter whether an editor writes it,
// renames another file over it, or a link above it is turned, as Kubernetes does. A terminal that
// closes sends SIGHUP too, and means the end. What must stay true: a change is told once it has
// stood still, never half-written.

import { createHash } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../contracts/index.ts';

/** Why the config is to be read again. */
export type ReloadReason = 'SIGHUP' | 'the file has changed';

/** Listening for both. */
export interface ReloadRequests {
  /** Resolves with the next one; rejects with the signal's reason. */
  next(stop: AbortSignal): Promise<ReloadReason>;
  /** Stops listening; SIGHUP ends the process again as it does by default. */
  release(): void;
}

/** A change is told after it was seen twice. */
const lookEveryMs = 1_000;

/** Listens until released; what stands in the file now is what changes are counted from. */
export async function listenForReloads(file: string, clock: Clock): Promise<ReloadRequests> {
  let isAsked = false;
  let wake = new AbortController();
  const hadTerminal = hasTerminal();
  const received = () => {
    // Nobody is there any more who could end a run that was started by hand.
    if (hadTerminal && !hasTerminal()) {
      process.kill(process.pid, 'SIGTERM');
      return;
    }
    isAsked = true;
    wake.abort(new Error('SIGHUP'));
  };
  process.on('SIGHUP', received);
  let taken = await contentOf(file);
  let seen = taken;
  return {
    async next(stop) {
      for (;;) {
        stop.throwIfAborted();
        if (isAsked) {
          isAsked = false;
          wake = new AbortController();
          taken = await contentOf(file);
          return 'SIGHUP';
        }
        await clock.sleep(lookEveryMs, AbortSignal.any([stop, wake.signal])).catch(() => undefined);
        const now = await contentOf(file);
        const stoodStill = now === seen;
        seen = now;
        if (!stoodStill || now === taken || isAsked) continue;
        taken = now;
        return 'the file has changed';
      }
    },
    release: () => process.off('SIGHUP', received),
  };
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

/** A digest of it; empty where it cannot be read. */
async function contentOf(file: string): Promise<string> {
  try {
    return createHash('sha256')
      .update(await readFile(file))
      .digest('base64');
  } catch {
    return '';
  }
}
