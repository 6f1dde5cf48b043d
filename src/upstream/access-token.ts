// Access tokens from a token endpoint: requested once for all callers, renewed before they expire,
// discarded when upstream rejects them. Repeated rejections can lock an account, so a rejection is
// cached and returned to all callers except one probe a minute, unless the secret has changed
// (suspicion.ts). Secrets are read again for each request, so a rotated one applies. Invariant: no
// message contains a token or secret.

import {
  type Answer,
  asExportError,
  type Clock,
  ExportError,
  type Failure,
  type HttpClient,
  HttpFailure,
  type HttpRequest,
  type HttpResponse,
  type Log,
} from '../contracts/index.ts';
import { BackOff, fingerprintOf, refreshSecrets, SharedCall } from '../tools/index.ts';
import { readRateSign } from './rate-sign.ts';
import { Suspicion } from './suspicion.ts';
import { type ClientCredential, readGrant, tokenRequest } from './token-request.ts';

/** The result of a token request. */
export type TokenAnswer = Answer<{ readonly token: string }>;

/** The source of tokens for all requests with one credential. */
export interface TokenSource {
  /** Decides whether requests may be sent while upstream rejects the tokens on some paths. */
  readonly suspicion: Suspicion;
  /** The current token, or a new one; rejects only with the signal's reason. */
  token(signal: AbortSignal): Promise<TokenAnswer>;
  /**
   * Upstream rejected this token, so it is not used again; true if another one should be tried.
   * False if there is none (API key) or if the last renewal did not help either: then the token
   * stays, because other paths may accept it.
   */
  invalidate(token: string): boolean;
  /** Upstream accepted this token. */
  accepted(token: string): void;
  /** Scopes granted with the current token; null if upstream did not report them. */
  granted(): string | null;
}

/** Dependencies of token requests. */
export interface TokenTools {
  readonly clock: Clock;
  readonly http: HttpClient;
  readonly log: Log;
  readonly random: () => number;
}

interface Grant {
  readonly token: string;
  readonly scope: string | null;
  readonly renewAtMs: number;
  readonly expiresAtMs: number;
  /** It was requested because the previous one was rejected. */
  readonly isReplacement: boolean;
  isAccepted: boolean;
  /** A rejected replacement: the next probe requests another one. */
  isRefused: boolean;
}

/** A failure of the endpoint, which says nothing about the credential. */
interface Outage {
  readonly cause: ExportError;
  readonly untilMs: number;
  readonly isRequestedWait: boolean;
}

/**
 * A token is renewed at this share of its life or a minute before its end, never before half its life.
 */
const renewShare = 0.8;
const renewBeforeMs = 60_000;
const renewShareMin = 0.5;
/** Up to this share of the life earlier, so that many processes do not renew together. */
const renewJitterShare = 0.05;

/** Requests tokens from a token endpoint. */
export class OAuthSource implements TokenSource {
  readonly #credential: ClientCredential;
  readonly #tools: TokenTools;
  readonly #transientWaits: BackOff;
  /**
   * Suspicion against every token, by request path; and against the secret, at the token endpoint.
   */
  readonly suspicion: Suspicion;
  readonly #secretRefused: Suspicion;
  #grant: Grant | null = null;
  #outage: Outage | null = null;
  /** The one request in flight, shared by all callers. */
  readonly #requesting = new SharedCall((signal) => this.#requestToken(signal));
  #isReplacing = false;

  constructor(credential: ClientCredential, tools: TokenTools) {
    const { random, clock } = tools;
    const fingerprint = () => fingerprintOf(credential);
    this.#credential = credential;
    this.#tools = tools;
    this.#transientWaits = new BackOff({ random });
    const refresh = () => refreshSecrets(credential);
    this.#secretRefused = new Suspicion({ clock, fingerprint, refresh });
    this.suspicion = new Suspicion({ clock, fingerprint, refresh });
  }

  async token(signal: AbortSignal): Promise<TokenAnswer> {
    signal.throwIfAborted();
    const nowMs = this.#tools.clock.monotonic();
    const grant = this.#usable(this.#grant);
    if (grant && nowMs < grant.expiresAtMs) {
      // Renewed in the background: a slow token endpoint must not delay a request.
      if (nowMs >= grant.renewAtMs && this.#heldBack() === null) this.#requesting.start();
      return tokenOf(grant);
    }
    return this.#heldBack() ?? (await this.#requesting.join(signal));
  }

  invalidate(token: string): boolean {
    const grant = this.#grant;
    if (grant?.token !== token) return true;
    if (grant.isReplacement && !grant.isAccepted) {
      grant.isRefused = true;
      return false;
    }
    this.#grant = null;
    this.#isReplacing = true;
    return true;
  }

  accepted(token: string): void {
    if (this.#grant?.token === token) this.#grant.isAccepted = true;
  }

  granted(): string | null {
    return this.#grant?.scope ?? null;
  }

  /** A replacement that is rejected everywhere is itself replaced, once per probe. */
  #usable(grant: Grant | null): Grant | null {
    if (grant === null || !grant.isRefused || grant.isAccepted) return grant;
    if (!this.suspicion.isDue()) return grant;
    this.#grant = null;
    this.#isReplacing = true;
    return null;
  }

  /** The cached failure, while a repeated request is pointless. */
  #heldBack(): Failure | null {
    const denied = this.#secretRefused.held();
    if (denied !== null) return denied;
    const outage = this.#outage;
    if (outage === null) return null;
    const ms = outage.untilMs - this.#tools.clock.monotonic();
    return ms <= 0 ? null : this.#retry(outage, ms);
  }

  #retry({ cause, isRequestedWait }: Outage, ms: number): Failure {
    const cut = () => {
      this.#outage = null;
    };
    return { outcome: 'retry', cause, wait: isRequestedWait ? { ms } : { ms, cut } };
  }

  async #requestToken(signal: AbortSignal): Promise<TokenAnswer> {
    const { clock, http } = this.#tools;
    await refreshSecrets(this.#credential);
    const requestedAtMs = clock.monotonic();
    const fingerprint = fingerprintOf(this.#credential);
    const doing = `requesting a token from ${this.#where}`;
    try {
      const request = this.#request(doing);
      if (request instanceof ExportError) return this.#refuse(request, fingerprint);
      const response = await http.request(request, signal);
      return this.#learn(response, { requestedAtMs, fingerprint });
    } catch (error) {
      const cause =
        error instanceof HttpFailure
          ? new ExportError('upstream_unreachable', `${doing}: ${error.message}`, {
              next: `It is tried again by itself; check ${this.#credential.proxy ? 'the proxy of this upstream' : 'the address'} and the network if it lasts.`,
              details: { failure: error.reason },
              cause: error,
            })
          : asExportError(error, doing);
      // Aborted because no caller waits any more: that says nothing about the endpoint.
      if (signal.aborted) return { outcome: 'retry', cause, wait: { ms: 0 } };
      return this.#fail(cause, this.#transientWaits.next(), false);
    }
  }

  /** The request, or the reason why secrets cannot be read, which counts as a rejected secret. */
  #request(doing: string): HttpRequest | ExportError {
    try {
      return tokenRequest(this.#credential);
    } catch (error) {
      return asExportError(error, doing);
    }
  }

  #learn(
    response: HttpResponse,
    {
      requestedAtMs,
      fingerprint,
    }: { readonly requestedAtMs: number; readonly fingerprint: string },
  ): TokenAnswer {
    const reading = readGrant(response, this.#credential);
    switch (reading.outcome) {
      case 'grant':
        this.#secretRefused.accept();
        return tokenOf(this.#keep(reading, requestedAtMs));
      case 'refused':
        return this.#refuse(reading.cause, fingerprint);
      case 'retry': {
        const nowMs = this.#tools.clock.now();
        const { retryAfterMs = 0 } = readRateSign(response.status, response.headers, { nowMs });
        const ownMs = this.#transientWaits.next();
        return this.#fail(reading.cause, Math.max(retryAfterMs, ownMs), retryAfterMs > 0);
      }
    }
  }

  #keep(
    reading: { token: string; scope: string | null; lifeMs: number },
    requestedAtMs: number,
  ): Grant {
    const { token, scope, lifeMs } = reading;
    const latestMs = Math.min(lifeMs * renewShare, lifeMs - renewBeforeMs);
    const jitterMs = this.#tools.random() * lifeMs * renewJitterShare;
    const renewMs = Math.max(latestMs - jitterMs, lifeMs * renewShareMin);
    this.#outage = null;
    this.#transientWaits.reset();
    // Counted from the request, because upstream's lifetime began before its response arrived.
    const grant = {
      token,
      scope,
      renewAtMs: requestedAtMs + renewMs,
      expiresAtMs: requestedAtMs + lifeMs,
      isReplacement: this.#isReplacing,
      isAccepted: false,
      isRefused: false,
    };
    this.#isReplacing = false;
    this.#grant = grant;
    return grant;
  }

  #refuse(cause: ExportError, fingerprint: string): Failure {
    return this.#logged(this.#secretRefused.refuse(cause, '', fingerprint));
  }

  #fail(cause: ExportError, waitMs: number, isRequestedWait: boolean): Failure {
    const untilMs = this.#tools.clock.monotonic() + waitMs;
    this.#outage = { cause, untilMs, isRequestedWait };
    return this.#logged(this.#retry(this.#outage, waitMs));
  }

  #logged(failure: Failure): Failure {
    const { cause, wait } = failure;
    this.#tools.log.warn('token_failed', 'no access token', {
      error: cause.message,
      next: cause.next,
      retry_in_ms: Math.round(wait?.ms ?? 0),
    });
    return failure;
  }

  get #where(): string {
    return URL.parse(this.#credential.url)?.host ?? 'the token endpoint';
  }
}

function tokenOf(grant: Grant): TokenAnswer {
  return { outcome: 'ok', token: grant.token };
}
