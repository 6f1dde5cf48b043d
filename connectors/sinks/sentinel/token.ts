// The token for Azure Monitor: requested with a client secret from Microsoft Entra (OAuth 2.0
// client credentials), or from the machine's metadata service for its managed identity. Cached
// until shortly before it ends, for all requests of the sink. Invariants: a rejected token is never
// used again; neither secret nor token appears in a message.

import {
  ExportError,
  type HttpResponse,
  Secret,
  type TlsSettings,
  type Tools,
} from '../../../src/contracts/index.ts';
import { getOnce, postOnce } from '../../shared/http-post.ts';
import { grantedIn } from '../../shared/parsed-json.ts';
import { plainLine, receiverWords } from '../../shared/receiver-words.ts';

/** The identity, and the token service. */
export interface Identity {
  readonly authority: string;
  readonly auth:
    | { readonly tenant_id: string; readonly client_id: string; readonly client_secret: Secret }
    | { readonly managed_identity: { readonly client_id?: string | undefined; url: string } };
  readonly timeout: number;
  readonly tls?: TlsSettings | undefined;
  readonly proxy?: Secret | undefined;
}

interface TokenRequestContext {
  readonly tools: Tools;
  /** Start of every error message. */
  readonly doing: string;
}

/** A token is renewed when this share of its life is left, at most this long before its end. */
const renewShare = 0.1;
const renewMsMax = 300_000;

/** The purpose of a token: its resource, and the scope that Microsoft Entra uses for it. */
export interface Audience {
  readonly resource: string;
  readonly scope: string;
}

const clouds = {
  com: { monitor: 'https://monitor.azure.com', manager: 'https://management.azure.com' },
  us: { monitor: 'https://monitor.azure.us', manager: 'https://management.usgovcloudapi.net' },
  cn: { monitor: 'https://monitor.azure.cn', manager: 'https://management.chinacloudapi.cn' },
} as const;

/** Azure Monitor and Azure Resource Manager in the cloud that the authority belongs to. */
export function cloudOf(authority: string): Record<'monitor' | 'manager', Audience> {
  const { hostname } = new URL(authority);
  const domain = (['us', 'cn'] as const).find((one) => hostname.endsWith(`.${one}`)) ?? 'com';
  const { monitor, manager } = clouds[domain];
  return {
    monitor: { resource: monitor, scope: `${monitor}//.default` },
    manager: { resource: manager, scope: `${manager}/.default` },
  };
}

/** The token of one sink for one audience. */
export class AzureToken {
  readonly #identity: Identity;
  readonly #audience: Audience;
  readonly #tools: Tools;
  readonly #doing: string;
  #kept: { readonly text: string; readonly renewAt: number } | null = null;

  constructor(identity: Identity, audience: Audience, { tools, doing }: TokenRequestContext) {
    this.#identity = identity;
    this.#audience = audience;
    this.#tools = tools;
    this.#doing = `${doing}: requesting a token`;
  }

  /** The current token. Throws an ExportError, or the signal's reason. */
  async current(signal: AbortSignal): Promise<string> {
    const { clock } = this.#tools;
    if (this.#kept !== null && clock.monotonic() < this.#kept.renewAt) return this.#kept.text;
    this.#kept = null;
    const askedAt = clock.monotonic();
    const response = await this.#ask(signal);
    const granted = grantedIn(response.body);
    if (granted === null || granted.lifeMs === null) this.#noToken(response.status);
    const { token: text, lifeMs } = granted;
    const renewAt = askedAt + lifeMs - Math.min(lifeMs * renewShare, renewMsMax);
    this.#kept = { text, renewAt };
    return text;
  }

  /** It was rejected. */
  forget(): void {
    this.#kept = null;
  }

  async #ask(signal: AbortSignal): Promise<HttpResponse> {
    const { authority, auth, timeout, tls, proxy } = this.#identity;
    const context = { doing: this.#doing, tools: this.#tools, signal };
    if ('managed_identity' in auth) {
      const { client_id, url } = auth.managed_identity;
      const query = new URLSearchParams({
        'api-version': '2018-02-01',
        resource: this.#audience.resource,
        ...(client_id !== undefined && { client_id }),
      });
      const headers = { metadata: new Secret(() => 'true') };
      const service = { url: `${url}?${query}`, headers, timeout, compression: 'none' } as const;
      const response = await getOnce(service, context);
      if (response.status === 200) return response;
      throw this.#refused(response.status, receiverWords(response));
    }
    await auth.client_secret.refresh();
    const secret = auth.client_secret.reveal();
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: auth.client_id,
      client_secret: secret,
      scope: this.#audience.scope,
    });
    const url = `${authority.replace(/\/+$/, '')}/${encodeURIComponent(auth.tenant_id)}/oauth2/v2.0/token`;
    const post = {
      body: Buffer.from(form.toString()),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    };
    let [status, words] = [0, ''];
    const explain = (response: HttpResponse) => {
      status = response.status;
      words = plainLine(receiverWords(response).replaceAll(secret, '***'));
      return words || 'no reason';
    };
    const entra = { url, timeout, tls, proxy, compression: 'none' } as const;
    const answer = await postOnce(entra, post, { ...context, explain });
    if (answer.outcome === 'accepted') return answer.response;
    throw status === 400 || status === 401 ? this.#refused(status, words) : answer.cause;
  }

  #refused(status: number, words: string): ExportError {
    const managed = 'managed_identity' in this.#identity.auth;
    const next = managed
      ? 'Give this machine a managed identity, or name the one it has by client_id.'
      : 'Check tenant_id, client_id and client_secret, whether the secret has run out, and authority.';
    const message = `${this.#doing}: answered ${status}${words && `: ${words}`}`;
    return new ExportError('sink_refused', message, {
      next: `${next} Nothing was lost; a corrected secret is read without a restart.`,
      details: { status },
    });
  }

  #noToken(status: number): never {
    throw new ExportError('sink_refused', `${this.#doing}: answered ${status} without a token`, {
      next: 'Check authority, and whether a proxy in between answers by itself. Nothing was lost.',
      details: { status },
    });
  }
}
