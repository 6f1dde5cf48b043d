// The import of Google SecOps as in its API reference and UDM guide (docs.cloud.google.com/chronicle, "Chronicle API
// ingestion methods", "UDM usage guide"; developers.google.com/identity/protocols/oauth2/service-account), with the
// token endpoint for service accounts, which checks the assertion by the public key. A request is accepted whole or
// rejected whole; the response does not name the wrong event.
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import {
  type HttpAnswer,
  type HttpReceiver,
  type HttpReceiverOptions,
  type ReceivedRequest,
  startHttpReceiver,
} from './http-receiver.ts';
import { camelCased, flawOfUdm, isObject, type UdmEvent } from './udm.ts';

export interface SecOpsOptions extends Pick<HttpReceiverOptions, 'tls'> {
  /** Bytes of a request, uncompressed; the tenant's own, and written nowhere. Default 1,000,000. */
  readonly requestBytesMax?: number;
  /** What a larger one is answered with. Default 400, as INVALID_ARGUMENT. */
  readonly tooLarge?: 400 | 413;
  /** Seconds that a token lasts. Default 3599. */
  readonly tokenLifeS?: number;
  /** Requests with this text are rejected as invalid. */
  readonly refuses?: (body: string) => boolean;
}

/** A raw log as it was imported. */
export interface RawLog {
  readonly logType: string;
  readonly data: string;
  readonly logEntryTime: string | null;
}

/** Stands before the service: answers a request itself, or with what `pass` says, which it may also keep back. */
export type SecOpsInterference = (request: ReceivedRequest, pass: () => HttpAnswer) => HttpAnswer;

/** A running instance. It ends with the test that started it. */
export interface SecOps extends Pick<HttpReceiver, 'url' | 'requests' | 'close' | 'reopen'> {
  /** Path of the instance: `projects/…/locations/…/instances/…`. */
  readonly instance: string;
  /** A service account's key file, whose `token_uri` leads here. */
  readonly serviceAccount: Readonly<Record<string, string>>;
  /** UDM events as a search finds them, names in camel case. */
  readonly events: readonly UdmEvent[];
  readonly logs: readonly RawLog[];
  /** How many tokens were given. */
  readonly tokens: number;
  /** All tokens issued so far expire now. */
  endTokens(): void;
  /** What the account may do is taken away, or given back. */
  permit(may: boolean): void;
  /** From now on calls this first; null: nothing. */
  interfere(how: SecOpsInterference | null): void;
}

const instance = 'projects/acme-secops/locations/eu/instances/5ec0b500-0000-4000-8000-000000000001';
const scopes = [
  'https://www.googleapis.com/auth/cloud-platform',
  'https://www.googleapis.com/auth/chronicle',
];
const clientEmail = 'sluice@acme-secops.iam.gserviceaccount.com';
const keyId = '0123456789abcdef0123456789abcdef01234567';

/** Starts an instance and its token endpoint on a free loopback port. */
export async function startSecOps(options: SecOpsOptions = {}): Promise<SecOps> {
  const http = await startHttpReceiver(options.tls === undefined ? {} : { tls: options.tls });
  const keys = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const service = new Service(options, keys.publicKey, `${http.url}/token`);
  let interference: SecOpsInterference | null = null;
  http.answer((request) => {
    const pass = () => service.answer(request);
    return interference === null ? pass() : interference(request, pass);
  });
  return {
    ...{ url: http.url, requests: http.requests, instance },
    ...{ events: service.events, logs: service.logs },
    serviceAccount: {
      type: 'service_account',
      project_id: 'acme-secops',
      private_key_id: keyId,
      private_key: keys.privateKey,
      client_email: clientEmail,
      token_uri: `${http.url}/token`,
    },
    get tokens() {
      return service.tokens;
    },
    endTokens: () => service.endTokens(),
    permit: (may) => service.permit(may),
    close: () => http.close(),
    reopen: () => http.reopen(),
    interfere: (how) => {
      interference = how;
    },
  };
}

class Service {
  readonly events: UdmEvent[] = [];
  readonly logs: RawLog[] = [];
  tokens = 0;
  readonly #options: SecOpsOptions;
  readonly #publicKey: string;
  readonly #tokenUri: string;
  /** By token: when it ends, in milliseconds since 1970. */
  readonly #given = new Map<string, number>();
  #mayImport = true;

  constructor(options: SecOpsOptions, publicKey: string, tokenUri: string) {
    this.#options = options;
    this.#publicKey = publicKey;
    this.#tokenUri = tokenUri;
  }

  endTokens(): void {
    this.#given.clear();
  }

  permit(may: boolean): void {
    this.#mayImport = may;
  }

  answer(request: ReceivedRequest): HttpAnswer {
    const { pathname } = new URL(request.path, 'http://secops');
    if (request.method !== 'POST') return failure(404, 'NOT_FOUND', 'no such method');
    if (pathname === '/token') return this.#token(request);
    const to = /^\/v1(?:alpha|beta)?\/(.+?)\/(?:logTypes\/([^/]+)\/logs|events):import$/.exec(
      pathname,
    );
    if (to === null) return failure(404, 'NOT_FOUND', 'no such path');
    const ends = this.#given.get(
      /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '',
    );
    if (ends === undefined || ends <= Date.now())
      return failure(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
    if (!this.#mayImport || to[1] !== instance)
      return failure(
        403,
        'PERMISSION_DENIED',
        `permission denied on ${to[1]}, or it may not exist`,
      );
    return this.#import(request, to[2] ?? null);
  }

  /** RFC 7523: a signed assertion for an access token. */
  #token({ headers, body }: ReceivedRequest): HttpAnswer {
    const refuse = (error: string, said: string) => reply(400, { error, error_description: said });
    const form = new URLSearchParams(body.toString());
    if (headers['content-type']?.split(';')[0] !== 'application/x-www-form-urlencoded')
      return refuse('invalid_request', 'the body must be a form');
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return refuse('unsupported_grant_type', 'Invalid grant_type');
    const flaw = this.#flawOf(form.get('assertion') ?? '');
    if (flaw !== null) return refuse(...flaw);
    this.tokens += 1;
    const life = this.#options.tokenLifeS ?? 3599;
    const token = `ya29.c.${'t'.repeat(1000)}.${this.tokens}`;
    this.#given.set(token, Date.now() + life * 1000);
    return reply(200, { access_token: token, expires_in: life, token_type: 'Bearer' });
  }

  #flawOf(assertion: string): readonly [string, string] | null {
    const [head = '', claims = '', signature = ''] = assertion.split('.');
    const header = decoded(head);
    const claimed = decoded(claims);
    if (header === null || claimed === null) return ['invalid_grant', 'Invalid JWT'];
    if (header.alg !== 'RS256') return ['invalid_grant', 'Invalid JWT: alg must be RS256'];
    if (header.kid !== undefined && header.kid !== keyId)
      return ['invalid_grant', 'Invalid JWT Signature: no such key'];
    const key = createPublicKey(this.#publicKey);
    const isSigned = verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${claims}`),
      key,
      Buffer.from(signature, 'base64url'),
    );
    if (!isSigned) return ['invalid_grant', 'Invalid JWT Signature.'];
    const { iss, aud, scope, iat, exp } = claimed;
    if (iss !== clientEmail) return ['invalid_grant', 'Invalid grant: account not found'];
    if (aud !== this.#tokenUri) return ['invalid_grant', 'Invalid JWT: aud is another'];
    const now = Date.now() / 1000;
    if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > 3600)
      return ['invalid_grant', 'Invalid JWT: iat and exp must be within an hour'];
    if (iat > now + 60 || exp <= now)
      return ['invalid_grant', 'Invalid JWT: Token must be a short-lived token'];
    const isScoped = String(scope ?? '')
      .split(' ')
      .some((one) => scopes.includes(one));
    return isScoped ? null : ['invalid_scope', 'Invalid OAuth scope or ID token audience'];
  }

  #import({ headers, body }: ReceivedRequest, logType: string | null): HttpAnswer {
    const { requestBytesMax = 1_000_000, tooLarge = 400, refuses } = this.#options;
    const invalid = (said: string) => failure(400, 'INVALID_ARGUMENT', said);
    if (headers['content-type']?.split(';')[0] !== 'application/json')
      return invalid('expected application/json');
    if (body.length > requestBytesMax)
      return tooLarge === 413
        ? failure(413, 'INVALID_ARGUMENT', 'Request payload size exceeds the limit')
        : invalid('Request payload size exceeds the limit');
    const text = body.toString();
    if (refuses?.(text) === true) return invalid('Request contains an invalid argument.');
    const sent = camelCased(parsed(text));
    const inline = isObject(sent) ? sent.inlineSource : undefined;
    const items = isObject(inline) ? inline[logType === null ? 'events' : 'logs'] : undefined;
    if (!Array.isArray(items)) return invalid('inline_source is missing');
    if (logType !== null) return this.#importLogs(items, logType);
    const events = items.map((item) => (isObject(item) ? item.udm : undefined));
    const flaw = events.map(flawOfUdm).find((found) => found !== null);
    if (flaw !== undefined) return invalid(flaw);
    this.events.push(...(events as readonly UdmEvent[]));
    return reply(200, {});
  }

  #importLogs(items: readonly unknown[], logType: string): HttpAnswer {
    const logs = items.map((item) => {
      const { data, logEntryTime } = isObject(item) ? item : {};
      const text = typeof data === 'string' ? Buffer.from(data, 'base64').toString() : '';
      return { logType, data: text, logEntryTime: logEntryTime as string | null };
    });
    if (logs.some(({ data }) => data === ''))
      return failure(400, 'INVALID_ARGUMENT', 'log data is missing');
    this.logs.push(...logs);
    return reply(200, {});
  }
}

function decoded(part: string): { readonly [name: string]: unknown } | null {
  const value = parsed(Buffer.from(part, 'base64url').toString());
  return isObject(value) ? value : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function reply(status: number, body: object): HttpAnswer {
  const headers = { 'content-type': 'application/json; charset=UTF-8' };
  return { answer: 'reply', status, headers, body: JSON.stringify(body) };
}

function failure(code: number, status: string, message: string): HttpAnswer {
  return reply(code, { error: { code, message, status } });
}
