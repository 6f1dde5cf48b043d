// Access tokens for a Google service account (RFC 7523, per
// https://developers.google.com/identity/protocols/oauth2/service-account): an assertion signed
// with the account's key is exchanged for a token that is valid for an hour. Invariants: the key is
// read again for each token, so that a rotated one applies; neither key nor token appears in a
// message.

import { createPrivateKey, sign } from 'node:crypto';
import { z } from 'zod';
import { ExportError, Secret } from '../../../src/contracts/index.ts';
import type { HttpReceiver, PostContext } from '../../shared/http-post.ts';
import { type FailedAnswer, postOnce, unusableResponse } from '../../shared/http-post.ts';
import { grantedIn } from '../../shared/parsed-json.ts';
import { tokenFailure } from '../../shared/token-failure.ts';

const scope = 'https://www.googleapis.com/auth/cloud-platform';
const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const lifeS = 3600;
/** A token is replaced this long before it ends. */
const earlyMs = 60_000;

const keyFile = z.object({
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().optional(),
  token_uri: z.url({ protocol: /^https?$/ }).default('https://oauth2.googleapis.com/token'),
});

const next = 'Check the sink’s credentials: the JSON key of a service account. Nothing was lost.';

/** The tokens of one account. */
export class AccountTokens {
  readonly #credentials: Secret;
  readonly #receiver: Omit<HttpReceiver, 'url'>;
  /** `untilMs` on the monotonic clock. */
  #token: { readonly secret: Secret; readonly untilMs: number } | null = null;

  constructor(credentials: Secret, receiver: Omit<HttpReceiver, 'url'>) {
    this.#credentials = credentials;
    this.#receiver = receiver;
  }

  /** A valid token as the header of a request; or the reason why there is none. */
  async header(context: PostContext): Promise<Secret | FailedAnswer> {
    const { clock } = context.tools;
    const askedMs = clock.monotonic();
    if (this.#token !== null && askedMs < this.#token.untilMs) return this.#token.secret;
    const doing = `${context.doing}: requesting a token`;
    await this.#credentials.refresh();
    const asked = assertionFor(this.#credentials, clock.now(), doing);
    if (asked instanceof ExportError) return { outcome: 'refused', scope: 'sink', cause: asked };
    const form = new URLSearchParams({ grant_type: grant, assertion: asked.assertion });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const receiver = { ...this.#receiver, url: asked.url, compression: 'none' } as const;
    const post = { body: Buffer.from(form.toString()), headers };
    const answer = await postOnce(receiver, post, {
      ...{ ...context, doing },
      judge({ status }, failure) {
        if (status !== 400 && status !== 401 && status !== 403) return undefined;
        return { outcome: 'refused', scope: 'sink', cause: failure('sink_refused', next) };
      },
    });
    if (answer.outcome !== 'accepted') {
      return tokenFailure(answer, { settings: 'credentials (token_uri)', next });
    }
    const granted = grantedIn(answer.response.body);
    if (granted === null) {
      const cause = unusableResponse(answer.response, { doing, whose: 'a token endpoint', next });
      return { outcome: 'refused', scope: 'sink', cause };
    }
    const { token, lifeMs } = granted;
    const secret = new Secret(() => `Bearer ${token}`);
    this.#token = { secret, untilMs: askedMs + (lifeMs ?? lifeS * 1_000) - earlyMs };
    return secret;
  }

  /** The token is no longer accepted. */
  drop(): void {
    this.#token = null;
  }
}

function assertionFor(
  credentials: Secret,
  nowMs: number,
  doing: string,
): { readonly url: string; readonly assertion: string } | ExportError {
  try {
    const key = keyFile.parse(JSON.parse(credentials.reveal()));
    const header = {
      alg: 'RS256',
      typ: 'JWT',
      ...(key.private_key_id && { kid: key.private_key_id }),
    };
    const iat = Math.floor(nowMs / 1000);
    const claims = { iss: key.client_email, scope, aud: key.token_uri, iat, exp: iat + lifeS };
    const said = `${encoded(header)}.${encoded(claims)}`;
    const signature = sign('RSA-SHA256', Buffer.from(said), createPrivateKey(key.private_key));
    return { url: key.token_uri, assertion: `${said}.${signature.toString('base64url')}` };
  } catch (error) {
    // Not its text, which may repeat the key.
    if (error instanceof ExportError) return error;
    return new ExportError(
      'sink_refused',
      `${doing}: the credentials are no key of a service account`,
      { next },
    );
  }
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
