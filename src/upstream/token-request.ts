// The two dialects of the token endpoint (RFC 6749 section 4.4): the unified API expects client and
// secret in the form, the services API in HTTP Basic. Pure except for reading the secrets: builds
// the request and classifies the response. Invariant: a response is never trusted: a value that
// cannot be in a header, or an HTML page, is not a token.

import {
  ExportError,
  formEncoded,
  type HttpRequest,
  type HttpResponse,
  type JsonObject,
  type Secret,
  type TlsSettings,
  tokenIn,
} from '../contracts/index.ts';
import {
  cleanText,
  describeProblem,
  parseObject,
  problemDetails,
  readProblem,
} from '../tools/index.ts';

/** How requests authenticate. */
export type Credential =
  | { readonly kind: 'api_key'; readonly key: Secret /** Its upstream. */; readonly url: string }
  | {
      readonly kind: 'client';
      readonly url: string;
      readonly clientId: Secret;
      readonly clientSecret: Secret;
      readonly scope: string | undefined;
      /** Location of client and secret: in the form (unified), or in HTTP Basic (services). */
      readonly placing: 'form' | 'basic';
      readonly basicEncoding: 'raw' | 'rfc6749';
      readonly tls: TlsSettings;
      readonly proxy?: Secret | undefined;
    };

/** A credential that needs a token. */
export type ClientCredential = Extract<Credential, { kind: 'client' }>;

/**
 * The classified response of the endpoint. `refused`: a repeated request with the same secret is
 * pointless.
 */
export type GrantReading =
  | {
      readonly outcome: 'grant';
      readonly token: string;
      readonly scope: string | null;
      readonly lifeMs: number;
    }
  | { readonly outcome: 'retry' | 'refused'; readonly cause: ExportError };

const timeoutMs = 30_000;
/** A token response has a few kilobytes, even with a large signed token. */
const bodyBytesMax = 256 * 1024;
/** Assumed if the lifetime is missing or invalid: short to be safe, long to request seldom. */
const assumedLifeMs = 300_000;
/** Scopes are a few words; a longer text is not a scope. */
const scopeLengthMax = 1_000;

/** The request with the current secrets. Throws an ExportError without them. */
export function tokenRequest(credential: ClientCredential): HttpRequest {
  const id = credential.clientId.reveal();
  const secret = credential.clientSecret.reveal();
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (credential.placing === 'form') {
    form.set('client_id', id);
    form.set('client_secret', secret);
  }
  if (credential.scope !== undefined) form.set('scope', credential.scope);
  return {
    method: 'POST',
    url: credential.url,
    headers: {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
      ...(credential.placing === 'basic'
        ? { authorization: basic(id, secret, credential.basicEncoding) }
        : {}),
    },
    body: form.toString(),
    tls: credential.tls,
    ...(credential.proxy && { proxy: credential.proxy.reveal() }),
    timeoutMs,
    bodyBytesMax,
  };
}

/** RFC 6749, section 2.3.1 requires both form-encoded first; most servers and examples do not. */
function basic(id: string, secret: string, encoding: ClientCredential['basicEncoding']): string {
  const [user, password] =
    encoding === 'raw' ? [id, secret] : [formEncoded(id), formEncoded(secret)];
  return `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`;
}

/** Classifies the endpoint's response. */
export function readGrant(response: HttpResponse, credential: ClientCredential): GrantReading {
  const { status } = response;
  if (status === 408 || status === 429 || status >= 500) {
    const code = status === 429 ? 'upstream_throttled' : 'upstream_unreachable';
    return failed('retry', code, response, credential);
  }
  if (status === 200 || status === 201) {
    const body = parseObject(response.body);
    const grant = body === null ? null : grantOf(body, credential);
    return grant ?? failed('retry', 'upstream_nonsense', response, credential);
  }
  if (status === 400 || status === 401 || status === 403) {
    return failed('refused', 'token_refused', response, credential);
  }
  // A response outside RFC 6749: another server responds there, possibly for a moment only.
  return failed('retry', 'upstream_nonsense', response, credential);
}

function grantOf(body: JsonObject, credential: ClientCredential): GrantReading | null {
  const granted = tokenIn(body);
  if (granted === null) return null;
  const { scope } = body;
  return {
    outcome: 'grant',
    token: granted.token,
    scope: typeof scope === 'string' ? cleanText(scope, scopeLengthMax, sent(credential)) : null,
    lifeMs: granted.lifeMs ?? assumedLifeMs,
  };
}

/** The credential in every form in which it may have been sent, and be echoed. */
function sent(credential: ClientCredential): readonly string[] {
  const id = credential.clientId.reveal();
  const secret = credential.clientSecret.reveal();
  const encodings = [basic(id, secret, 'raw'), basic(id, secret, 'rfc6749')];
  const packed = encodings.map((text) => text.slice('Basic '.length));
  return [...packed, secret, formEncoded(secret), id, formEncoded(id)];
}

function failed(
  outcome: 'retry' | 'refused',
  code: ExportError['code'],
  response: HttpResponse,
  credential: ClientCredential,
): GrantReading {
  const problem = readProblem(response.body, sent(credential));
  const host = URL.parse(credential.url)?.host ?? '';
  const asked = credential.scope === undefined ? '' : ` (requested scope: ${credential.scope})`;
  const what =
    code === 'upstream_nonsense'
      ? `answered ${response.status} without a usable token`
      : `answered ${response.status}${describeProblem(problem)}`;
  return {
    outcome,
    cause: new ExportError(code, `requesting a token from ${host}: ${what}${asked}`, {
      next: nextStep(code),
      details: { status: response.status, ...problemDetails(problem) },
    }),
  };
}

function nextStep(code: ExportError['code']): string {
  if (code === 'token_refused') {
    return 'Check client_id, client_secret and scope of this upstream, and the path in base_url or token_url; a corrected secret is read without a restart.';
  }
  if (code === 'upstream_nonsense') {
    return 'Check base_url and token_url of this upstream: something else seems to answer there.';
  }
  return 'It is tried again by itself.';
}
