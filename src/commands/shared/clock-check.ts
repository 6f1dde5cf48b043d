// Whether this machine's clock is right, as far as those tell who are asked anyway: every HTTP answer
// says when it was made (RFC 9110, section 6.6.1, `Date`). What must stay true: one far side that
// agrees is enough, since another may be wrong itself; and an answer from a cache says nothing.

import {
  type Clock,
  ExportError,
  type HttpResponse,
  parseHttpDate,
} from '../../contracts/index.ts';
import type { OwnHttpClient } from '../../tools/http-client.ts';
import { exactSpanText } from '../../tools/index.ts';

/** A clock that is further off is told; RFC 3161 and tokens bear no more either. */
const skewMsMax = 60_000;
const minuteMs = 60_000;
/** `Date` has whole seconds. */
const dateMs = 1_000;

/** Listens to what answers say of the time. */
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

  /** Why times are wrong that this machine writes; null: they are not, or nobody has said. */
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
