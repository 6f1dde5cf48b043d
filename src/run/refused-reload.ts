// A config that a reload refuses. It is tried again every 30 s, since its fault may lie elsewhere: Kafka was away, or a
// secret was missing. Invariant: a further try with the same result is not logged.

import { ConfigError, flawText } from '../config/index.ts';
import { asExportError, type Clock, type Log } from '../contracts/index.ts';
import { commandText } from '../terminal/index.ts';
import { type ReloadReason, type ReloadRequests, refusedBefore } from './reload-requests.ts';
import type { SentError } from './shard-messages.ts';

/** A refused config is read again after this time. */
const againMs = 30_000;
/** The first errors of a config are enough to find the fault. */
const flawsShownMax = 20;

/** The result of the last reload. */
export class RefusedReload {
  #error: SentError | null = null;

  /** Why the config in the file does not run; null: it runs. */
  get error(): SentError | null {
    return this.#error;
  }

  /** The next reason to read the config, which may be a refusal before. Rejects with the signal's reason. */
  async next(
    requests: Pick<ReloadRequests, 'next'>,
    clock: Clock,
    stop: AbortSignal,
  ): Promise<ReloadReason> {
    if (this.#error === null) return await requests.next(stop);
    const over = new AbortController();
    const again = new AbortController();
    const ending = AbortSignal.any([stop, over.signal]);
    clock.sleep(againMs, ending).then(
      () => again.abort(),
      () => undefined,
    );
    try {
      return await requests.next(stop, again.signal);
    } finally {
      over.abort(new Error('there is a reason'));
    }
  }

  /** The config runs. */
  accept(): void {
    this.#error = null;
  }

  /** Logs why the config does not run; false: this is known. */
  refuse(
    error: unknown,
    reason: ReloadReason,
    { log, file }: { readonly log: Log; readonly file: string },
  ): boolean {
    const flaws = error instanceof ConfigError ? error.flaws : null;
    const { code, message, next: nextOfError } = asExportError(error, 'reloading the config');
    const next =
      flaws === null
        ? nextOfError
        : `Correct each error; sluice then reads the file again. To list all errors: ${commandText('check', file)}`;
    const [first = '', ...others] = message.split('\n');
    const more = others.length === 0 ? '' : `; and ${others.length} more`;
    const before = this.#error;
    this.#error = { code, message: `${first}${more}`, next };
    if (reason === refusedBefore && before?.message === this.#error.message) return false;
    const text = 'config reload failed; keeping the running config';
    const found = flaws === null ? { error: message } : { flaws: flaws.length };
    for (const flaw of flaws?.slice(0, flawsShownMax) ?? []) {
      log.error('config_flaw', 'config error', { code, error: flawText(file, flaw) });
    }
    log.error('config_not_reloaded', text, { code, ...found, next, reason });
    return true;
  }
}
