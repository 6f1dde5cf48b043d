// `--company` of `status` and `receipt`: the streams of one company, and its events that wait or were refused. Invariant:
// a count may be too high, never too low: events that are set aside for a destination count for every company, and
// a copy of a state in Kafka has no pages, so all waiting events of a sink count there.

import { UsageError } from '../../contracts/index.ts';
import { lookInto } from '../../hold/index.ts';
import type { Stored } from '../../operator/index.ts';
import type { Plan } from '../../run/index.ts';
import { leadsTo } from '../../send/index.ts';
import { unknownText } from './typed.ts';

/** The option. */
export const companyOption = { value: 'id', about: 'limit the answer to this company' } as const;

/** Events of a company at one sink. */
export interface CompanyCounts {
  readonly waiting: number;
  readonly refused: number;
}

/** Throws a UsageError if no plan has a stream of the company. */
export function refuseUnknownCompany(
  company: string | undefined,
  plans: readonly Pick<Plan, 'sources'>[],
): void {
  const known = new Set(
    plans.flatMap(({ sources }) =>
      sources.flatMap(({ streams }) => streams.flatMap((stream) => stream.company ?? [])),
    ),
  );
  if (company === undefined || known.has(company)) return;
  throw new UsageError(`--company: ${unknownText('company', company, known)}`);
}

/** The plan with the streams of the company; undefined: the whole plan. */
export function planOf<P extends Pick<Plan, 'sources'>>(plan: P, company: string | undefined): P {
  if (company === undefined) return plan;
  const sources = plan.sources.flatMap((source) => {
    const streams = source.streams.filter((stream) => stream.company === company);
    return streams.length === 0 ? [] : [{ ...source, streams }];
  });
  return { ...plan, sources };
}

const readBytes = 4 * 1024 * 1024;

/** The counts of each sink by name, from a stored state. `positions`: of the sinks. */
export function countsOf(
  { config: { state, routes }, isCopy }: Pick<Stored, 'config' | 'isCopy'>,
  company: string,
  positions: ReadonlyMap<string, number>,
): ReadonlyMap<string, CompanyCounts> {
  const none = new Map([...positions.keys()].map((sink) => [sink, { waiting: 0, refused: 0 }]));
  return lookInto(state.dir, none, (store) => {
    const { end } = store.gauge();
    const all = [...positions].map(
      ([sink, position]) => [sink, Math.max(0, end - position)] as const,
    );
    const waiting = new Map(isCopy ? all : []);
    let at = isCopy ? end : Math.min(end, ...positions.values());
    while (at < end) {
      const pages = store.read(at, readBytes);
      if (pages.length === 0) break;
      for (const { context, first, count, onlySink } of pages) {
        at = first + count;
        if (context.company !== company || context.kind === 'answer') continue;
        for (const [sink, position] of positions) {
          const isSent =
            onlySink === undefined ? leadsTo(routes, { ...context, sink }) : onlySink === sink;
          const events = isSent ? Math.max(0, first + count - Math.max(first, position)) : 0;
          waiting.set(sink, (waiting.get(sink) ?? 0) + events);
        }
      }
    }
    return new Map(
      [...positions.keys()].map((sink) => {
        const refused = store.deadLetters.list(sink);
        const own = refused.filter(({ context }) => context.company === company).length;
        return [sink, { waiting: waiting.get(sink) ?? 0, refused: own }];
      }),
    );
  });
}
