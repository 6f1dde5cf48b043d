// The ends that the responses of an upstream announce, by endpoint. Servers behind one address can
// differ, so one response decides nothing that another one has named:
// - an earlier date counts at once;
// - a later date counts once ten responses in a row did not name the earlier one;
// - no date counts once no response has named one for 24 hours, by successful responses.
// Invariants: the number of endpoints is bounded; a stored date counts after a restart as before.

import type { Clock, Log } from '../contracts/index.ts';
import { cleanText, timeText } from '../tools/index.ts';
import { announcedIn, linkIn } from './end-headers.ts';
import { type AnnouncedEnd, daysLeft } from './ends.ts';

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
