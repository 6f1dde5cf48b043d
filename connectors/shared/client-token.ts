// OAuth 2.0 client credentials of a sink (RFC 6749, section 4.4): a token is requested with client id and secret in the
// form, used for all requests of the sink, and renewed before its end. Invariants: a rejected token is never used again,
// and the same request is repeated once at most with a new one; neither secret nor token appears in a message.

import { z } from 'zod';
import { secret } from '../../src/contracts/config.ts';
import { ExportError, formEncoded, type HttpResponse, Secret } from '../../src/contracts/index.ts';
import {
  type FailedAnswer,
  type HttpReceiver,
  type Post,
  type PostAnswer,
  type PostContext,
  postOnce,
  postUrl,
  unusableResponse,
} from './http-post.ts';
import { grantedIn } from './parsed-json.ts';
import { plainLine, receiverWords } from './receiver-words.ts';
import { tokenFailure } from './token-failure.ts';

/** The setting `oauth2`. */
export function oauth2() {
  return z
    .strictObject({
      token_url: postUrl().describe('token endpoint; `tls` and `proxy` of the sink apply as well'),
      client_id: secret().describe('OAuth client'),
      client_secret: secret().describe('OAuth client’s secret'),
      scope: z.string().min(1).optional().describe('scopes to request, separated by spaces'),
    })
    .optional()
    .describe('OAuth 2.0 client credentials: requests carry a token as `Authorization: Bearer`');
}

/** Parsed `oauth2`. */
export interface OAuth2Settings {
  readonly token_url: string;
  readonly client_id: Secret;
  readonly client_secret: Secret;
  readonly scope?: string | undefined;
}

/** Settings of a sink that may have `oauth2`. */
export type TokenReceiver = HttpReceiver & { readonly oauth2?: OAuth2Settings | undefined };

/** Assumed without `expires_in`. */
const assumedLifeMs = 300_000;
/** A token is renewed when this share of its life is over, or a minute before its end. */
const usableShare = 0.9;
const renewMsMax = 60_000;
const nearlyAll = (lifeMs: number): number => Math.max(lifeMs * usableShare, lifeMs - renewMsMax);

/** A flaw of `oauth2` beside other settings; null: none. */
export function oauth2Flaw({ oauth2: settings, headers, url }: TokenReceiver): string | null {
  if (settings === undefined) return null;
  const name = Object.keys(headers ?? {}).find((one) => one.toLowerCase() === 'authorization');
  if (name !== undefined) return `headers.${name} and oauth2 do not go together; set one of them`;
  if (isInClear(settings.token_url) || isInClear(url)) {
    return 'oauth2 sends credentials, so url and oauth2.token_url begin with https://';
  }
  return null;
}

/** True if a credential sent to this address leaves the machine without encryption. False for a text that is no URL. */
export function isInClear(url: string): boolean {
  const { protocol, hostname } = URL.parse(url) ?? { protocol: '', hostname: '' };
  return protocol === 'http:' && !/^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(hostname);
}

/** The token of one sink. */
export class ClientToken {
  readonly #settings: OAuth2Settings;
  readonly #block: string;
  /** The next step of a refusal. */
  readonly #next: string;
  readonly #usableMs: (lifeMs: number) => number;
  readonly #receiver: HttpReceiver;
  #kept: { readonly header: Secret; readonly renewAt: number } | null = null;

  /**
   * `block`: the name of the settings, for error texts. `usableMs`: how long a token
   * with this lifetime is used, in milliseconds.
   */
  constructor(
    settings: OAuth2Settings,
    { timeout, tls, proxy }: Pick<HttpReceiver, 'timeout' | 'tls' | 'proxy'>,
    { block = 'oauth2', usableMs = nearlyAll } = {},
  ) {
    this.#usableMs = usableMs;
    this.#block = block;
    this.#settings = settings;
    this.#next = `Check ${block}: token_url, client_id, client_secret and scope. Nothing was lost; a corrected secret is read without a restart.`;
    const isTls = settings.token_url.startsWith('https:');
    this.#receiver = {
      ...{ url: settings.token_url, timeout, proxy, compression: 'none' },
      ...(isTls && { tls }),
    };
  }

  /** The value of `Authorization`, or the reason why there is no token. */
  async header(context: PostContext): Promise<Secret | FailedAnswer> {
    const { clock } = context.tools;
    const askedAt = clock.monotonic();
    if (this.#kept !== null && askedAt < this.#kept.renewAt) return this.#kept.header;
    this.#kept = null;
    const doing = `${context.doing}: requesting a token`;
    const answer = await this.#request({ ...context, doing });
    if (answer.outcome !== 'accepted') {
      return tokenFailure(answer, { settings: `${this.#block}.token_url`, next: this.#next });
    }
    const found = grantedIn(answer.response.body);
    if (found === null) {
      const cause = unusableResponse(answer.response, {
        doing,
        whose: 'a token endpoint',
        next: this.#next,
      });
      return { outcome: 'refused', scope: 'sink', cause };
    }
    const { token, lifeMs } = found;
    const header = new Secret(() => `Bearer ${token}`);
    const renewAt = askedAt + this.#usableMs(lifeMs ?? assumedLifeMs);
    this.#kept = { header, renewAt };
    return header;
  }

  /** The receiver rejected this token. */
  drop(header: Secret): void {
    if (this.#kept?.header === header) this.#kept = null;
  }

  async #request(context: PostContext): Promise<PostAnswer> {
    const { client_id: client, client_secret: clientSecret, scope } = this.#settings;
    await Promise.all([client.refresh(), clientSecret.refresh()]);
    const next = this.#next;
    let sent: readonly string[];
    let form: URLSearchParams;
    try {
      const [id, value] = [client.reveal(), clientSecret.reveal()];
      sent = [value, formEncoded(value), encodeURIComponent(value), id];
      form = new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: id,
        client_secret: value,
        ...(scope !== undefined && { scope }),
      });
    } catch (error) {
      const why = error instanceof ExportError ? error.message : 'a secret cannot be read';
      const cause = new ExportError('sink_refused', `${context.doing}: ${why}`, { next });
      return { outcome: 'refused', scope: 'sink', cause };
    }
    const post = {
      body: Buffer.from(form.toString()),
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    };
    return await postOnce(this.#receiver, post, {
      ...context,
      explain: (response) => wordsWithout(response, sent) || 'no reason',
      judge({ status }, failure) {
        if (status !== 400 && status !== 401 && status !== 403) return undefined;
        return { outcome: 'refused', scope: 'sink', cause: failure('sink_refused', next) };
      },
    });
  }
}

/** Posts with the sink's token, if it has one; a rejected token is replaced once. */
export async function postWithToken(
  { receiver, token }: { readonly receiver: HttpReceiver; readonly token: ClientToken | null },
  post: Post,
  context: PostContext,
): Promise<PostAnswer> {
  return await withToken({ token, context }, (header) =>
    postOnce(header === null ? receiver : authorised(receiver, header), post, context),
  );
}

/** Sends with the token, and once more with a new token if the receiver rejects the first one. */
export async function withToken(
  { token, context }: { readonly token: ClientToken | null; readonly context: PostContext },
  send: (header: Secret | null) => Promise<PostAnswer>,
): Promise<PostAnswer> {
  if (token === null) return await send(null);
  for (let isReplaced = false; ; isReplaced = true) {
    const header = await token.header(context);
    if (!(header instanceof Secret)) return header;
    const answer = await send(header);
    if (answer.outcome !== 'refused' || !isTokenRejected(answer.cause)) return answer;
    token.drop(header);
    if (isReplaced) return answer;
  }
}

/** A receiver with the token as a header. */
export function authorised<R extends HttpReceiver>(receiver: R, header: Secret): R {
  return { ...receiver, headers: { ...receiver.headers, authorization: header } };
}

/** 401, and UNAUTHENTICATED of gRPC. */
function isTokenRejected({ details }: ExportError): boolean {
  return details.status === 401 || details.grpc_status === 16;
}

function wordsWithout(response: HttpResponse, sent: readonly string[]): string {
  const words = sent.reduce(
    (text, value) => text.replaceAll(value, '[hidden]'),
    receiverWords(response),
  );
  return plainLine(words);
}
