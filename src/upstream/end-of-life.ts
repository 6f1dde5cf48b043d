// Notices that an endpoint is going away. The services API announces it twelve months ahead in a
// `Deprecation` header that it says carries the end-of-life date, while RFC 9745 makes it the
// moment of deprecation and RFC 8594 gives the end to `Sunset`: so each is told as what it says,
// nothing is inferred. It never stops anything; it is said once per endpoint and day.

import { parseHttpDate } from '../contracts/http-date.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { cleanText } from '../tools/clean-text.ts';
import { timeText } from '../tools/time-text.ts';
import { parseItem } from './structured-field.ts';

/** What an endpoint's answers say about its end, epoch ms; null: said, without a date. */
export interface EndOfLife {
  /** The path template. */
  readonly endpoint: string;
  readonly deprecationMs: number | null;
  readonly sunsetMs: number | null;
}

const dayMs = 86_400_000;

/** Watches the answers of one upstream. */
export class EndOfLifeWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #found = new Map<string, EndOfLife>();
  readonly #saidAtMs = new Map<string, number>();

  /** `log` should carry the upstream's name. */
  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Endpoints whose latest answer announced an end. */
  get announced(): readonly EndOfLife[] {
    return [...this.#found.values()];
  }

  /** Called with each answer's headers; logs where there is something new to say today. */
  notice(endpoint: string, headers: Readonly<Record<string, string>>): void {
    const nowMs = this.#clock.now();
    const deprecation = readDeprecation(headers.deprecation, nowMs);
    const sunsetMs = parseHttpDate(headers.sunset ?? '', nowMs);
    if (deprecation === null && sunsetMs === null) {
      this.#found.delete(endpoint);
      return;
    }
    const deprecationMs = deprecation?.atMs ?? null;
    this.#found.set(endpoint, { endpoint, deprecationMs, sunsetMs });
    const elapsedMs = this.#clock.monotonic();
    if (elapsedMs - (this.#saidAtMs.get(endpoint) ?? Number.NEGATIVE_INFINITY) < dayMs) return;
    this.#saidAtMs.set(endpoint, elapsedMs);
    this.#log.warn('upstream announces the end of an endpoint', {
      endpoint,
      deprecation: deprecationMs === null ? undefined : timeText(deprecationMs),
      deprecation_header: headers.deprecation && cleanText(headers.deprecation, 80),
      sunset: sunsetMs === null ? undefined : timeText(sunsetMs),
      days_left: sunsetMs === null ? undefined : Math.floor((sunsetMs - nowMs) / dayMs),
      link: linkOf(headers.link),
    });
  }
}

/**
 * RFC 9745's `@1688169599`, and what came before it: `true`, `?1`, an HTTP-date, an ISO date, bare
 * epoch seconds. Null when absent, malformed or false; `atMs` null when it is deprecated without a
 * date.
 */
export function readDeprecation(
  text: string | undefined,
  nowMs: number,
): { readonly atMs: number | null } | null {
  if (text === undefined) return null;
  const trimmed = text.trim();
  const item = parseItem(trimmed);
  if (item?.type === 'date') return inRange(item.value * 1_000);
  if (item?.type === 'boolean') return item.value ? { atMs: null } : null;
  if (trimmed.toLowerCase() === 'true') return { atMs: null };
  if (/^\d{9,11}$/.test(trimmed)) return inRange(Number(trimmed) * 1_000);
  const httpDate = parseHttpDate(trimmed, nowMs);
  if (httpDate !== null) return { atMs: httpDate };
  if (!/^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(trimmed)) return null;
  const isoDate = Date.parse(trimmed);
  return Number.isNaN(isoDate) ? null : { atMs: isoDate };
}

/** A structured date may hold more seconds than a JavaScript date. */
function inRange(ms: number): { readonly atMs: number } | null {
  return Math.abs(ms) <= 8.64e15 ? { atMs: ms } : null;
}

/** The address under rel deprecation, sunset or successor-version (RFC 8288), to read up. */
function linkOf(link: string | undefined): string | undefined {
  const pattern = /<([^<>]{1,500})>[^<>]*;\s*rel="?(?:deprecation|sunset|successor-version)\b/i;
  const target = link === undefined ? undefined : pattern.exec(link.slice(0, 4_096))?.[1];
  return target && cleanText(target, 200);
}
