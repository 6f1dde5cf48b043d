// The two token endpoints, and the check of every other request's bearer token. Unified accepts the client's
// credentials as form parameters and space-separated scopes; services accept HTTP Basic and a single scope URN. A token
// of one API is invalid for the other. API keys work for the unified and the earlier API only. Tokens are in memory: a
// restarted sandbox answers 401 to old ones.
import { randomBytes } from 'node:crypto';
import { type Api, failed, ok, type SandboxRequest, type SandboxResponse } from './answers.ts';

/** The APIs that issue tokens. */
type TokenApi = Exclude<Api, 'earlier'>;

/** The credentials of a client. */
export interface ClientCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly apiKey: string;
  /** Space-separated, for the unified token endpoint. */
  readonly unifiedScope: string;
  readonly servicesScope: string;
}

/** The credentials that a sandbox accepts by default; they are valid nowhere else. */
export const SANDBOX_CREDENTIALS: ClientCredentials = {
  clientId: 'sandbox-client',
  clientSecret: 'sandbox-secret',
  apiKey: 'sandbox-api-key',
  unifiedScope: 'platform:read intelligence:read mc:read events:read webhooks:manage',
  servicesScope: 'urn:sandbox:api:public',
};

/** The identity of a requester for rate limits and scopes. */
export interface Bearer {
  readonly token: string;
  readonly scopes: ReadonlySet<string>;
}

interface Issued extends Bearer {
  readonly api: Api;
  readonly expiresMs: number;
}

/** Issues and checks tokens. */
export class SandboxTokens {
  readonly #issued = new Map<string, Issued>();
  readonly #lifetimeS: Readonly<Record<TokenApi, number>>;
  readonly #now: () => number;
  #credentials: ClientCredentials;

  constructor(
    credentials: ClientCredentials,
    lifetimeS: Readonly<Record<TokenApi, number>>,
    now: () => number,
  ) {
    this.#credentials = credentials;
    this.#lifetimeS = lifetimeS;
    this.#now = now;
  }

  credentials(): ClientCredentials {
    return this.#credentials;
  }

  /** Answers a token request of either API. */
  issue(ask: SandboxRequest): SandboxResponse {
    const type = ask.headers['content-type'] ?? '';
    if (ask.method !== 'POST') return failed(ask.api, { status: 405, message: 'use POST' });
    if (!type.startsWith('application/x-www-form-urlencoded')) {
      const message = 'the body must be application/x-www-form-urlencoded';
      return failed(ask.api, { status: 400, message });
    }
    const form = new URLSearchParams(ask.body);
    if (form.get('grant_type') !== 'client_credentials') {
      const message = 'grant_type must be client_credentials';
      return failed(ask.api, {
        status: 400,
        code: 'unsupported_grant_type',
        message,
        field: 'grant_type',
      });
    }
    const { clientId, clientSecret } = this.#credentials;
    const [id, secret] =
      ask.api === 'unified'
        ? [form.get('client_id'), form.get('client_secret')]
        : basicOf(ask.headers.authorization);
    if (id !== clientId || secret !== clientSecret) return invalidClient(ask.api);
    if (ask.api === 'earlier') return failed(ask.api, { status: 404, message: 'no such endpoint' });
    const granted = this.#grant(ask.api, form.get('scope'));
    if (granted === null) {
      const message = 'a requested scope is unknown or not granted to this client';
      return failed(ask.api, { status: 400, code: 'invalid_scope', message, field: 'scope' });
    }
    return this.#answer(ask.api, granted);
  }

  /** The bearer of a request, or null for a missing, unknown, expired or revoked token. */
  bearer(ask: SandboxRequest): Bearer | null {
    const token = /^Bearer +(\S+)$/i.exec(ask.headers.authorization ?? '')?.[1];
    if (token === undefined) return null;
    const { apiKey, unifiedScope } = this.#credentials;
    if (ask.api !== 'services' && token === apiKey)
      return { token, scopes: new Set(unifiedScope.split(' ')) };
    const issued = this.#issued.get(token);
    if (issued === undefined || issued.api !== ask.api) return null;
    if (this.#now() < issued.expiresMs) return issued;
    this.#issued.delete(token);
    return null;
  }

  /** Revokes one token, or all of them. */
  revoke(token?: string): void {
    if (token === undefined) this.#issued.clear();
    else this.#issued.delete(token);
  }

  /** Replaces the client secret, as a portal does; the old one is rejected. */
  rotateSecret(secret: string): void {
    this.#credentials = { ...this.#credentials, clientSecret: secret };
  }

  #grant(api: Api, requested: string | null): string | null {
    const { servicesScope, unifiedScope } = this.#credentials;
    if (api === 'services') return requested === servicesScope ? servicesScope : null;
    if (requested === null || requested.trim() === '') return unifiedScope;
    const known = unifiedScope.split(' ');
    return requested.split(/ +/).every((scope) => known.includes(scope)) ? requested : null;
  }

  #answer(api: TokenApi, scope: string): SandboxResponse {
    const token = randomBytes(24).toString('base64url');
    const lifetimeS = this.#lifetimeS[api];
    const expiresMs = this.#now() + lifetimeS * 1000;
    this.#issued.set(token, { token, api, scopes: new Set(scope.split(' ')), expiresMs });
    const body = { access_token: token, token_type: 'Bearer', expires_in: lifetimeS };
    return ok(api === 'unified' ? { ...body, scope } : body, { 'cache-control': 'no-store' });
  }
}

/** The rejection of credentials, in the API's envelope. */
export function invalidClient(api: Api): SandboxResponse {
  return failed(api, {
    status: 401,
    code: 'invalid_client',
    message: 'the client is unknown or its secret is wrong',
  });
}

function basicOf(header: string | undefined): readonly [id: string | null, secret: string | null] {
  const encoded = /^Basic +(\S+)$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return [null, null];
  const [, id = null, secret = null] =
    /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  return [id, secret];
}
