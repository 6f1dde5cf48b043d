// The content of a receipt for a sink, as facts and as text. Its reader trusts only the written text: every kind of
// missing event is named, also those with a count of zero.

import type { Config } from '../../config/index.ts';
import { type Assurance, backlog } from '../../contracts/index.ts';
import type { Plan } from '../../run/index.ts';
import { cleanText, timeText } from '../../tools/index.ts';
import { type State, settledBefore, settledStreams, settledUpTo } from '../../watch/index.ts';
import { promiseOf } from './assurance.ts';
import type { CompanyCounts } from './company.ts';

/** The facts, as `--json` prints them. Times are RFC 3339. */
export interface Receipt {
  readonly sink: string;
  readonly type: string;
  /** Absent: all companies. */
  readonly company?: string;
  /** When it was made. */
  readonly at: string;
  /** All records that upstream showed by then are at the sink, except those that the other facts name. */
  readonly up_to: string | null;
  /** Nothing waits, nothing was refused, and all streams have been read to their end. */
  readonly whole: boolean;
  /** Stored events that are on their way to the sink. */
  readonly waiting: number;
  /** Stored dead letters; those dropped by an operator; those that are being retried. */
  readonly refused: number;
  readonly dropped: number;
  readonly again: number;
  readonly assurance: Assurance;
  /** Events from before this time may be missing; null: unknown. */
  readonly begun_at: string | null;
  readonly first_event: number | null;
  /** Number of the first event that is not settled. */
  readonly position: number;
  readonly streams: readonly {
    readonly name: string;
    readonly source: string;
    readonly up_to: string | null;
    /** Its API has ended, and its successor delivers; undefined: the API has not ended. */
    readonly ended?: true;
  }[];
  /** Sources that no route leads here. */
  readonly elsewhere: readonly string[];
  /** Filters of its routes: events that they drop are not at the sink. */
  readonly filters: readonly string[];
  /** Fields that its routes remove. */
  readonly redacted: readonly string[];
  /** Fields that its routes mask, each with the mask. */
  readonly masked: readonly string[];
}

const assurances: Readonly<Record<Assurance, string>> = {
  once: 'each event is there once',
  answered:
    'the receiver has acknowledged each event; an event may be there twice, with the same uid',
  settled: 'written to a connection that stayed healthy; the receiver answers nothing',
  none: 'sent; a sender cannot know whether it arrived',
};

/** Part of no archive's name: a name has no blanks. */
const firstLine = 'sluice receipt 1';
const lengthMax = 400;

/** The facts about a sink of the config. */
export function receiptOf(
  sink: string,
  known: {
    readonly config: Pick<Config, 'sinks' | 'routes' | 'state'>;
    readonly plan: Pick<Plan, 'sources' | 'routes'>;
    readonly state: State;
    /** Epoch milliseconds. */
    readonly now: number;
    /** The company that the plan is limited to, with its counts. */
    readonly company?: CompanyCounts & { readonly id: string };
  },
): Receipt {
  const { config, plan, state, now, company } = known;
  const { definition, settings } = config.sinks[sink] ?? {};
  const held = state.sinks.get(sink);
  const position = held?.position ?? 0;
  const aside = held?.aside ?? [];
  const at = { plan, sink, position: settledBefore(position, aside) };
  const streams = settledStreams(state, at);
  const routed = new Set(streams.map(({ source }) => source));
  const ways = config.routes.filter(({ to }) => to.includes(sink));
  const upTo = settledUpTo(state, at);
  const setAside = aside.reduce((sum, { events }) => sum + events, 0);
  const waiting = (company?.waiting ?? backlog(state.spool, position)) + setAside;
  const refused = company?.refused ?? held?.deadLetters ?? 0;
  return {
    sink,
    type: settings?.type ?? '',
    ...(company !== undefined && { company: company.id }),
    at: timeText(now),
    up_to: timeText(upTo),
    whole: upTo !== null && waiting === 0 && refused === 0,
    ...{ waiting, refused, dropped: held?.dropped ?? 0, again: held?.again ?? 0 },
    assurance: settings && definition ? promiseOf(config, definition, settings).assurance : 'none',
    begun_at: timeText(held?.begun?.at ?? null),
    first_event: held?.begun?.first ?? null,
    position,
    streams: streams.map(({ name, source, upTo, isEnded }) => {
      return { name, source, up_to: timeText(upTo), ...(isEnded && { ended: true as const }) };
    }),
    elsewhere: plan.sources.map(({ name }) => name).filter((name) => !routed.has(name)),
    filters: ways.flatMap(({ from, where }) =>
      where === undefined ? [] : [`${from.join(', ')}: ${where}`],
    ),
    redacted: [...new Set(ways.flatMap(({ redact }) => redact ?? []))],
    masked: [
      ...new Set(
        ways.flatMap(({ mask }) =>
          Object.entries(mask ?? {}).map(([path, kind]) => `${path} (${kind})`),
        ),
      ),
    ],
  };
}

/** The text that is signed, one fact a line. */
export function receiptText(receipt: Receipt): string {
  const { sink, type, company, at, up_to, waiting, refused, dropped, again, assurance } = receipt;
  const { begun_at, first_event, position, streams, elsewhere, filters, redacted, masked } =
    receipt;
  const facts: readonly (readonly [string, string])[] = [
    ['sink', `${sink} (${type})`],
    ...(company === undefined ? [] : [['company', company] as const]),
    ['made at', at],
    ['everything up to', up_to ?? 'cannot be said yet'],
    ['meaning', meaning],
    ['waiting', String(waiting)],
    ['refused, and not there (dead letters)', String(refused)],
    ['refused, and dropped by an operator', String(dropped)],
    ['refused, and on their way again', String(again)],
    ['promise', `${assurance}: ${assurances[assurance]}`],
    [
      'began',
      begun_at === null ? 'not known' : `${begun_at}, with event ${first_event ?? 0} of the spool`,
    ],
    ['position', String(position)],
    ...streams.map(
      ({ name, up_to, ended }) =>
        [
          `stream ${name}`,
          `${up_to ?? 'nothing can be said yet'}${ended ? '; its API has ended, and its successor delivers' : ''}`,
        ] as const,
    ),
    ...elsewhere.map((name) => [`source ${name}`, 'not routed here'] as const),
    ...filters.map((filter) => ['only where', filter] as const),
    ...redacted.map((path) => ['without the field', path] as const),
    ...masked.map((path) => ['with the field masked', path] as const),
  ];
  const lines = facts.map(([name, value]) => cleanText(`${name}: ${value}`, lengthMax));
  return `${[firstLine, ...lines].join('\n')}\n`;
}

const meaning =
  'all records that upstream showed sluice by that time and that are routed here are there, except those in the lines below; records that upstream shows later are not included, however old they are';

/** True of a text that `receiptText` has written. */
export function isReceipt(text: string): boolean {
  return text.startsWith(`${firstLine}\n`);
}
