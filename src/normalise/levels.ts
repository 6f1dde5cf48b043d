// Parses severity and status in the many forms that sources use, into OCSF's numbers. The words
// follow the severity table that all formats share (high is sev2, critical is sev1). Each distinct
// text is parsed once.

import type { Json } from '../contracts/index.ts';
import { integerOf, memo } from './values.ts';

/** OCSF `severity` captions by `severity_id`. */
export const severityCaptions: Readonly<Record<number, string>> = {
  0: 'Unknown',
  1: 'Informational',
  2: 'Low',
  3: 'Medium',
  4: 'High',
  5: 'Critical',
  6: 'Fatal',
};

/** OCSF `status` captions by `status_id`, in every class except findings. */
export const statusCaptions: Readonly<Record<number, string>> = {
  0: 'Unknown',
  1: 'Success',
  2: 'Failure',
};

/** A value is present but unknown. */
export const other = 99;

/** The scale of a numeric severity, given by the name of its field. */
export type SeverityScale = 'severity' | 'severity_id' | 'priority' | 'level' | 'risk';

const severityWords: readonly string[] = [
  'unknown undefined unspecified none notset',
  'informational information info debug trace verbose normal ok sev5 p5',
  'low minor notice sev4 p4',
  'medium moderate warning warn average suspicious sev3 p3',
  'high major error err severe important sev2 p2',
  'critical crit alert urgent highest blocker sev1 p1',
  'fatal emergency emerg panic sev0 p0',
];

const successWords =
  'success succeeded successful successfully ok okay pass passed true yes allow allowed granted permit permitted ' +
  'accepted approved complete completed done';
const failureWords =
  'failure fail failed failing error errored deny denied false no block blocked reject rejected refused forbidden ' +
  'unauthorized unauthorised unsuccessful timeout timedout aborted invalid';
const unknownWords = 'unknown none undefined notset';

function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/^(?:e|severity|sev|level|status|result)[_\s.-]+(?=.)/, keepSev)
    .replace(/[^a-z0-9]/g, '');
}

/** `sev 1` and `SEV-1` keep their prefix, because the number alone has another meaning. */
function keepSev(prefix: string): string {
  return prefix.startsWith('sev') && !prefix.startsWith('severity') ? 'sev' : '';
}

function wordTable(rows: readonly string[]): ReadonlyMap<string, number> {
  return new Map(rows.flatMap((row, id) => row.split(' ').map((word) => [word, id] as const)));
}

/** Parses a severity: the `severity_id`, 99 for an unknown text, -1 for none. */
export type ReadSeverity = (value: Json, scale: SeverityScale) => number;

/** Creates a parser with a cache of texts. */
export function severityReader(): ReadSeverity {
  const table = wordTable(severityWords);
  const ofText = memo((text) => table.get(plain(text)) ?? (text.trim() === '' ? -1 : other));
  return (value, scale) => {
    if (typeof value === 'string') {
      const number = integerOf(value) ?? decimalOf(value);
      return number === undefined ? ofText(value) : ofNumber(number, scale);
    }
    return typeof value === 'number' ? ofNumber(value, scale) : -1;
  };
}

function decimalOf(text: string): number | undefined {
  if (text.charCodeAt(0) > 57) return undefined;
  return /^\d{1,3}\.\d{1,6}$/.test(text) ? Number(text) : undefined;
}

function ofNumber(value: number, scale: SeverityScale): number {
  if (!(value >= 0 && value <= 100)) return -1;
  switch (scale) {
    case 'severity_id':
      return severityCaptions[value] === undefined ? (value === other ? other : -1) : value;
    case 'priority':
      return value >= 1 && value <= 5 ? 6 - Math.floor(value) : -1;
    case 'level':
      return ofLevel(value);
    case 'severity':
    case 'risk':
      return value <= 10 ? ofTen(value) : ofTen(value / 10);
  }
}

/** CEF's scale of ten. */
function ofTen(value: number): number {
  if (value < 3) return 1;
  if (value < 4) return 2;
  if (value < 7) return 3;
  return value < 9 ? 4 : 5;
}

/** Syslog's 7 to 0 (RFC 5424, table 2), or the 10 to 60 of Node's loggers. */
function ofLevel(value: number): number {
  if (value <= 7) return [6, 5, 5, 4, 3, 2, 1, 1][Math.floor(value)] ?? -1;
  if (value < 10 || value > 60) return -1;
  return [1, 1, 1, 3, 4, 6][Math.floor(value / 10) - 1] ?? -1;
}

/** Parses an outcome: the `status_id`, 99 for an unknown text, -1 for none. */
export type ReadStatus = (value: Json) => number;

/** Creates a parser with a cache of texts. Numbers are HTTP status codes. */
export function statusReader(): ReadStatus {
  const table = wordTable([unknownWords, successWords, failureWords]);
  const ofText = memo((text) => {
    const word = plain(text);
    // Punctuation alone, such as `-`, is no value.
    return table.get(word) ?? (word === '' && /^[\x00-\x7f]*$/.test(text) ? -1 : other);
  });
  return (value) => {
    if (typeof value === 'string') {
      const code = integerOf(value);
      return code === undefined ? ofText(value) : ofCode(code);
    }
    if (typeof value === 'boolean') return value ? 1 : 2;
    return typeof value === 'number' ? ofCode(value) : -1;
  };
}

function ofCode(code: number): number {
  if (!(code >= 100 && code <= 599)) return -1;
  return code < 400 ? 1 : 2;
}

const findingWords: readonly (readonly [caption: string, words: string])[] = [
  ['New', 'open opened active unresolved untriaged'],
  ['In Progress', 'investigating acknowledged triaged assigned pending ongoing'],
  ['On Hold', 'onhold paused waiting'],
  ['Suppressed', 'ignored muted snoozed dismissed falsepositive'],
  ['Resolved', 'fixed remediated mitigated done closed'],
  ['Closed', 'closed'],
  ['Unknown', unknownWords],
];

/** Creates a parser for a finding's state, whose `status_id` has captions of its own. */
export function findingStatusReader(captions: Readonly<Record<number, string>>): ReadStatus {
  const ids = new Map(Object.entries(captions).map(([id, caption]) => [caption, Number(id)]));
  const table = new Map<string, number>();
  for (const [caption, words] of findingWords) {
    const id = ids.get(caption);
    if (id === undefined) continue;
    for (const word of words.split(' ')) table.set(word, id);
  }
  for (const [caption, id] of ids) if (id !== other) table.set(plain(caption), id);
  const ofText = memo((text) => table.get(plain(text)) ?? (text.trim() === '' ? -1 : other));
  return (value) => (typeof value === 'string' ? ofText(value) : -1);
}
