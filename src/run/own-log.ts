// The log of a run: on stderr, and at a collector if the config names one. Invariants: the exporter is loaded only if
// the config names a collector, and the end of a run waits for the collector no longer than the shutdown may take in
// all.

import { randomUUID } from 'node:crypto';
import type { Config } from '../config/index.ts';
import type { Log, LogLevel } from '../contracts/index.ts';
import { version } from '../tools/index.ts';
import { logForm, openLog } from '../watch/log.ts';
import type { CollectorLog } from '../watch/running-status.ts';
import { withTail } from './log-tail.ts';

/** A run's log. */
export interface OwnLog {
  readonly log: Log;
  /** Names this process to collectors. */
  readonly instance: string;
  /** Lines that the collector never got; null: there is none. */
  readonly lost: () => number | null;
  /** Ends it; `stopMs`: when the run was stopped (monotonic), null: it was not. */
  close(stopMs: number | null): Promise<void>;
}

/** The last lines have at least this long, however long the shutdown has taken. */
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
    log: withTail(sent?.log ?? beside, config.state.dir, settings.level),
    instance,
    lost: () => sent?.lost() ?? null,
    async close(stopMs) {
      const takenMs = stopMs === null ? 0 : performance.now() - stopMs;
      await sent?.close(Math.max(closeMsLeast, config.shutdown.timeoutMs - takenMs));
    },
  };
}
