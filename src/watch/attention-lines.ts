// What an operator should look at first, gravest first, each with what to do about it. It is told from the facts that
// `status` reads from the state directory and those that a running process tells of itself, which are the same as far as
// they are needed here. What must stay true: a thousand streams that fail for one reason are one matter, not a thousand.

import type { Notice } from '../contracts/sink.ts';
import { commandText } from '../terminal/command-text.ts';
import { counted, painted, sizeText, spanText } from '../terminal/table.ts';
import { cleanText } from '../tools/clean-text.ts';
import { fullSoonMs } from './attention.ts';
import type { NotedError } from './state.ts';

/** What is known, by part. Bytes; counts of events. */
export interface Standing {
  /** Why the config as it stands in its file does not run. */
  readonly reload_refused?: NotedError | null | undefined;
  readonly streams: readonly {
    readonly name: string;
    readonly state: string;
    readonly error: NotedError | null;
  }[];
  readonly spool: {
    readonly bytes: number;
    readonly max_bytes: number;
    /** At its pace; left out where nobody knows that. */
    readonly full_in_ms?: number | null;
  };
  readonly sinks: readonly {
    readonly name: string;
    readonly state: string;
    readonly backlog: number;
    readonly dead_letters: number;
    readonly error: NotedError | null;
    readonly notice: Notice | null;
  }[];
  /** Filters that could not judge events, which passed; left out where the process that runs cannot be asked. */
  readonly filters?: readonly FailingFilter[];
}

/** As the process that runs tells of it. */
export interface FailingFilter {
  /** `routes[0]`. */
  readonly route: string;
  readonly source: string;
  readonly failures: number;
  readonly why: string | null;
}

/** One thing to look at. */
interface Matter {
  /** `bad`: it does not mend itself. */
  readonly mood: 'bad' | 'warn';
  readonly what: string;
  readonly next: string;
}

/** How much is told, and where it is going to be read. */
interface Telling {
  readonly most?: number;
  readonly stream?: NodeJS.WriteStream;
}

/** Lines for a person: what needs attention, with what to do, two for each of `most`; one line when nothing does. */
export function attentionLines(
  standing: Standing,
  configFile: string,
  { most = mattersMax, stream = process.stdout }: Telling = {},
): readonly string[] {
  const matters = [
    ...reloadMatters(standing),
    ...spoolMatters(standing),
    ...streamMatters(standing),
    ...sinkMatters(standing, configFile),
    ...filterMatters(standing),
  ].toSorted((a, b) => rank(a) - rank(b));
  if (matters.length === 0) return [painted('nothing needs attention', 'good', stream)];
  return [
    ...matters
      .slice(0, most)
      .flatMap(({ mood, what, next }) => [
        `${painted(mood === 'bad' ? '!!' : ' !', mood, stream)} ${painted(cleanText(what, lengthMax), mood, stream)}`,
        `   ${cleanText(next, lengthMax)}`,
      ]),
    ...(matters.length > most ? [`   and ${matters.length - most} more, below`] : []),
  ];
}

const mattersMax = 12;
const lengthMax = 500;
const namesMax = 3;
/** From this share on a spool is worth a look: what fills it has stood still for long. */
const fullShare = 0.8;

function rank({ mood }: Matter): number {
  return mood === 'bad' ? 0 : 1;
}

function reloadMatters({ reload_refused: refused }: Standing): readonly Matter[] {
  if (!refused) return [];
  const what = `the config in its file is not taken, and sluice goes on with the one before: ${refused.message}`;
  return [{ mood: 'bad', what, next: refused.next }];
}

function filterMatters({ filters = [] }: Standing): readonly Matter[] {
  return filters.flatMap(({ route, source, failures, why }): readonly Matter[] => {
    if (failures === 0) return [];
    const what = `the filter of ${route} could not judge ${counted(failures, 'event')} of ${source}, and let them pass: ${why}`;
    const next = 'Look for attributes in its where that not every event has: has(event.x) asks.';
    return [{ mood: 'warn', what, next }];
  });
}

function spoolMatters({ spool, sinks }: Standing): readonly Matter[] {
  const share = spool.bytes / spool.max_bytes;
  const fullInMs = spool.full_in_ms ?? null;
  const isSoon = fullInMs !== null && fullInMs < fullSoonMs;
  if (share < fullShare && !isSoon) return [];
  const slowest = sinks.toSorted((a, b) => b.backlog - a.backlog)[0];
  const who = slowest === undefined || slowest.backlog === 0 ? 'the sinks' : slowest.name;
  const size = `${sizeText(spool.bytes)} of ${sizeText(spool.max_bytes)}`;
  const next = `Look why ${who} does not take its events, or raise state.max_bytes.`;
  return share < 1
    ? [
        {
          mood: 'warn',
          what: `the spool fills up: ${size}${isSoon ? `, full in ${spanText(fullInMs)} at this pace` : ''}`,
          next,
        },
      ]
    : [{ mood: 'bad', what: `the spool is full, ${size}: polling waits, nothing is lost`, next }];
}

function streamMatters({ streams }: Standing): readonly Matter[] {
  const failing = streams.flatMap(({ name, state, error }) =>
    error === null ? [] : [{ name, halted: state === 'halted' || isPart(error), error }],
  );
  const alike = Map.groupBy(failing, ({ halted, error }) =>
    JSON.stringify([halted, error.code, error.next]),
  );
  return Array.from(alike.values(), (group): Matter => {
    const [{ halted, error }] = group as [(typeof group)[number]];
    const names = group.slice(0, namesMax).map(({ name }) => name);
    const more = group.length > namesMax ? ` and ${group.length - namesMax} more` : '';
    const are = group.length === 1 ? 'is' : 'are';
    const unread = halted ? `${are} halted` : `${are} not read`;
    const how = isPart(error) ? 'may be read in part' : unread;
    return {
      mood: halted ? 'bad' : 'warn',
      what: `${names.join(', ')}${more} ${how}: ${error.message}`,
      next: error.next,
    };
  });
}

/** What does not mend itself, and yet goes on. */
function isPart({ code }: NotedError): boolean {
  return code === 'paging_suspected';
}

function sinkMatters({ sinks }: Standing, configFile: string): readonly Matter[] {
  return sinks.flatMap(({ name, state, backlog, dead_letters: letters, error, notice }) => {
    const refuses = state === 'refused';
    const how = refuses ? 'refuses everything' : 'takes nothing';
    const failing: Matter | null = error && {
      mood: refuses ? 'bad' : 'warn',
      what: `${name} ${how}, ${counted(backlog, 'event')} held for it: ${error.message}`,
      next: error.next,
    };
    const refused: Matter | null =
      letters === 0
        ? null
        : {
            mood: 'warn',
            what: `${name} has refused ${counted(letters, 'event')} for good (dead letters)`,
            next: `Look why: ${commandText('dead-letters list', configFile, '--sink', name)}; then retry or drop them.`,
          };
    const noticed: Matter | null = notice && {
      mood: 'warn',
      what: `${name}: ${notice.what}`,
      next: notice.next,
    };
    return [failing, refused, noticed].filter((matter) => matter !== null);
  });
}
