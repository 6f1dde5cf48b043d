// What Splunk's HTTP Event Collector reads from the body of a post: JSON objects one after the other, each an event with what
// an analyst will search it by, and the codes of everything that it refuses (help.splunk.com, "Troubleshoot HTTP Event
// Collector" and "Format events for HTTP Event Collector").
import type { ReceivedRequest } from './http-receiver.ts';

/** What a token may do. */
export interface SplunkToken {
  readonly token: string;
  /** Indexer acknowledgement is switched on for it. */
  readonly ack: boolean;
  /** Indexes that it may write to; an event without `index` goes to the first. */
  readonly indexes: readonly string[];
  readonly disabled?: boolean;
}

/** An event as a search finds it. */
export interface IndexedEvent {
  readonly indexer: number;
  readonly index: string;
  /** Seconds since 1970, with decimals; null: stamped by the indexer. */
  readonly time: number | null;
  readonly host: string | null;
  readonly source: string | null;
  readonly sourcetype: string | null;
  /** `_raw`: the event's JSON or text, cut at `truncate`. */
  readonly raw: string;
  /** Indexed fields. */
  readonly fields: Readonly<Record<string, string | readonly string[]>>;
}

/** How a body is read. */
export interface Reading {
  readonly indexer: number;
  /** `TRUNCATE` of props.conf: characters of an event that are kept; 0: all. */
  readonly truncate: number;
  /** Events with this text are rejected as invalid, and so are later ones in the request. */
  readonly refuses: ((raw: string) => boolean) | null;
}

const refusals = {
  1: [403, 'Token disabled'],
  2: [401, 'Token is required'],
  3: [401, 'Invalid authorization'],
  4: [403, 'Invalid token'],
  5: [400, 'No data'],
  6: [400, 'Invalid data format'],
  7: [400, 'Incorrect index'],
  10: [400, 'Data channel is missing'],
  11: [400, 'Invalid data channel'],
  12: [400, 'Event field is required'],
  13: [400, 'Event field cannot be blank'],
  14: [400, 'ACK is disabled'],
  15: [400, 'Error in handling indexed fields'],
  16: [400, 'Query string authorization is not enabled'],
} as const;
type RefusalCode = keyof typeof refusals;

/** What refuses a request: thrown inside, answered as it says. */
export class Refused {
  readonly code: RefusalCode;
  /** Number of the event that is wrong, from 0. */
  readonly event: number | null;

  constructor(code: RefusalCode, event: number | null = null) {
    this.code = code;
    this.event = event;
  }

  get status(): number {
    return refusals[this.code][0];
  }

  get text(): string {
    return refusals[this.code][1];
  }
}

/** The events up to the first that is wrong, and what is wrong with that. */
export function readEvents(
  { headers, body }: ReceivedRequest,
  token: SplunkToken,
  how: Reading,
): { readonly events: readonly IndexedEvent[]; readonly refusal: Refused | null } {
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity' && encoding !== 'gzip') throw new Refused(6);
  const texts = objectsIn(body.toString());
  if (texts.length === 0) throw new Refused(5);
  const events: IndexedEvent[] = [];
  try {
    for (const [number, text] of texts.entries())
      events.push(readEvent(text, number, { token, how }));
  } catch (error) {
    if (error instanceof Refused) return { events, refusal: error };
    throw error;
  }
  return { events, refusal: null };
}

function readEvent(
  text: string,
  number: number,
  { token, how }: { readonly token: SplunkToken; readonly how: Reading },
): IndexedEvent {
  const { refuses, truncate } = how;
  const value = parsed(text);
  if (!isObject(value)) throw new Refused(6, number);
  const { event, time, index = token.indexes[0], fields = {}, host, source, sourcetype } = value;
  if (event === undefined) throw new Refused(12, number);
  if (event === null || event === '') throw new Refused(13, number);
  if (time !== undefined && !Number.isFinite(Number(time))) throw new Refused(6, number);
  if (typeof index !== 'string' || !token.indexes.includes(index)) throw new Refused(7, number);
  if (!isObject(fields) || !Object.values(fields).every(isFlat)) throw new Refused(15, number);
  const raw = typeof event === 'string' ? event : JSON.stringify(event);
  if (refuses?.(raw) === true) throw new Refused(6, number);
  const word = (given: unknown) => (typeof given === 'string' ? given : null);
  return {
    indexer: how.indexer,
    index,
    time: time === undefined ? null : Number(time),
    host: word(host),
    source: word(source),
    sourcetype: word(sourcetype),
    raw: truncate === 0 ? raw : raw.slice(0, truncate),
    fields: fields as IndexedEvent['fields'],
  };
}

export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFlat(value: unknown): boolean {
  const isText = (item: unknown) => typeof item === 'string';
  return isText(value) || (Array.isArray(value) && value.every(isText));
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The texts of JSON objects that stand one after the other; what is no object is one text up to the end. */
function objectsIn(text: string): readonly string[] {
  const texts: string[] = [];
  let [depth, from, inString] = [0, 0, false];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (inString) {
      if (sign === '\\') at += 1;
      else if (sign === '"') inString = false;
    } else if (sign === '"') inString = true;
    else if (sign === '{') depth += 1;
    else if (sign === '}' && --depth === 0) {
      texts.push(text.slice(from, at + 1));
      from = at + 1;
    }
  }
  const rest = text.slice(from);
  return rest.trim() === '' ? texts : [...texts, rest];
}
