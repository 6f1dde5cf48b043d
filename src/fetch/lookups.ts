// The look-ups of one upstream: read once for all sources that use them, stored in the state, and renewed daily.
// Invariants: no record waits for a look-up; one that cannot be read completely keeps its last content, however old,
// and the status shows its error.

import { z } from 'zod';
import { WholeList } from '../collection/index.ts';
import { type LookupName, lookupNames, type NumberNames } from '../contracts/config.ts';
import {
  type Clock,
  type CollectionStream,
  isObject,
  type Log,
  type ParsedRecord,
  type Spool,
  type Upstream,
} from '../contracts/index.ts';
import { cleanText, type RecordList } from '../tools/index.ts';

const paths: Readonly<Record<LookupName, string>> = {
  ip_protocols: '/api/firewall/v1/ip-protocols',
  icmp_types: '/api/firewall/v1/icmp-types',
  icmpv6_types: '/api/firewall/v1/icmpv6-types',
};

/** Dependencies of the reading. */
export interface LookupDeps {
  readonly spool: Pick<Spool, 'append' | 'recall' | 'room'>;
  readonly clock: Clock;
  readonly log: Log;
}

const renewMs = 24 * 3_600_000;
const retryMs = 10 * 60_000;
/** The largest number of a byte field; names are at most a line long. */
const numberMax = 255;
const nameLengthMax = 100;

/** The look-ups of one upstream. */
export class Lookups {
  readonly requested: readonly LookupName[];
  readonly #upstream: Upstream;
  #names: NumberNames = {};

  constructor(upstream: Upstream, requested: readonly LookupName[]) {
    this.#upstream = upstream;
    this.requested = requested;
  }

  /** The paths that are requested. */
  get paths(): readonly string[] {
    return this.requested.map((name) => paths[name]);
  }

  /** The look-ups known so far. */
  get names(): NumberNames {
    return this.#names;
  }

  /** Loads the stored look-ups and keeps them fresh until aborted. */
  async run(deps: LookupDeps, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = await this.renew(deps, signal).catch((error) => {
        deps.log.debug('lookups_failed', 'reading look-ups failed', {
          error: String(error),
        });
        return retryMs;
      });
      await deps.clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }

  /** Reads missing or old look-ups; resolves with the wait until the next time, milliseconds. */
  async renew({ spool, clock, log }: LookupDeps, signal: AbortSignal): Promise<number> {
    const key = lookupsKey(this.#upstream.name);
    const { tables } = parseLookups((await spool.recall(key)).checkpoint);
    this.#take(tables);
    // A time in the future comes from a clock that was ahead.
    const isDue = (name: LookupName) => Math.abs(clock.now() - (tables[name]?.at ?? 0)) >= renewMs;
    const due = this.requested.filter((name) => tables[name]?.error != null || isDue(name));
    for (const name of due) {
      const before = tables[name] ?? { at: null, names: [], error: null };
      const read = await this.#read(name, { spool, clock, log }, signal);
      const isRead = typeof read !== 'string';
      tables[name] = isRead
        ? { at: clock.now(), names: read, error: null }
        : { ...before, error: read };
      if (!isRead)
        log.warn('lookup_failed', 'look-up failed; events carry numbers without names', {
          lookup: name,
          error: read,
        });
    }
    if (due.length > 0) {
      await spool.append({ stream: key, pages: [], checkpoint: { version: 1, tables } });
    }
    this.#take(tables);
    const ages = this.requested.map((name) => clock.now() - (tables[name]?.at ?? 0));
    const isWell = this.requested.every((name) => tables[name]?.error === null);
    return isWell ? Math.max(retryMs, renewMs - Math.max(...ages)) : retryMs;
  }

  #take(tables: HeldLookups['tables']): void {
    this.#names = Object.fromEntries(
      this.requested.map((name) => [name, new Map(tables[name]?.names ?? [])]),
    );
  }

  /** The rows of a look-up, or why it cannot be read completely. */
  async #read(
    lookup: LookupName,
    { spool, clock, log }: LookupDeps,
    signal: AbortSignal,
  ): Promise<[number, string][] | string> {
    const list = new WholeList({ stream: this.#streamOf(lookup), spool, clock, log });
    let rows: [number, string][] = [];
    const taker = {
      begin: () => {
        rows = [];
      },
      page: async (records: RecordList, fresh: readonly number[]) => {
        for (const index of fresh) {
          const row = rowOf(records.at(index));
          if (row !== null) rows.push(row);
        }
      },
    };
    const read = await list.read(taker, signal);
    if (read.outcome !== 'ok') return read.cause.message;
    if (read.flaw !== null) return read.flaw.cause.message;
    return rows.length > 0 ? rows : `reading ${paths[lookup]}: no row has a number and a name`;
  }

  /** The upstream documents name the look-ups but not their paging, so it is detected as for any collection. */
  #streamOf(lookup: LookupName): CollectionStream {
    const path = paths[lookup];
    const name = `${lookupsKey(this.#upstream.name)}/${lookup}`;
    const request = { path, template: path, query: [] };
    const pagination = {
      style: 'shown',
      ...{ cursor_param: 'cursor', limit_param: 'limit', offset_param: 'offset' },
      ...{ items: 'data', next: 'next_cursor', total: 'total' },
    } as const;
    const upstream = this.#upstream;
    return {
      kind: 'collection',
      ...{ name, source: upstream.name, paths: [path], fingerprint: '', resource: lookup },
      entity: { kind: lookup, ids: ['id'] },
      list: { name, upstream, request, pagination, sorting: [], pageLimit: null, id: null },
    };
  }
}

const numberKeys = ['number', 'value', 'protocol', 'type', 'code', 'id'];
const nameKeys = ['name', 'keyword', 'label', 'description'];

/** The documents show no fields: the first byte value, and the first text. */
function rowOf(value: ParsedRecord | undefined): [number, string] | null {
  if (!isObject(value)) return null;
  const number = numberKeys
    .map((key) => value[key])
    .map((one) => (typeof one === 'string' && /^\d{1,3}$/.test(one) ? Number(one) : one))
    .find(
      (one) => typeof one === 'number' && Number.isInteger(one) && one >= 0 && one <= numberMax,
    );
  const name = nameKeys.map((key) => value[key]).find((one) => typeof one === 'string' && one);
  if (typeof number !== 'number' || typeof name !== 'string') return null;
  return [number, cleanText(name, nameLengthMax)];
}

// The stored look-ups of an upstream: their rows, and the result of the last reading. State that cannot be read counts
// as no look-ups.

const table = z.object({
  /** When it was last read, epoch milliseconds; null: never. */
  at: z.number().nullable(),
  names: z.array(z.tuple([z.int(), z.string()])),
  /** Why the last reading failed; null: it did not. */
  error: z.string().nullable(),
});

const held = z.object({
  version: z.literal(1),
  tables: z.partialRecord(z.enum(lookupNames), table),
});

/** The stored look-ups of an upstream, under `lookupsKey`. */
export type HeldLookups = z.infer<typeof held>;

/** The name under which an upstream's look-ups are stored; no stream has this name. */
function lookupsKey(upstream: string): string {
  return `${upstream}#lookups`;
}

/** The upstream whose look-ups have this name; null: another name. */
export function lookedUpAt(key: string): string | null {
  return /^(.+)#lookups$/.exec(key)?.[1] ?? null;
}

/** Parses stored look-ups; none if they cannot be read. */
export function parseLookups(body: unknown): HeldLookups {
  return held.safeParse(body).data ?? { version: 1, tables: {} };
}
