// A check of one stream by the clock: its polls may succeed, fail or hang meanwhile. Invariant: the facts of a check are
// stored beside the checkpoint of the stream, in one transaction with the event that reports a change.

import type { Clock, Json, Log, Spool } from '../contracts/index.ts';
import { Identifier } from '../list/index.ts';
import { conditionRecord, type Finding, type OnFinding, ownPage } from '../poll/index.ts';
import type { RunnerState } from './stream-runner.ts';

/** Dependencies of a check. */
export interface WatchDeps {
  readonly stream: { readonly name: string; readonly source: string; readonly company?: string };
  readonly spool: Pick<Spool, 'append' | 'recall'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly found?: OnFinding | undefined;
}

/** A change to report; `since` distinguishes it from an earlier one. */
export type WatchFinding = Finding & { readonly details: { readonly since: string } };

const lookMsMin = 50;
const lookMsMax = 30_000;

/** Watches one stream, with facts of one kind. */
export abstract class StreamWatch<Deps extends WatchDeps, Facts extends Record<string, Json>> {
  protected readonly deps: Deps;
  protected readonly runner: () => RunnerState;
  /** Monotonic milliseconds: the wall clock may have been ahead. */
  protected readonly begunMs: number;
  protected known: Facts | null = null;
  /** Of the stream, at the last check. */
  protected records = 0;

  constructor(deps: Deps, runner: () => RunnerState) {
    this.deps = deps;
    this.runner = runner;
    this.begunMs = deps.clock.monotonic();
  }

  /** The name under which the facts are stored; no stream has this name. */
  protected abstract readonly key: string;
  /** Time between two checks without bounds, milliseconds. */
  protected abstract readonly wishedMs: number;
  /** Its name in the log. */
  protected abstract readonly what: string;
  protected abstract check(): Promise<void>;

  /** Time between two checks, milliseconds. */
  get everyMs(): number {
    return Math.min(lookMsMax, Math.max(lookMsMin, this.wishedMs));
  }

  /** Reports a change since the last check; after a failure (e.g. a full disk) the next check reports it. */
  async look(): Promise<void> {
    await this.check().catch((error) =>
      this.deps.log.debug('silence_check_failed', `${this.what} check failed`, {
        error: String(error),
      }),
    );
  }

  /** Stores the facts, with the event of a change. */
  protected async save(next: Facts, finding: WatchFinding | null): Promise<void> {
    const { stream, spool, clock, found } = this.deps;
    const { name, source, company } = stream;
    const now = clock.now();
    const whose = company === undefined ? {} : { company };
    const context = { source, stream: name, kind: 'condition', ...whose, fetchedAt: now } as const;
    const record = finding && conditionRecord(stream, finding, now);
    const id = new Identifier({ source, company: company ?? '', stream: name });
    const uid = finding && id.ownUid([finding.condition, finding.details.since]);
    const pages = record && uid ? [ownPage(context, [record], [uid])] : [];
    await spool.append({ stream: this.key, pages, checkpoint: { ...next } });
    this.known = next;
    if (record !== null) found?.(record);
  }
}
