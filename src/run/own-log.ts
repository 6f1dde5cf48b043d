// The log of a run: on stderr, and at a collector too where the config names one. What must stay
// true: nothing of that is loaded where it does not, and the end of a run waits for a collector no
// longer than it may take as a whole.

import { randomUUID } from 'node:crypto';
import type { Config } from '../config/index.ts';
import type { Log } from '../contracts/index.ts';
import { version } from '../tools/index.ts';
import { type LogLevel, logForm, openLog } from '../watch/log.ts';
import type { CollectorLog } from '../watch/running-status.ts';

/** A run's log. */
export interface OwnLog {
  readonly log: Log;
  /** Names this process to collectors. */
  readonly instance: string;
  /** Lines that the collector never got; null: there is none. */
  readonly lost: () => number | null;
  /** Ends it; `stopMs`: when the run was told to stop (monotonic), null if it was not. */
  close(stopMs: number | null): Promise<void>;
}

/** However long the rest has taken, the last lines get a chance. */
const closeMsLeast = 500;

/** Opens the log of a run; `level` comes before the config's. */
export async function openOwnLog(config: Config, level?: LogLevel): Promise<OwnLog> {
  const { level: configured, otlp: collector } = config.log;
  const settings = { level: level ?? configured, form: logForm(process.stderr) };
  const beside = await openLog(settings);
  const instance = randomUUID();
  let sent: CollectorLog | null = null;
  if (collector !== null) {
    const { openCollectorLog } = await import('../watch/collector-log.ts');
    const about = { version: version(), instance };
    sent = await openCollectorLog({ ...about, collector, beside, level: settings.level });
  }
  return {
    log: sent?.log ?? beside,
    instance,
    lost: () => sent?.lost() ?? null,
    async close(stopMs) {
      const takenMs = stopMs === null ? 0 : performance.now() - stopMs;
      await sent?.close(Math.max(closeMsLeast, config.shutdown.timeoutMs - takenMs));
    },
  };
}
