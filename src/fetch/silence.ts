// Detects a silent stream. If a stream that is expected to bring records has no new record for `expect`, it is reported
// as silent, once, and as resumed when a record arrives. Its polls may succeed, fail or hang meanwhile, so the check
// uses the clock and not the polls. Invariants: the time of the last new record and the reported silence are durable,
// the latter in one transaction with its event; time without polls is no silence.

import { z } from 'zod';
import { exactSpanText, timeText } from '../tools/index.ts';
import { StreamWatch, type WatchDeps, type WatchFinding } from './stream-watch.ts';

/** The stored facts on a stream's silence, beside its checkpoint under `silenceKey`. */
const silence = z.object({
  version: z.literal(1),
  /** When the last new record arrived, or the first was first expected; epoch milliseconds. */
  heardAt: z.number(),
  /** Its silence was reported and has not ended. */
  told: z.boolean(),
});

type Silence = Readonly<z.infer<typeof silence>>;

/** The name under which a stream's silence is stored; no stream has this name. */
export function silenceKey(stream: string): string {
  return `${stream}#silence`;
}

/** Since when a stream is silent, from its stored facts; null: it is not. */
export function silentSince(held: unknown): number | null {
  const known = silence.safeParse(held).data;
  return known?.told === true ? known.heardAt : null;
}

/** Dependencies of the check. */
export interface SilenceDeps extends WatchDeps {
  /** How long it may be silent, milliseconds. */
  readonly expectMs: number;
}

/** Number of checks within the allowed time, so the report is not much too late. */
const looks = 20;

/** Watches one stream. */
export class SilenceWatch extends StreamWatch<SilenceDeps, Silence> {
  protected readonly key = silenceKey(this.deps.stream.name);
  protected readonly wishedMs = this.deps.expectMs / looks;
  protected readonly what = 'silence';

  protected async check(): Promise<void> {
    const { clock, expectMs } = this.deps;
    const known = await this.#load();
    const now = clock.now();
    const { records, polls, isEnded } = this.runner();
    if (records > this.records) {
      await this.save(
        { version: 1, heardAt: now, told: false },
        known.told ? received(known) : null,
      );
      this.records = records;
      return;
    }
    // By a clock that was ahead: until then, no silence would be reported.
    if (known.heardAt > now) return await this.save({ ...known, heardAt: now }, null);
    const isAsked = polls > 0 || clock.monotonic() - this.begunMs >= expectMs;
    // An API that has ended is not expected to bring records.
    if (isEnded === true || known.told || !isAsked || now - known.heardAt < expectMs) return;
    await this.save({ ...known, told: true }, this.#silent(known));
  }

  async #load(): Promise<Silence> {
    if (this.known !== null) return this.known;
    const { spool, clock } = this.deps;
    const { checkpoint } = await spool.recall(this.key);
    const held = silence.safeParse(checkpoint).data;
    if (held !== undefined) this.known = held;
    else await this.save({ version: 1, heardAt: clock.now(), told: false }, null);
    return this.known ?? { version: 1, heardAt: clock.now(), told: false };
  }

  #silent({ heardAt: receivedAt }: Silence): SilenceCondition {
    const { stream, expectMs } = this.deps;
    const { error, polls, caughtUpAt } = this.runner();
    const isRead = error === null && polls > 0 && (caughtUpAt ?? 0) > receivedAt;
    const [word, how] =
      error !== null && error.code !== 'paging_suspected'
        ? ['failing', `its polls fail: ${error.message}`]
        : isRead
          ? ['succeeding', 'its polls succeed']
          : ['unfinished', 'no poll has come to its end meanwhile'];
    return {
      condition: 'source.silent',
      message: `no new record of ${stream.name} since ${timeText(receivedAt)}; ${how}`,
      details: { since: timeText(receivedAt), expect_every: exactSpanText(expectMs), polls: word },
    };
  }
}

type SilenceCondition = WatchFinding & { readonly condition: 'source.silent' | 'source.heard' };

function received({ heardAt: receivedAt }: Silence): SilenceCondition {
  const since = timeText(receivedAt);
  return {
    condition: 'source.heard',
    message: `a new record has come, the first since ${since}`,
    details: { since },
  };
}
