// The only client of an upstream. A request waits for its turn (throttles.ts), gets its token, is
// sent, and returns an Answer (answer.ts); rate limits and announced ends are read from the
// response's headers. Only one kind of request is repeated here: one whose token was just rejected.
// All other waits and retries belong to the poller, so that they are in one file.

import { createHash } from 'node:crypto';
import {
  type Answer,
  type Body,
  type Clock,
  type ExportError,
  type HttpClient,
  HttpFailure,
  type HttpRequest,
  type HttpResponse,
  invariant,
  type Log,
  type Received,
  type TlsSettings,
  type Upstream,
  type UpstreamRequest,
  type Wait,
} from '../contracts/index.ts';
import { requestIdOf } from '../tools/index.ts';
import type { TokenAnswer, TokenSource } from './access-token.ts';
import type { AnnouncedEnds, EndsByUpstream } from './announced-ends.ts';
import { httpFailureOf, readAnswer, type Sent } from './answer.ts';
import { type AnnouncedEnd, type UpstreamEnd, upstreamEnd } from './ends.ts';
import type { Lane } from './fair-queue.ts';
import { readRateSign } from './rate-sign.ts';
import { tokenUrl, type UpstreamSettings, upstreamTls } from './settings.ts';
import type { ThrottleState, Throttles } from './throttles.ts';
import type { Credential } from './token-request.ts';
import type { Tokens } from './tokens.ts';

/** An upstream's state for status. */
export interface UpstreamState {
  readonly throttles: readonly ThrottleState[];
  readonly end: UpstreamEnd;
  /** Scopes granted with the current token; null if unknown. */
  readonly grantedScope: string | null;
}

/**
 * Dependencies of an upstream client; `throttles`, `tokens` and `ends` are shared by all clients.
 */
export interface UpstreamTools {
  readonly clock: Clock;
  readonly log: Log;
  readonly http: HttpClient;
  readonly throttles: Pick<Throttles, 'gate'>;
  readonly tokens: Tokens;
  readonly ends: EndsByUpstream;
}

/** One upstream with its credential. */
export class UpstreamClient implements Upstream {
  readonly name: string;
  readonly api: Upstream['api'];
  readonly baseUrl: string;
  readonly companies: readonly string[];
  /** The ends that its responses announce. */
  readonly announced: AnnouncedEnds;
  readonly #settings: UpstreamSettings;
  readonly #tools: UpstreamTools;
  readonly #tls: TlsSettings;
  readonly #source: TokenSource;
  readonly #gate: ReturnType<Throttles['gate']>;
  readonly #log: Log;
  #hasReportedReset = false;

  /** Does not connect yet. Throws an ExportError if a secret cannot be read. */
  constructor(name: string, settings: UpstreamSettings, tools: UpstreamTools) {
    const credential = credentialOf(settings);
    this.name = name;
    this.api = settings.api;
    this.baseUrl = settings.base_url;
    this.companies = settings.companies;
    this.#settings = settings;
    this.#tools = tools;
    this.#tls = upstreamTls(settings);
    this.#source = tools.tokens.source(credential);
    this.#gate = tools.throttles.gate(
      { credential: credentialDigest(credential), base: settings.base_url },
      {
        ceilings: settings.throttle.map(({ per, ...ceiling }) => ({ ...ceiling, perMs: per })),
        pauseMs: settings.rate_limit_pause,
      },
    );
    this.#log = tools.log.with({ upstream: name });
    this.announced = tools.ends.of(name, settings.base_url);
  }

  /** `auth.scope` of the config; null: not set. */
  get requestedScope(): string | null {
    return this.#settings.auth.scope ?? null;
  }

  state(): UpstreamState {
    return {
      throttles: this.#gate.state(),
      end: this.end,
      grantedScope: this.#source.granted(),
    };
  }

  get end(): UpstreamEnd {
    return this.endBy(this.announced.all);
  }

  /** Its end by its settings and by these announcements. */
  endBy(announced: readonly AnnouncedEnd[]): UpstreamEnd {
    return upstreamEnd(this.#settings, announced);
  }

  /** The addresses of data and token requests, and `proxy`; null: direct connections. */
  get route(): { readonly urls: readonly string[]; readonly proxy: string | null } {
    const { base_url: data, proxy, auth } = this.#settings;
    const urls = auth.api_key === undefined ? [data, tokenUrl(this.#settings)] : [data];
    return { urls, proxy: proxy?.reveal() ?? null };
  }

  /** Gets a token and requests nothing else, for `check --connect`; null: success. */
  async authorise(signal: AbortSignal): Promise<ExportError | null> {
    const answer = await this.#source.token(signal);
    return answer.outcome === 'ok' ? null : answer.cause;
  }

  async get(
    request: UpstreamRequest,
    signal: AbortSignal,
    received?: Received,
  ): Promise<Answer<Body>> {
    invariant(request.path.startsWith('/'), 'an upstream path starts with /');
    const { path, template, company = '' } = request;
    const lane = { path, template, tenant: company };
    const source = this.#source;
    for (let renewed = false; ; renewed = true) {
      const pass = await this.#ticket(lane, signal);
      if (pass.outcome !== 'ok') return pass;
      const sent = await this.#send(request, { token: pass.token, lane }, signal);
      if (sent.response === null) return sent.answer;
      received?.({ ...sent.response, ...requestIdOf(sent.response) });
      if (showsCredentialAccepted(sent.response)) {
        source.accepted(pass.token);
        source.suspicion.accept(this.#suspectPath(lane));
      }
      const { answer } = sent;
      if (sent.response.status !== 401) return answer;
      if (source.invalidate(pass.token) && !renewed) continue;
      invariant(answer.outcome === 'denied', 'a 401 is a denial');
      return source.suspicion.refuse(answer.cause, this.#suspectPath(lane));
    }
  }

  /**
   * The token first, so that a slow token endpoint does not make requests pile up at their turn.
   */
  async #ticket(lane: Lane, signal: AbortSignal): Promise<TokenAnswer> {
    const { suspicion } = this.#source;
    const path = this.#suspectPath(lane);
    const early = suspicion.held(path) ?? (await this.#source.token(signal));
    if (early.outcome !== 'ok') return early;
    await this.#gate.acquire(lane, signal);
    return suspicion.admit(path) ?? (await this.#source.token(signal));
  }

  /** Two upstreams may share a token and have equal paths. */
  #suspectPath({ path }: Lane): string {
    return `${this.baseUrl}${path}`;
  }

  /** One request and its classified result; no response: none arrived completely. */
  async #send(
    request: UpstreamRequest,
    { token, lane }: { readonly token: string; readonly lane: Lane },
    signal: AbortSignal,
  ): Promise<{ readonly response: HttpResponse | null; readonly answer: Answer<Body> }> {
    const sent = requestFor(request, this.#settings, { token, tls: this.#tls });
    const asked: Sent = {
      upstream: this.name,
      ...{ method: sent.method, path: request.path, url: sent.url },
      isLines: request.response === 'ndjson',
      isProxied: this.#settings.proxy !== undefined,
      hidden: [token, ...secretsOf(request)],
      scopes: { asked: this.#settings.auth.scope, granted: this.#source.granted() },
    };
    try {
      const response = await this.#tools.http.request(sent, signal);
      const wait = this.#learn(lane, response, sent);
      const { status, body, headers } = response;
      // A registration is confirmed by 201 or 204 too.
      const isDone = request.idempotencyKey !== undefined && status >= 200 && status < 300;
      return {
        response,
        answer: isDone
          ? { outcome: 'ok', url: sent.url, body, headers }
          : readAnswer(response, asked, wait),
      };
    } catch (error) {
      if (!(error instanceof HttpFailure)) throw error;
      // The proxy may have refused a password that a command prints.
      void this.#settings.proxy?.refresh();
      return { response: null, answer: httpFailureOf(error, asked) };
    }
  }

  #learn(lane: Lane, response: HttpResponse, sent: HttpRequest): Wait | undefined {
    const nowMs = this.#tools.clock.now();
    const names = this.#settings.rate_limit_headers;
    const sign = readRateSign(response.status, response.headers, { nowMs, names });
    this.#gate.observe(lane, sign, `${sent.url}${sent.body ?? ''}`);
    this.announced.notice(lane.template, response, this.#log);
    if (sign.distantReset) this.#reportDistantReset(lane);
    const ms = sign.refused ? this.#gate.delay(lane) : sign.retryAfterMs;
    if (ms !== undefined) return { ms };
    // Some servers respond with 403 when no request is left.
    const isUsedUp = response.status === 403 && sign.remaining === 0 && sign.resetMs !== undefined;
    return isUsedUp ? { ms: this.#gate.delay(lane) } : undefined;
  }

  #reportDistantReset({ template }: Lane): void {
    if (this.#hasReportedReset) return;
    this.#hasReportedReset = true;
    this.#log.warn(
      'rate_limit_reset_ignored',
      'ignored a rate limit reset that is more than a day away; reported once',
      {
        path: template,
        next: 'If this header is no reset time, set rate_limit_headers.reset of the upstream. Waits after 429 grow by themselves.',
      },
    );
  }
}

/**
 * Another status may come from an intermediary, or from a server that does not know the credential.
 */
function showsCredentialAccepted({ status }: HttpResponse): boolean {
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
    ...(settings.proxy && { proxy: settings.proxy.reveal() }),
    timeoutMs: settings.timeout,
    bodyBytesMax: settings.max_body,
  };
}

/** Any parameter except the well-known ones may be a cursor, whatever its name. */
function secretsOf({ query, address, body }: UpstreamRequest): readonly string[] {
  const plain = /^(limit|offset|order|order_by)$/;
  const named = [...query, ...Object.entries(body ?? {})].filter(([name]) => !plain.test(name));
  const texts = named.flatMap(([, value]) => (typeof value === 'string' ? value : []));
  return address === undefined ? texts : [...texts, address];
}

/** `?a=1&b=2`, in the given order; encoded once, so that a cursor returns unchanged. */
function queryText(query: readonly (readonly [string, string])[]): string {
  const pairs = query.map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** RFC 3986's unreserved characters are kept; the rest is encoded, so that all parsers agree. */
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
    proxy: settings.proxy,
  };
}

function credentialDigest(credential: Credential): string {
  const text =
    credential.kind === 'api_key'
      ? credential.key.reveal()
      : `${credential.url}\n${credential.clientId.reveal()}`;
  return createHash('sha256').update(text).digest('base64');
}
