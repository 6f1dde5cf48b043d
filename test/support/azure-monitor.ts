// Azure Monitor's Logs Ingestion API by Microsoft's documents (learn.microsoft.com, "Logs Ingestion API in Azure
// Monitor", "Azure Monitor service limits", and the Azure SDK's troubleshooting guides), with the token endpoint of
// Microsoft Entra and the metadata service of a virtual machine. The view of an analyst is in `rows`: without the
// columns that the rule does not declare, with values over 64 KB cut, and without bodies that are no array, which are
// answered 204 like any other. Invariant: the service reports none of these three to its client. Azure Resource Manager
// returns the rule's declaration to clients that may read the rule (REST reference, "Resources" of Azure Resource Graph
// and "Data Collection Rules - Get"), with a token of its own.
import {
  type HttpAnswer,
  type HttpReceiver,
  type HttpReceiverOptions,
  type ReceivedRequest,
  startHttpReceiver,
} from './http-receiver.ts';

type ColumnType = 'string' | 'datetime' | 'dynamic' | 'int' | 'long' | 'real' | 'boolean';

export interface AzureOptions extends Pick<HttpReceiverOptions, 'tls'> {
  /** The stream's declaration; null: every column is declared, as whatever comes. Default null. */
  readonly columns?: Readonly<Record<string, ColumnType>> | null;
  /** Bytes of one call, uncompressed and compressed alike. Default 1,000,000: the stricter reading of "1 MB". */
  readonly callBytesMax?: number;
  /** Seconds that a token lasts. Default 3599. */
  readonly tokenLifeS?: number;
  /** Whether the identity has the role Monitoring Reader on the rule. Default false. */
  readonly isReader?: boolean;
  /** How many calls are answered 403 until the role has spread. Default 0. */
  readonly callsBeforeRole?: number;
}

/** A row of the table, by column. */
export type AzureRow = Readonly<Record<string, unknown>>;

/** Stands before the service: answers a request itself, or with what `pass` says, which it may also keep back. */
export type AzureInterference = (request: ReceivedRequest, pass: () => HttpAnswer) => HttpAnswer;

/** A running service. It ends with the test that started it. */
export interface AzureMonitor extends Pick<HttpReceiver, 'url' | 'requests' | 'close' | 'reopen'> {
  /** What an analyst finds, in the order of arrival. */
  readonly rows: readonly AzureRow[];
  /** Requests that the service accepts without an error although nothing or not all arrives. */
  readonly silent: readonly string[];
  /** How many tokens were given. */
  readonly tokens: number;
  /** All tokens issued so far expire now. */
  endTokens(): void;
  /** So many calls are answered 429. */
  throttle(calls: number, retryAfterS?: number): void;
  /** From now on calls this first; null: nothing. */
  interfere(how: AzureInterference | null): void;
}

/** The application, rule and stream that the service knows, and the identity of the machine it runs on. */
export const azure = {
  tenant: '7e4a47de-0000-4000-8000-000000000001',
  clientId: 'c11e4700-0000-4000-8000-000000000002',
  clientSecret: 'Ab8Q~a-secret.of_an~application',
  rule: 'dcr-0123456789abcdef0123456789abcdef',
  stream: 'Custom-Sluice',
  identity: '1de47179-0000-4000-8000-000000000003',
} as const;

const ruleId =
  '/subscriptions/5ab5c717-0000-4000-8000-000000000004/resourceGroups/sécurité (edge)/providers/Microsoft.Insights/dataCollectionRules/sluice';
const audiences = ['https://monitor.azure.com', 'https://management.azure.com'] as const;
type Audience = (typeof audiences)[number];
const fieldBytesMax = 64 * 1024;

/** Starts the service, the token endpoint and the metadata service, all at one address on a free loopback port. */
export async function startAzureMonitor(options: AzureOptions = {}): Promise<AzureMonitor> {
  const http = await startHttpReceiver(options.tls === undefined ? {} : { tls: options.tls });
  const service = new Service(options);
  let interference: AzureInterference | null = null;
  http.answer((request) => {
    const pass = () => service.answer(request);
    return interference === null ? pass() : interference(request, pass);
  });
  return {
    ...{ url: http.url, requests: http.requests, rows: service.rows, silent: service.silent },
    get tokens() {
      return service.tokens;
    },
    close: () => http.close(),
    reopen: () => http.reopen(),
    endTokens: () => service.endTokens(),
    throttle: (calls, retryAfterS) => service.throttle(calls, retryAfterS),
    interfere: (how) => {
      interference = how;
    },
  };
}

class Service {
  readonly rows: AzureRow[] = [];
  readonly silent: string[] = [];
  tokens = 0;
  readonly #options: AzureOptions;
  /** By token: what it is for, and when it ends, in milliseconds since 1970. */
  readonly #given = new Map<string, { readonly audience: Audience; readonly ends: number }>();
  #callsWithoutRole: number;
  #throttled = { calls: 0, retryAfterS: 1 };

  constructor(options: AzureOptions) {
    this.#options = options;
    this.#callsWithoutRole = options.callsBeforeRole ?? 0;
  }

  endTokens(): void {
    this.#given.clear();
  }

  throttle(calls: number, retryAfterS = 1): void {
    this.#throttled = { calls, retryAfterS };
  }

  answer(request: ReceivedRequest): HttpAnswer {
    const { pathname, searchParams } = new URL(request.path, 'http://azure');
    if (pathname === '/metadata/identity/oauth2/token')
      return this.#metadata(request, searchParams);
    const tenant = /^\/([^/]+)\/oauth2\/v2\.0\/token$/.exec(pathname)?.[1];
    if (tenant !== undefined && request.method === 'POST') return this.#entra(request, tenant);
    if (pathname === '/providers/Microsoft.ResourceGraph/resources' && request.method === 'POST')
      return this.#search(request, searchParams);
    if (decodeURIComponent(pathname) === ruleId && request.method === 'GET')
      return this.#rule(request, searchParams);
    const call = /^\/dataCollectionRules\/([^/]+)\/streams\/([^/]+)$/.exec(pathname);
    if (call === null || request.method !== 'POST') return failure(404, 'NotFound', 'no such path');
    if (searchParams.get('api-version') !== '2023-01-01')
      return failure(400, 'UnsupportedApiVersion', 'expected api-version=2023-01-01');
    return this.#ingest(request, {
      rule: call[1] ?? '',
      stream: decodeURIComponent(call[2] ?? ''),
    });
  }

  #entra(request: ReceivedRequest, tenant: string): HttpAnswer {
    const refuse = (status: number, error: string, said: string) =>
      reply(status, { error, error_description: said, correlation_id: 'c0' });
    if (request.headers['content-type']?.split(';')[0] !== 'application/x-www-form-urlencoded')
      return refuse(400, 'invalid_request', 'AADSTS900144: the body must be a form');
    const form = new URLSearchParams(request.body.toString());
    if (tenant !== azure.tenant)
      return refuse(400, 'invalid_request', `AADSTS90002: Tenant '${tenant}' not found.`);
    if (form.get('grant_type') !== 'client_credentials')
      return refuse(400, 'unsupported_grant_type', 'AADSTS70003: unsupported grant type');
    if (form.get('client_id') !== azure.clientId)
      return refuse(400, 'unauthorized_client', 'AADSTS700016: Application was not found.');
    if (form.get('client_secret') !== azure.clientSecret)
      return refuse(401, 'invalid_client', 'AADSTS7000215: Invalid client secret provided.');
    const scope = form.get('scope');
    const audience = audiences.find((one) =>
      [`${one}//.default`, `${one}/.default`].includes(`${scope}`),
    );
    if (audience === undefined)
      return refuse(
        400,
        'invalid_scope',
        `AADSTS70011: The provided value '${scope}' is no scope.`,
      );
    const life = this.#options.tokenLifeS ?? 3599;
    const answer = { token_type: 'Bearer', expires_in: life, ext_expires_in: life };
    return reply(200, { ...answer, access_token: this.#give(audience, life) });
  }

  #metadata({ method, headers }: ReceivedRequest, query: URLSearchParams): HttpAnswer {
    const refuse = (said: string) =>
      reply(400, { error: 'invalid_request', error_description: said });
    if (method !== 'GET') return reply(405, { error: 'Method Not Allowed' });
    if (headers.metadata !== 'true') return refuse('Required metadata header not specified');
    if (headers['x-forwarded-for'] !== undefined) return refuse('forwarded requests are refused');
    if (query.get('api-version') !== '2018-02-01')
      return refuse('api-version is missing or unknown');
    const resource = query.get('resource');
    const audience = audiences.find((one) => one === resource?.replace(/\/$/, ''));
    if (audience === undefined) return refuse(`no resource ${resource}`);
    const identity = query.get('client_id') ?? azure.identity;
    if (identity !== azure.identity) return refuse('Identity not found');
    const life = this.#options.tokenLifeS ?? 3599;
    const now = Math.floor(Date.now() / 1000);
    // Numbers come as strings here, and as numbers from the token endpoint.
    return reply(200, {
      access_token: this.#give(audience, life),
      client_id: identity,
      expires_in: String(life),
      expires_on: String(now + life),
      ext_expires_in: String(life),
      not_before: String(now),
      resource,
      token_type: 'Bearer',
    });
  }

  #give(audience: Audience, lifeS: number): string {
    this.tokens += 1;
    const token = `eyJ0eXAiOiJKV1QifQ.${'t'.repeat(1200)}.${this.tokens}`;
    this.#given.set(token, { audience, ends: Date.now() + lifeS * 1000 });
    return token;
  }

  #mayIn({ headers }: ReceivedRequest, audience: Audience): boolean {
    const given = this.#given.get(/^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '');
    return given?.audience === audience && given.ends > Date.now();
  }

  /** Resources that may not be read are not found. */
  #search(request: ReceivedRequest, query: URLSearchParams): HttpAnswer {
    const refusal = this.#managerRefusal(request, query, '2021-03-01');
    if (refusal !== null) return refusal;
    const { query: asked } = JSON.parse(request.body.toString());
    const requested =
      /^resources \| where type =~ 'microsoft\.insights\/datacollectionrules' and properties\.immutableId =~ '(dcr-[0-9a-f]{32})' \| project id$/.exec(
        asked,
      )?.[1];
    if (requested === undefined) return failure(400, 'BadRequest', 'Please provide below info.');
    const data =
      this.#options.isReader === true && requested === azure.rule ? [{ id: ruleId }] : [];
    const about = { totalRecords: data.length, count: data.length, resultTruncated: 'false' };
    return reply(200, { ...about, data, facets: [] });
  }

  #rule(request: ReceivedRequest, query: URLSearchParams): HttpAnswer {
    const refusal = this.#managerRefusal(request, query, '2023-03-11');
    if (refusal !== null) return refusal;
    if (this.#options.isReader !== true) {
      const said = `The client does not have authorization to perform action 'Microsoft.Insights/dataCollectionRules/read' over scope '${ruleId}'.`;
      return failure(403, 'AuthorizationFailed', said);
    }
    const columns = Object.entries(this.#options.columns ?? {});
    const streamDeclarations = {
      [azure.stream]: { columns: columns.map(([name, type]) => ({ name, type })) },
    };
    const properties = {
      immutableId: azure.rule,
      streamDeclarations,
      provisioningState: 'Succeeded',
    };
    return reply(200, { id: ruleId, kind: 'Direct', location: 'westeurope', properties });
  }

  #managerRefusal(
    request: ReceivedRequest,
    query: URLSearchParams,
    version: string,
  ): HttpAnswer | null {
    if (!this.#mayIn(request, 'https://management.azure.com'))
      return failure(401, 'InvalidAuthenticationToken', 'The access token is invalid.');
    return query.get('api-version') === version
      ? null
      : failure(400, 'InvalidApiVersionParameter', 'The api-version is invalid.');
  }

  #ingest(
    request: ReceivedRequest,
    to: { readonly rule: string; readonly stream: string },
  ): HttpAnswer {
    const { headers, body, wireBytes } = request;
    if (!this.#mayIn(request, 'https://monitor.azure.com'))
      return failure(
        401,
        'InvalidToken',
        'The authentication token is missing, invalid or expired.',
      );
    if (to.rule !== azure.rule)
      return failure(
        404,
        'NotFound',
        `Data collection rule with immutable Id '${to.rule}' not found.`,
      );
    if (this.#callsWithoutRole > 0) {
      this.#callsWithoutRole -= 1;
      const said = `The authentication token provided does not have access to ingest data for the data collection rule with immutable Id '${to.rule}'.`;
      return failure(403, 'OperationFailed', said);
    }
    if (this.#throttled.calls > 0) {
      this.#throttled.calls -= 1;
      const after = { 'retry-after': String(this.#throttled.retryAfterS) };
      return failure(429, 'TooManyRequests', 'The limit of the rule was reached.', after);
    }
    if (to.stream !== azure.stream)
      return failure(400, 'InvalidStream', `Data ingestion stream '${to.stream}' was not found.`);
    if (headers['content-type']?.split(';')[0] !== 'application/json')
      return failure(415, 'UnsupportedMediaType', 'expected application/json');
    const encoding = headers['content-encoding'] ?? 'identity';
    if (encoding !== 'identity' && encoding !== 'gzip')
      return failure(415, 'UnsupportedMediaType', 'expected gzip or no content encoding');
    const most = this.#options.callBytesMax ?? 1_000_000;
    if (Math.max(body.length, wireBytes) > most) {
      const said = `Maximum allowed content length: ${most} bytes.`;
      return failure(413, 'ContentLengthLimitExceeded', said);
    }
    return this.#take(body.toString());
  }

  #take(text: string): HttpAnswer {
    let sent: unknown;
    try {
      sent = JSON.parse(text);
    } catch {
      return failure(400, 'InvalidPayload', 'Request body is not valid JSON.');
    }
    if (!Array.isArray(sent)) this.silent.push('the body is no array');
    else this.rows.push(...sent.map((row) => this.#row(row)));
    return { answer: 'reply', status: 204 };
  }

  #row(sent: unknown): AzureRow {
    const { columns = null } = this.#options;
    const row: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(sent ?? {})) {
      const type = columns === null ? null : columns[name];
      if (type === undefined) this.silent.push(`column ${name} is not declared`);
      else row[name] = this.#kept(name, type === null ? value : stored(value, type));
    }
    return row;
  }

  #kept(name: string, value: unknown): unknown {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (text === undefined || Buffer.byteLength(text) <= fieldBytesMax) return value;
    this.silent.push(`column ${name} is cut`);
    return Buffer.from(text).subarray(0, fieldBytesMax).toString();
  }
}

/** A value as a column of this type keeps it; null where it cannot. */
function stored(value: unknown, type: ColumnType): unknown {
  if (value === null || value === undefined) return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  switch (type) {
    case 'dynamic':
      return value;
    case 'string':
      return text;
    case 'datetime':
      return Number.isNaN(Date.parse(text)) ? null : new Date(text).toISOString();
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : null;
    case 'real':
      return Number.isFinite(Number(text)) ? Number(text) : null;
    case 'int':
    case 'long':
      return /^-?\d+$/.test(text) && (type === 'long' || Math.abs(Number(text)) < 2 ** 31)
        ? Number(text)
        : null;
  }
}

function reply(status: number, body: object, headers: Record<string, string> = {}): HttpAnswer {
  const type = { 'content-type': 'application/json; charset=utf-8' };
  return { answer: 'reply', status, headers: { ...type, ...headers }, body: JSON.stringify(body) };
}

function failure(
  status: number,
  code: string,
  message: string,
  headers: Record<string, string> = {},
): HttpAnswer {
  return reply(status, { error: { code, message } }, headers);
}
