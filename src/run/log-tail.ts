// The last lines of a run's log, kept beside the state for `sluice support`. Invariants: only the fields listed here are
// kept, so no text of a record, of upstream or of a receiver gets into the file; the file is bounded; a failure to write
// it never disturbs the run, nor does a pipe or a link with its name; a line that a kill cut is left out when it is read.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { type ErrorDetails, isObject, type Log, type LogLevel } from '../contracts/index.ts';
import { readRegularFile } from '../tools/index.ts';
import { type LineHead, LinesLog, passOn, printable, reaches } from '../watch/log.ts';

const name = 'log-tail.ndjson';
const olderName = 'log-tail.1.ndjson';
const bytesMax = 256 * 1024;
/** Lines before the state directory exists. */
const waitingMax = 200;

/** Texts that sluice makes itself, or that name a part of the config. */
const textFields: ReadonlySet<string> = new Set([
  ...['stream', 'source', 'sink', 'upstream', 'company', 'code', 'condition', 'state', 'version'],
  ...['instance', 'shard', 'signal', 'method'],
]);
/** Ids of requests, which upstream's support needs; any other text is left out. */
const idFields: ReadonlySet<string> = new Set(['request_id', 'trace_id']);
const idForm = /^[A-Za-z0-9._:-]{1,128}$/;

/** The part of a line's fields that holds no text from outside. */
function ownFields(fields: ErrorDetails): Record<string, string | number | boolean | null> {
  const own: Record<string, string | number | boolean | null> = {};
  for (const [key, value] of Object.entries(printable(fields))) {
    if (key === 'path' && typeof value === 'string') own.path = ownPath(value);
    const isText = typeof value === 'string';
    const isOwn = !isText || textFields.has(key) || (idFields.has(key) && idForm.test(value));
    if (isOwn) own[key] = value;
  }
  return own;
}

/** A path without its query and without ids of records, which some paths have. */
export function ownPath(path: string): string {
  const [before = ''] = path.split('?');
  return before.replace(/[^/]+/g, (part) =>
    /^([a-z][a-z_-]{0,30}|v\d+)$/.test(part) ? part : '{…}',
  );
}

/** The log, whose lines are kept in the directory too. */
export function withTail(log: Log, dir: string, level: LogLevel): Log {
  const waiting: string[] = [];
  const file = join(dir, name);
  const keep = ({ level: at, event, text }: LineHead, fields: ErrorDetails) => {
    const line = { time: new Date().toISOString(), level: at, event, msg: text };
    waiting.push(`${JSON.stringify({ ...line, ...ownFields(fields) })}\n`);
    if (waiting.length > waitingMax) waiting.shift();
    if (!existsSync(dir)) return;
    const lines = waiting.splice(0).join('');
    if (append(file, lines) > bytesMax) renameSync(file, join(dir, olderName));
  };
  return new LinesLog((head, fields) => {
    const known = fields();
    passOn(log, head, known);
    if (!reaches(head.level, level) || head.level === 'debug') return;
    try {
      keep(head, known);
    } catch {
      // A full disk, say: stderr has the line.
    }
  });
}

const appending =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK;

/** Appends to a regular file, and returns its size. */
function append(path: string, text: string): number {
  const file = openSync(path, appending, 0o600);
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is no regular file`);
    writeSync(file, text);
    return fstatSync(file).size;
  } finally {
    closeSync(file);
  }
}

/** A file of more bytes was not written by sluice. */
const readMax = 8 * bytesMax;

/** The last lines that were kept in a directory, oldest first; each is JSON. */
export function lastLines(dir: string, linesMax: number): readonly string[] {
  const texts = [olderName, name].map((one) => {
    try {
      const bytes = readRegularFile(join(dir, one), readMax);
      return bytes.length > readMax ? '' : bytes.toString('utf8');
    } catch {
      return '';
    }
  });
  return texts.join('\n').split('\n').filter(isWhole).slice(-linesMax);
}

function isWhole(line: string): boolean {
  try {
    return isObject(JSON.parse(line));
  } catch {
    return false;
  }
}
