// The configs of the other processes of a state in Kafka, read once a session: a sink that one of them has is not
// removed, and differences are named. Invariants: a sink counts as missing only if no process has had it for some
// sessions, so that a restart removes nothing; and if a process does not report its sinks, or Kafka does not respond,
// none is missing.

import { differencesIn, type MemberSettings } from '../cluster/index.ts';
import type { ClusterProcess } from '../cluster/kafka.ts';
import type { Clock, Log } from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';

/** The dependencies. */
export interface ConfigWatchDeps {
  readonly kafka: MemberSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with the sinks that processes have; `isAll`: no process has another one. */
  readonly sinks: (names: readonly string[], isAll: boolean) => Promise<void>;
  /** Called with the differences, a sentence for each process. */
  readonly differences: (differences: readonly string[]) => void;
  /** The processes of the state; default: they are requested at each look. */
  readonly processes?: Processes | undefined;
}

/** Reads the processes of a state. */
export type Processes = (kafka: MemberSettings) => Promise<readonly ClusterProcess[]>;

const lengthMax = 500;
/** A process that was not seen for so many sessions has ended. */
const goneSessions = 3;

/** Looks at them. */
export class ConfigWatch {
  readonly #deps: ConfigWatchDeps;
  readonly #begunAt: number;
  /** When a process was last seen to have a sink, by the monotonic clock. */
  readonly #seenAt = new Map<string, number>();

  constructor(deps: ConfigWatchDeps) {
    this.#deps = deps;
    this.#begunAt = deps.clock.monotonic();
  }

  /** Looks once. Never rejects. */
  async look(): Promise<void> {
    const { kafka, clock, log, sinks, differences, processes: read } = this.#deps;
    try {
      const { processText } = await import('../cluster/kafka.ts');
      const processes = await (read ?? ((of) => readProcesses(of, clock)))(kafka);
      const now = clock.monotonic();
      for (const { print } of processes) {
        for (const name of Object.keys(print?.sinks ?? {})) this.#seenAt.set(name, now);
      }
      const goneMs = goneSessions * kafka.sessionMs;
      const present = [...this.#seenAt].flatMap(([name, at]) => (now - at <= goneMs ? name : []));
      const isKnown = processes.length > 0 && processes.every(({ print }) => print !== null);
      // Before that a process may be restarting that was not seen here.
      await sinks(present, isKnown && now - this.#begunAt > goneMs);
      differences(differencesAmong(processes, kafka, processText));
    } catch (error) {
      log.debug('config_compare_failed', 'comparing the configs of the other processes failed', {
        error: String(error),
      });
    }
  }

  /** Looks until stopped. Never rejects. */
  async follow(stop: AbortSignal): Promise<void> {
    const { kafka, clock } = this.#deps;
    while (!stop.aborted) {
      await clock.sleep(kafka.sessionMs, stop).catch(() => undefined);
      if (!stop.aborted) await this.look();
    }
  }
}

async function readProcesses(
  kafka: MemberSettings,
  clock: Clock,
): Promise<readonly ClusterProcess[]> {
  const { askForProcesses, OwnerQuery } = await import('../cluster/kafka.ts');
  const asking = new OwnerQuery(kafka, clock);
  const how = { clock, waitMs: kafka.sessionMs };
  return await askForProcesses(asking, kafka, how).finally(() => asking.close());
}

/** For the shards of one process, which all look once a session: they share each answer for half of a session. */
export function sharedProcesses(clock: Clock): Processes {
  let last: { readonly at: number; readonly processes: ReturnType<Processes> } | null = null;
  return async (kafka) => {
    const now = clock.monotonic();
    if (last === null || now - last.at > kafka.sessionMs / 2) {
      const own = { at: now, processes: readProcesses(kafka, clock) };
      last = own;
      own.processes.catch(() => {
        if (last === own) last = null;
      });
    }
    return await last.processes;
  };
}

/** A sentence for each process whose config differs from this one's. */
export function differencesAmong(
  processes: readonly ClusterProcess[],
  { config }: Pick<MemberSettings, 'config'>,
  nameOf: (process: ClusterProcess) => string,
): readonly string[] {
  const own = config?.() ?? null;
  if (own === null) return [];
  return processes.flatMap((one) => {
    const differences = one.print === null ? [] : differencesIn(one.print, own);
    return differences.length === 0
      ? []
      : [cleanText(`${nameOf(one)}: ${differences.join(', ')}`, lengthMax)];
  });
}
