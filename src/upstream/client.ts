// The one place that talks to an upstream. A request waits for its turn (throttles.ts), gets its
// token, is sent, and comes back as an Answer (answer.ts); on the way the answer's signs of limits
// and of an endpoint's end are noticed. Nothing is retried here but the one request whose token had
// just been refused: waits and retries are the poller's, so that they stand in one place.

import { createHash } from 'node:crypto';
import type { Answer, Wait } from '../contracts/answer.ts';
import { type ExportError, invariant } from '../contracts/errors.ts';
import {
  type Clock,
  type HttpClient,
  HttpFailure,
  type HttpRequest,
  type HttpResponse,
  type Log,
  type TlsSettings,
} from '../contracts/tools.ts';
import type { Body, Upstream, UpstreamRequest } from '../contracts/upstream.ts';
import type { TokenAnswer } from './access-token.ts';
import { failureOf, readAnswer, type Sent } from './answer.ts';
import { type EndOfLife, EndOfLifeWatch } from './end-of-life.ts';
import type { Lane } from './fair-queue.ts';
import { readRateSign } from './rate-sign.ts';
import { tokenUrl, type UpstreamSettings, upstreamTls } from './settings.ts';
import type { ThrottleState, Throttles } from './throttles.ts';
import type { Credential } from './token-request.ts';
import type { Tokens } from './tokens.ts';

/** What status shows of an upstream. */
export interface UpstreamState {
  readonly throttles: readonly ThrottleState[];
  readonly endOfLife: readonly EndOfLife[];
  /** Scopes granted with the current token; null when unknown. */
  readonly grantedScope: string | null;
}

/** One upstream with its credential. */
export interface UpstreamClient extends Upstream {
  /** Gets a token and asks for nothing else, for `check --connect`; null: all is well. */
  authorise(signal: AbortSignal): Promise<ExportError | null>;
  state(): UpstreamState;
}

/** What an upstream client is made with; `throttles` and `tokens` are shared by all. */
export interface UpstreamTools {
  readonly clock: Clock;
  readonly log: Log;
  readonly http: HttpClient;
  readonly throttles: Throttles;
  readonly tokens: Tokens;
}

/** Opens the client without connecting. Throws an ExportError when a secret cannot be read. */
export function openUpstream(
  name: string,
  settings: UpstreamSettings,
  tools: UpstreamTools,
): UpstreamClient {
  const credential = credentialOf(settings);
  const source = tools.tokens.source(credential);
  const gate = tools.throttles.gate(
    { credential: credentialDigest(credential), base: settings.base_url },
    {
      ceilings: settings.throttle.map(({ per, ...ceiling }) => ({ ...ceiling, perMs: per })),
      pauseMs: settings.rate_limit_pause,
    },
  );
  const endOfLife = new EndOfLifeWatch(tools.clock, tools.log.with({ upstream: name }));
  const tls = upstreamTls(settings);

  /** The token first, so that a slow endpoint does not let requests pile up at their turn. */
  const ticket = async (lane: Lane, signal: AbortSignal): Promise<TokenAnswer> => {
    const path = suspectPath(lane);
    const early = source.suspicion.held(path) ?? (await source.token(signal));
    if (early.outcome !== 'ok') return early;
    await gate.acquire(lane, signal);
    return source.suspicion.admit(path) ?? (await source.token(signal));
  };
  // Two upstreams may share a token and have paths of the same name.
  const suspectPath = ({ path }: Lane) => `${settings.base_url}${path}`;

  const learn = (lane: Lane, response: HttpResponse, asking: HttpRequest): Wait | undefined => {
    const nowMs = tools.clock.now();
    const names = settings.rate_limit_headers;
    const sign = readRateSign(response.status, response.headers, { nowMs, names });
    gate.observe(lane, sign, `${asking.url}${asking.body ?? ''}`);
    endOfLife.notice(lane.template, response.headers);
    const ms = sign.refused ? gate.delay(lane) : sign.retryAfterMs;
    return ms === undefined ? undefined : { ms };
  };

  const get = async (request: UpstreamRequest, signal: AbortSignal): Promise<Answer<Body>> => {
    invariant(request.path.startsWith('/'), 'an upstream path starts with /');
    const { path, template, company = '' } = request;
    const lane = { path, template, tenant: company };
    for (let renewed = false; ; renewed = true) {
      const pass = await ticket(lane, signal);
      if (pass.outcome !== 'ok') return pass;
      const asking = requestFor(request, settings, { token: pass.token, tls });
      const asked: Sent = {
        upstream: name,
        ...{ method: asking.method, path, url: asking.url },
        isLines: request.response === 'ndjson',
        hidden: [pass.token, ...secretsOf(request)],
        scopes: { asked: settings.auth.scope, granted: source.granted() },
      };
      let response: HttpResponse;
      try {
        response = await tools.http.request(asking, signal);
      } catch (error) {
        if (error instanceof HttpFailure) return failureOf(error, asked);
        throw error;
      }
      const wait = learn(lane, response, asking);
      if (request.idempotencyKey !== undefined && response.status >= 200 && response.status < 300) {
        return { outcome: 'ok', url: asking.url, body: response.body, headers: response.headers };
      }
      const answer = readAnswer(response, asked, wait);
      if (showsCredentialTaken(response)) {
        source.accepted(pass.token);
        source.suspicion.accept(suspectPath(lane));
      }
      if (response.status !== 401) return answer;
      if (source.invalidate(pass.token) && !renewed) continue;
      invariant(answer.outcome === 'denied', 'a 401 is a denial');
      return source.suspicion.refuse(answer.cause, suspectPath(lane));
    }
  };

  return {
    name,
    api: settings.api,
    baseUrl: settings.base_url,
    companies: settings.companies,
    get,
    async authorise(signal) {
      const answer = await source.token(signal);
      return answer.outcome === 'ok' ? null : answer.cause;
    },
    state: () => ({
      throttles: gate.state(),
      endOfLife: endOfLife.announced,
      grantedScope: source.granted(),
    }),
  };
}

/** Whoever answers otherwise may stand before the upstream, or not know the credential. */
function showsCredentialTaken({ status }: HttpResponse): boolean {
  return status === 200 || status === 403;
}

function requestFor(
  request: UpstreamRequest,
  settings: UpstreamSettings,
  { token, tls }: { readonly token: string; readonly tls: TlsSettings },
): HttpRequest {
  const { address, body, idempotencyKey, path, query, response } = request;
  invariant(address?.startsWith('/') !== false, 'an address names no origin');
  const json = 'application/json, application/problem+json;q=0.9';
  return {
    method: body === undefined ? 'GET' : 'POST',
    url:
      address === undefined
        ? `${settings.base_url}${path}${queryText(query)}`
        : `${new URL(settings.base_url).origin}${address}`,
    headers: {
      accept: response === 'ndjson' ? `application/x-ndjson, ${json}` : json,
      authorization: `Bearer ${token}`,
      ...(body && { 'content-type': 'application/json' }),
      ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    },
    ...(body && { body: JSON.stringify(body) }),
    tls,
    timeoutMs: settings.timeout,
    bodyBytesMax: settings.max_body,
  };
}

/** Any parameter but the well-known ones may be a cursor, whatever it is called. */
function secretsOf({ query, address, body }: UpstreamRequest): readonly string[] {
  const plain = /^(limit|offset|order|order_by)$/;
  const named = [...query, ...Object.entries(body ?? {})].filter(([name]) => !plain.test(name));
  const texts = named.flatMap(([, value]) => (typeof value === 'string' ? value : []));
  return address === undefined ? texts : [...texts, address];
}

/** `?a=1&b=2`, in the order given; encoded once, so that a cursor comes back as it was. */
function queryText(query: readonly (readonly [string, string])[]): string {
  const pairs = query.map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** RFC 3986's unreserved characters stay; the rest is encoded, so that no parser differs. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function credentialOf(settings: UpstreamSettings): Credential {
  const { auth } = settings;
  if (auth.api_key !== undefined) {
    return { kind: 'api_key', key: auth.api_key, url: settings.base_url };
  }
  const { client_id: clientId, client_secret: clientSecret } = auth;
  invariant(
    clientId !== undefined && clientSecret !== undefined,
    'auth was checked by upstreamFlaws',
  );
  return {
    kind: 'client',
    url: tokenUrl(settings),
    clientId,
    clientSecret,
    scope: auth.scope,
    placing: settings.api === 'unified' ? 'form' : 'basic',
    basicEncoding: auth.basic_encoding,
    tls: upstreamTls(settings),
  };
}

function credentialDigest(credential: Credential): string {
  const text =
    credential.kind === 'api_key'
      ? credential.key.reveal()
      : `${credential.url}\n${credential.clientId.reveal()}`;
  return createHash('sha256').update(text).digest('base64');
}
