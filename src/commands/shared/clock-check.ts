// Checks this machine's clock against responses that are received anyway: every HTTP response has the time it was made
// (RFC 9110, section 6.6.1, `Date`). Invariants: one server that agrees with the clock is enough, since another may be
// wrong itself; a cached response proves nothing.

import {
  type Clock,
  ExportError,
  type HttpResponse,
  parseHttpDate,
} from '../../contracts/index.ts';
import type { OwnHttpClient } from '../../tools/http-client.ts';
import { exactSpanText } from '../../tools/index.ts';

/** A larger difference is reported; RFC 3161 and tokens tolerate no more either. */
const skewMsMax = 60_000;
const minuteMs = 60_000;
/** `Date` has whole seconds. */
const dateMs = 1_000;

/** Collects the times of responses. */
export class ClockCheck {
  readonly #clock: Clock;
  /** The least that any answer differs, milliseconds: positive where this clock is ahead. */
  #skewMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same client, its answers listened to. */
  listening(http: OwnHttpClient): OwnHttpClient {
    return {
      inFlight: http.inFlight,
      ready: () => http.ready(),
      close: () => http.close(),
      request: async (request, signal) => {
        const sentAt = this.#clock.now();
        const response = await http.request(request, signal);
        this.#hear(response, sentAt);
        return response;
      },
    };
  }

  /** Why this machine's times are wrong; null: they are right, or no response had a time. */
  verdict(): ExportError | null {
    const skewMs = this.#skewMs ?? 0;
    if (Math.abs(skewMs) <= skewMsMax) return null;
    const where = skewMs > 0 ? 'ahead of' : 'behind';
    const minutes = Math.round(Math.abs(skewMs) / minuteMs) * minuteMs;
    const what = `the clock of this machine is ${exactSpanText(minutes)} ${where} that of every server that answered`;
    return new ExportError('config_invalid', what, {
      next: 'Set it (NTP): times at which records were read are this clock’s, signatures and tokens are refused beside a wrong one.',
    });
  }

  #hear({ headers }: HttpResponse, sentAt: number): void {
    const receivedAt = this.#clock.now();
    const date = headers.age === undefined ? parseHttpDate(headers.date ?? '', receivedAt) : null;
    if (date === null) return;
    const ahead = Math.max(0, sentAt - (date + dateMs));
    const skewMs = ahead > 0 ? ahead : Math.min(0, receivedAt - date);
    if (this.#skewMs === null || Math.abs(skewMs) < Math.abs(this.#skewMs)) this.#skewMs = skewMs;
  }
}
