// Every event that sluice logs: the stable key `event` of a line, with level, fields, meaning and
// next step. docs/logging.md is generated from it. Invariant: a released event keeps its name and
// meaning, because alert rules use it; its message may change. A log call with an undeclared event,
// or at another level, is a type error. At run time other files import only types from here, so
// that a start does not load the texts.

import { archiveEvents } from './log-events/archive.ts';
import type { Level } from './log-events/declaration.ts';
import { processEvents } from './log-events/process.ts';
import { readingEvents } from './log-events/reading.ts';
import { sendingEvents } from './log-events/sending.ts';
import { stateEvents } from './log-events/state.ts';

/** The events by area, in the order of docs/logging.md. */
export const logEvents = {
  'Start, end and operation': processEvents,
  Reading: readingEvents,
  Sending: sendingEvents,
  'State and cluster': stateEvents,
  Archive: archiveEvents,
} as const;

type Events = typeof processEvents &
  typeof readingEvents &
  typeof sendingEvents &
  typeof stateEvents &
  typeof archiveEvents;

/** The name of an event. */
export type LogEvent = keyof Events;

/** The name of an event that is logged at this level. */
export type EventAt<L extends Level> = {
  [E in LogEvent]: Events[E]['level'] extends L ? E : never;
}[LogEvent];

type Value = string | number | boolean | null | undefined;

/** The fields that a line with the event may have. */
export type FieldsOf<E extends LogEvent> = '…' extends Events[E]['fields'][number]
  ? Readonly<Record<string, Value>>
  : { readonly [F in Events[E]['fields'][number]]?: Value };
