// Access tokens for the two upstream APIs: asked for once for all who need one, renewed before they expire, thrown away
// when upstream refuses them. The token endpoint is the one place where a mistake locks an account, so a refusal is
// remembered and answered from memory for a growing while, unless the secret itself has changed. Secrets are read anew
// for each request, so a rotated one is taken up. No token and no secret ever reaches a message.

import { createHash } from 'node:crypto';
import { asExportError, ExportError } from '../contracts/errors.ts';
import {
  type Clock,
  type HttpClient,
  HttpFailure,
  type HttpResponse,
  type Log,
} from '../contracts/tools.ts';
import { type BackOff, backOff } from './back-off.ts';
import { readRateSign } from './rate-sign.ts';
import { SharedCall } from './shared-call.ts';
import { type Credential, readGrant, tokenRequest } from './token-request.ts';

/** What asking for a token gives. `afterMs`: how long asking again is pointless. */
export type TokenAnswer =
  | { readonly outcome: 'token'; readonly token: string }
  | {
      readonly outcome: 'retry' | 'refused';
      readonly afterMs: number;
      readonly cause: ExportError;
    };

/** Where requests with one credential get their token. */
export interface TokenSource {
  /** The current token, or a new one; rejects only with the signal's reason. */
  token(signal: AbortSignal): Promise<TokenAnswer>;
  /**
   * Upstream refused this token, so it is not handed out again; true when another one is worth trying. False when there
   * is none (API key) or when the last renewal did not help either: then the token stays, since other paths may take it.
   */
  invalidate(token: string): boolean;
  /** Upstream took this token. */
  accepted(token: string): void;
  /** Scopes granted with the current token; null when upstream did not say. */
  granted(): string | null;
}

/** All token sources of the program. */
export interface Tokens {
  /** The source for this credential: the same one for the same token address, client and scope. */
  source(credential: Credential): TokenSource;
}

interface TokenTools {
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
  /** It was asked for because the one before was refused. */
  readonly isReplacement: boolean;
  isAccepted: boolean;
  /** A replacement that was refused as well is not replaced before this. */
  heldUntilMs: number | null;
}

interface Failure {
  readonly outcome: 'retry' | 'refused';
  readonly cause: ExportError;
  readonly untilMs: number;
  /** Digest of the secret that was refused; another secret is worth trying at once. */
  readonly secretDigest: string;
}

const refusedMsMin = 60_000;
const refusedMsMax = 900_000;
/** Renewed at this share of its life, or a minute before its end if that is earlier, but never before half of it. */
const renewShare = 0.8;
const renewBeforeMs = 60_000;
const renewShareMin = 0.5;
/** Up to this share of the life earlier, so that many processes do not renew together. */
const renewJitterShare = 0.05;

/** Opens the registry. One per program: a token is shared by all streams of a credential. */
export function openTokens(tools: TokenTools): Tokens {
  const sources = new Map<string, TokenSource>();
  return {
    source(credential) {
      if (credential.kind === 'api_key') return staticToken(credential.key);
      const name = JSON.stringify([
        credential.url,
        digest(credential.clientId.reveal()),
        credential.scope ?? null,
      ]);
      const known = sources.get(name);
      if (known) return known;
      const source = new OAuthSource(credential, tools);
      sources.set(name, source);
      return source;
    },
  };
}

function staticToken(key: { reveal(): string }): TokenSource {
  return {
    async token(signal) {
      signal.throwIfAborted();
      try {
        return { outcome: 'token', token: key.reveal() };
      } catch (error) {
        const cause = asExportError(error, 'reading the API key');
        return { outcome: 'retry', cause, afterMs: refusedMsMin };
      }
    },
    invalidate: () => false,
    accepted() {},
    granted: () => null,
  };
}

class OAuthSource implements TokenSource {
  readonly #credential: Extract<Credential, { kind: 'client' }>;
  readonly #tools: TokenTools;
  readonly #transientWaits: BackOff;
  readonly #refusedWaits: BackOff;
  #grant: Grant | null = null;
  #failure: Failure | null = null;
  /** The one request under way: all who need a token wait for the same one. */
  readonly #asking = new SharedCall((signal) => this.#ask(signal));
  #isReplacing = false;

  constructor(credential: Extract<Credential, { kind: 'client' }>, tools: TokenTools) {
    const { random } = tools;
    this.#credential = credential;
    this.#tools = tools;
    this.#transientWaits = backOff({ random });
    this.#refusedWaits = backOff({ minMs: refusedMsMin, maxMs: refusedMsMax, random });
  }

  async token(signal: AbortSignal): Promise<TokenAnswer> {
    signal.throwIfAborted();
    const nowMs = this.#tools.clock.monotonic();
    const grant = this.#grant;
    if (grant && nowMs < grant.expiresAtMs) {
      // Renewed behind the back of those who ask: while it is good, a slow token endpoint must delay nobody.
      if (nowMs >= grant.renewAtMs && this.#heldBack() === null) this.#asking.start();
      return tokenOf(grant);
    }
    return this.#heldBack() ?? (await this.#asking.join(signal));
  }

  invalidate(token: string): boolean {
    const grant = this.#grant;
    if (grant?.token !== token) return true;
    if (grant.isReplacement && !grant.isAccepted) {
      const nowMs = this.#tools.clock.monotonic();
      grant.heldUntilMs ??= nowMs + this.#refusedWaits.next();
      if (nowMs < grant.heldUntilMs) return false;
    }
    this.#grant = null;
    this.#isReplacing = true;
    return true;
  }

  accepted(token: string): void {
    const grant = this.#grant;
    if (grant?.token !== token || grant.isAccepted) return;
    grant.isAccepted = true;
    this.#refusedWaits.reset();
  }

  granted(): string | null {
    return this.#grant?.scope ?? null;
  }

  /** The remembered failure, while asking again is pointless. */
  #heldBack(): TokenAnswer | null {
    const failure = this.#failure;
    if (failure === null) return null;
    const { outcome, cause } = failure;
    const afterMs = failure.untilMs - this.#tools.clock.monotonic();
    if (afterMs <= 0) return null;
    if (outcome === 'refused' && failure.secretDigest !== this.#secretDigest()) return null;
    return { outcome, cause, afterMs };
  }

  #secretDigest(): string {
    try {
      return digest(this.#credential.clientSecret.reveal());
    } catch {
      return '';
    }
  }

  async #ask(signal: AbortSignal): Promise<TokenAnswer> {
    const { clock, http } = this.#tools;
    const askedAtMs = clock.monotonic();
    try {
      const response = await http.request(tokenRequest(this.#credential), signal);
      return this.#learn(response, askedAtMs);
    } catch (error) {
      const doing = `asking ${this.#where} for a token`;
      const cause =
        error instanceof HttpFailure
          ? new ExportError('upstream_unreachable', `${doing}: ${error.message}`, {
              next: 'It is tried again by itself; check the address and the network if it lasts.',
              details: { failure: error.reason },
              cause: error,
            })
          : asExportError(error, doing);
      // Broken off because nobody waits any longer: that says nothing about the endpoint.
      if (signal.aborted) return { outcome: 'retry', cause, afterMs: 0 };
      return this.#fail('retry', cause, this.#transientWaits.next());
    }
  }

  #learn(response: HttpResponse, askedAtMs: number): TokenAnswer {
    const reading = readGrant(response, this.#credential);
    switch (reading.outcome) {
      case 'grant':
        return tokenOf(this.#keep(reading, askedAtMs));
      case 'refused':
        return this.#fail('refused', reading.cause, this.#refusedWaits.next());
      case 'retry': {
        const nowMs = this.#tools.clock.now();
        const { retryAfterMs = 0 } = readRateSign(response.status, response.headers, { nowMs });
        const waitMs = Math.max(retryAfterMs, this.#transientWaits.next());
        return this.#fail('retry', reading.cause, waitMs);
      }
    }
  }

  #keep(
    reading: { token: string; scope: string | null; lifeMs: number },
    askedAtMs: number,
  ): Grant {
    const { token, scope, lifeMs } = reading;
    const latestMs = Math.min(lifeMs * renewShare, lifeMs - renewBeforeMs);
    const jitterMs = this.#tools.random() * lifeMs * renewJitterShare;
    const renewMs = Math.max(latestMs - jitterMs, lifeMs * renewShareMin);
    this.#failure = null;
    this.#transientWaits.reset();
    // Counted from the asking, since upstream's count began before its answer arrived.
    const grant = {
      token,
      scope,
      renewAtMs: askedAtMs + renewMs,
      expiresAtMs: askedAtMs + lifeMs,
      isReplacement: this.#isReplacing,
      isAccepted: false,
      heldUntilMs: null,
    };
    this.#isReplacing = false;
    this.#grant = grant;
    return grant;
  }

  #fail(outcome: Failure['outcome'], cause: ExportError, waitMs: number): TokenAnswer {
    const untilMs = this.#tools.clock.monotonic() + waitMs;
    this.#failure = { outcome, cause, untilMs, secretDigest: this.#secretDigest() };
    this.#tools.log.warn('no access token', {
      error: cause.message,
      next: cause.next,
      retry_in_ms: Math.round(waitMs),
    });
    return { outcome, cause, afterMs: waitMs };
  }

  get #where(): string {
    return URL.parse(this.#credential.url)?.host ?? 'the token endpoint';
  }
}

function tokenOf(grant: Grant): TokenAnswer {
  return { outcome: 'token', token: grant.token };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
