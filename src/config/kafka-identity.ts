// The SASL identity of `state.kafka`. Its clients repeat failed connections within milliseconds, and no engine spaces
// them. Invariant: after a failed token request, the endpoint gets no request for a growing time, so that an outage stays
// small and no account is locked.

import { type SaslSettings, saslIdentity } from '../../connectors/index.ts';
import type { TlsSettings } from '../contracts/index.ts';
import type { KafkaSasl, KafkaToken } from '../kafka/index.ts';
import { openHttpClient } from '../tools/http-client.ts';
import { systemClock } from '../tools/index.ts';

/** Limit for one token request, below that for a connection. */
const timeoutMs = 8_000;
const pauseMsMin = 1_000;
const pauseMsMax = 30_000;

/** The identity of the connections of `state.kafka`. */
export function stateIdentity(settings: SaslSettings, tls: TlsSettings | undefined): KafkaSasl {
  const clock = systemClock();
  const http: ReturnType<typeof openHttpClient>['request'] = async (request, signal) => {
    // Token requests are rare, and no command or process has to close a client.
    const client = openHttpClient();
    try {
      return await client.request(request, signal);
    } finally {
      await client.close();
    }
  };
  const tools = { clock, http: { request: http, close: () => Promise.resolve() } };
  const identity = saslIdentity(settings, {
    tools,
    doing: 'state.kafka',
    timeout: timeoutMs,
    tls,
  });
  return identity.mechanism === 'oauthbearer' ? spaced(identity, clock) : identity;
}

/** Repeats the last failure for a while, in place of another request. */
export function spaced(
  identity: KafkaToken,
  clock: Pick<ReturnType<typeof systemClock>, 'monotonic'>,
): KafkaToken {
  let failed: { readonly cause: unknown; readonly until: number; readonly pauseMs: number } | null =
    null;
  return {
    mechanism: 'oauthbearer',
    async token() {
      if (failed !== null && clock.monotonic() < failed.until) throw failed.cause;
      const begun = failed;
      try {
        const token = await identity.token();
        failed = null;
        return token;
      } catch (cause) {
        // Callers that waited for the same request have the same failure.
        if (failed === begun) {
          const pauseMs = Math.min((begun?.pauseMs ?? pauseMsMin / 2) * 2, pauseMsMax);
          failed = { cause, until: clock.monotonic() + pauseMs, pauseMs };
        }
        throw cause;
      }
    },
    drop: () => identity.drop(),
  };
}
