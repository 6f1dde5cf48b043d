// The ends that the responses of an upstream announce, by endpoint. Servers behind one address can
// differ, so one response decides nothing that another one has named:
// - an earlier date counts at once;
// - a later date counts once ten responses in a row did not name the earlier one;
// - no date counts once no response has named one for 24 hours, by successful responses.
// Invariants: the number of endpoints is bounded; a stored date counts after a restart as before.

import { type Clock, type Log, parseHttpDate } from '../contracts/index.ts';
import { cleanText, timeText } from '../tools/index.ts';
import { type AnnouncedEnd, daysLeft } from './ends.ts';
import { parseFieldItem } from './structured-field.ts';

/** Templates come from the config; further ones announce nothing new. */
const endpointsMax = 100;
const laterAfter = 10;
const noneAfterMs = 24 * 3_600_000;
const dayMs = 86_400_000;

interface Known {
  end: AnnouncedEnd;
  /** Responses in a row that did not name its end. */
  others: number;
  /** When a response last named its end, or the state did; monotonic milliseconds. */
  confirmedMs: number;
}

/** The part of a response that can announce an end. */
interface Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The ends that one upstream announces. */
export class AnnouncedEnds {
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();
  readonly #loggedMs = new Map<string, number>();
  /** Counts changes, so that a reader can detect something to store. */
  changes = 0;
  /** A response has arrived, with or without an announcement. */
  hasAnswered = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** By endpoint, including those with a deprecation only. */
  get all(): readonly AnnouncedEnd[] {
    return Array.from(this.#known.values(), ({ end }) => end);
  }

  /** Adds the stored ends; those of responses in this process take precedence. */
  resume(stored: readonly AnnouncedEnd[]): void {
    for (const end of stored) {
      if (!this.#known.has(end.endpoint)) this.#put(end);
    }
  }

  /** Reads the headers of a response; `log` should carry the upstream's name. */
  notice(endpoint: string, { status, headers }: Response, log: Log): void {
    this.hasAnswered = true;
    const known = this.#known.get(endpoint);
    const said = announcedIn(headers, this.#clock.now());
    const found = said && { endpoint, ...withPastEnd(said, known?.end) };
    if (known === undefined) {
      if (found !== null) this.#change(found, headers, log);
      return;
    }
    if (found !== null && isSame(found, known.end)) {
      known.others = 0;
      known.confirmedMs = this.#clock.monotonic();
      return;
    }
    if (found === null) {
      const isAnswer = status >= 200 && status < 300;
      const silentMs = this.#clock.monotonic() - known.confirmedMs;
      if (!isAnswer || silentMs < noneAfterMs) return;
      this.#known.delete(endpoint);
      this.changes += 1;
      return;
    }
    known.others += 1;
    const isEarlier = endOf(found) < endOf(known.end);
    if (isEarlier || known.others >= laterAfter) this.#change(found, headers, log);
  }

  #change(end: AnnouncedEnd, headers: Response['headers'], log: Log): void {
    if (!this.#put(end)) return;
    this.changes += 1;
    const elapsedMs = this.#clock.monotonic();
    const { endpoint, deprecationMs, sunsetMs, endsMs } = end;
    if (elapsedMs - (this.#loggedMs.get(endpoint) ?? Number.NEGATIVE_INFINITY) < dayMs) return;
    this.#loggedMs.set(endpoint, elapsedMs);
    log.warn('endpoint_end_announced', 'a response announces the end of an endpoint', {
      endpoint,
      ends: endsMs === null ? undefined : timeText(endsMs),
      days_left: endsMs === null ? undefined : daysLeft(endsMs, this.#clock.now()),
      deprecation: deprecationMs === null ? undefined : timeText(deprecationMs),
      deprecation_header: headers.deprecation && cleanText(headers.deprecation, 80),
      sunset: sunsetMs === null ? undefined : timeText(sunsetMs),
      link: linkIn(headers),
    });
  }

  #put(end: AnnouncedEnd): boolean {
    if (!this.#known.has(end.endpoint) && this.#known.size >= endpointsMax) return false;
    this.#known.set(end.endpoint, { end, others: 0, confirmedMs: this.#clock.monotonic() });
    return true;
  }
}

/** The ends of all upstreams of a process: a reload makes new clients, which share them. */
export class EndsByUpstream {
  readonly #clock: Clock;
  readonly #all = new Map<string, AnnouncedEnds>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For the upstream of this name at this address: another address is another API. */
  of(name: string, baseUrl: string): AnnouncedEnds {
    const key = JSON.stringify([name, baseUrl]);
    return this.#all.getOrInsertComputed(key, () => new AnnouncedEnds(this.#clock));
  }
}

/** A date in `Deprecation` that was the end when it was in the future stays so once it has passed. */
function withPastEnd(
  said: Omit<AnnouncedEnd, 'endpoint'>,
  known: AnnouncedEnd | undefined,
): Omit<AnnouncedEnd, 'endpoint'> {
  const { endsMs, deprecationMs } = said;
  const hasPassed = endsMs === null && deprecationMs !== null && known?.endsMs === deprecationMs;
  return hasPassed ? { ...said, endsMs: deprecationMs } : said;
}

function endOf({ endsMs }: AnnouncedEnd): number {
  return endsMs ?? Number.POSITIVE_INFINITY;
}

function isSame(a: AnnouncedEnd, b: AnnouncedEnd): boolean {
  return a.endsMs === b.endsMs && a.deprecationMs === b.deprecationMs && a.sunsetMs === b.sunsetMs;
}

// The headers by which an endpoint announces its end. RFC 8594 defines `Sunset` as the end. RFC
// 9745 defines `Deprecation` as the moment of deprecation, but the services document puts the
// end-of-life date there, announced twelve months ahead: so a future date in it is an end, and a
// past one is a deprecation only. Invariant: headers are untrusted text; a value that is not a date
// is ignored.

type Headers = Readonly<Record<string, string>>;

/** Longer values are cut: no date needs so many characters. */
const lengthMax = 1_024;
/** A date outside these years is a fault of the sender. */
const yearsMs = [Date.UTC(2000, 0, 1), Date.UTC(2200, 0, 1)] as const;

/** The announcement of a response about its endpoint, times in epoch milliseconds; null: none. */
export function announcedIn(
  headers: Headers,
  nowMs: number,
): Omit<AnnouncedEnd, 'endpoint'> | null {
  const deprecation = readDeprecation(headers.deprecation, nowMs);
  const sunsetMs = readSunset(headers.sunset, nowMs);
  if (deprecation === null && sunsetMs === null) return null;
  const deprecationMs = sane(deprecation?.atMs ?? null);
  const isEnd = deprecationMs !== null && deprecationMs > nowMs;
  return { deprecationMs, sunsetMs, endsMs: sunsetMs ?? (isEnd ? deprecationMs : null) };
}

function readSunset(text: string | undefined, nowMs: number): number | null {
  const dates = valuesIn(text).flatMap((value) => sane(parseHttpDate(value, nowMs)) ?? []);
  return dates.length === 0 ? null : Math.min(...dates);
}

/**
 * RFC 9745's `@1688169599`, and the forms before it: `true`, `?1`, an HTTP-date, an ISO date, bare
 * epoch seconds. Of several the earliest date. Null when absent, malformed or false; `atMs` null
 * when it is deprecated without a date.
 */
export function readDeprecation(
  text: string | undefined,
  nowMs: number,
): { readonly atMs: number | null } | null {
  const values = valuesIn(text).flatMap((value) => deprecationIn(value, nowMs) ?? []);
  if (values.length === 0) return null;
  const dates = values.flatMap(({ atMs }) => atMs ?? []);
  return { atMs: dates.length === 0 ? null : Math.min(...dates) };
}

function deprecationIn(text: string, nowMs: number): { readonly atMs: number | null } | null {
  const item = parseFieldItem(text);
  if (item?.type === 'date') return inRange(item.value * 1_000);
  if (item?.type === 'boolean') return item.value ? { atMs: null } : null;
  if (text.toLowerCase() === 'true') return { atMs: null };
  if (/^\d{9,11}$/.test(text)) return inRange(Number(text) * 1_000);
  const httpDate = parseHttpDate(text, nowMs);
  if (httpDate !== null) return { atMs: httpDate };
  if (!/^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(text)) return null;
  const isoDate = Date.parse(text);
  return Number.isNaN(isoDate) ? null : { atMs: isoDate };
}

/** A structured date may hold more seconds than a JavaScript date. */
function inRange(ms: number): { readonly atMs: number } | null {
  return Math.abs(ms) <= 8.64e15 ? { atMs: ms } : null;
}

/** Repeated header lines arrive joined by commas; the day name of an HTTP-date has a comma too. */
function valuesIn(text = ''): readonly string[] {
  const cut = text.slice(0, lengthMax).trim();
  return cut === '' ? [] : cut.split(/(?<!\b[A-Z][a-z]{2,8}),[ \t]*/);
}

function sane(ms: number | null): number | null {
  return ms !== null && ms >= yearsMs[0] && ms < yearsMs[1] ? ms : null;
}

/** The address under rel deprecation, sunset or successor-version (RFC 8288), for the log. */
function linkIn({ link }: Headers): string | undefined {
  const pattern = /<([^<>]{1,500})>[^<>]*;\s*rel="?(?:deprecation|sunset|successor-version)\b/i;
  const target = link === undefined ? undefined : pattern.exec(link.slice(0, 4_096))?.[1];
  return target && cleanText(target, 200);
}
