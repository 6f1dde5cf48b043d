// Classifies a response of upstream, before any records are read: by status, then by whether the
// body can be a page. Invariant: an empty 200, an HTML page or an error inside a 200 never counts
// as "no more data", which would lose records; a body that is not plainly JSON is requested again.
// The body is parsed here only if it is small enough to be an error in disguise.

import {
  type Answer,
  type Body,
  ExportError,
  type Failure,
  type HttpFailure,
  type HttpResponse,
  type Wait,
} from '../contracts/index.ts';
import {
  cleanText,
  describeProblem,
  type Problem,
  parseObject,
  problemDescriber,
  problemDetails,
  problemOf,
  readProblem,
} from '../tools/index.ts';

/** The request that a response belongs to. */
export interface Sent {
  /** Upstream's name in the config. */
  readonly upstream: string;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  readonly url: string;
  /** The response must be lines of JSON. */
  readonly isLines: boolean;
  /** The request goes through a proxy. Default: false. */
  readonly isProxied?: boolean;
  /** Token and parameter values, which must not appear in a message. */
  readonly hidden: readonly string[];
  readonly scopes: { readonly asked: string | undefined; readonly granted: string | null };
}

/** An error body is small: a larger one is a page and is not parsed twice. */
const disguiseBytesMax = 16 * 1024;
/** Media types in use for lines of JSON; none is registered. */
const linesType = /\b(x-)?(ndjson|jsonl|jsonlines|json-lines|ldjson)\b/i;

/** Classifies a complete response; `wait`: the wait that upstream requests with it. */
export function readAnswer(response: HttpResponse, asked: Sent, wait?: Wait): Answer<Body> {
  const { status } = response;
  if (status === 200) return readBody(response, asked, wait);
  const problem = readProblem(response.body, asked.hidden);
  const failure = (code: ExportError['code'], next: string) =>
    errorOf(code, asked, {
      what: `upstream answered ${status}${describeProblem(problem)}`,
      next,
      status,
      problem,
    });
  if (status === 401 || status === 403) {
    const cause = deniedCause(status, asked, { problem, wait });
    return { outcome: 'denied', status, ...(wait && { wait }), cause };
  }
  if (status === 429) {
    return retry(
      failure('upstream_throttled', 'Nothing is to be done; a ceiling under throttle avoids it.'),
      wait,
    );
  }
  if (status === 408 || status >= 500) {
    return retry(
      failure('upstream_unreachable', 'It is tried again by itself; nothing is lost.'),
      wait,
    );
  }
  if (status < 300) {
    return retry(nonsense(`${status} where a body was due`, status, asked), wait);
  }
  const cause =
    status < 400
      ? redirectCause(response, asked)
      : failure(
          'upstream_refused',
          'Check path and parameters of the source. sluice requests it again, at once after a config change. Nothing is lost.',
        );
  if (status === 451) return { outcome: 'blocked', status, cause };
  return {
    outcome: 'refused',
    status,
    ...(problem.field === undefined ? {} : { field: problem.field }),
    cause,
  };
}

/** The result for a response that never arrived completely. */
export function httpFailureOf(failure: HttpFailure, asked: Sent): Failure {
  const tooLarge = failure.reason === 'too_large';
  const cause = new ExportError(
    tooLarge || failure.reason === 'encoding' ? 'upstream_nonsense' : 'upstream_unreachable',
    `${doing(asked)}: ${cleanText(failure.message, 400, asked.hidden)}`,
    {
      next: tooLarge
        ? 'Raise max_body of this upstream or lower page_limit of the source; nothing is lost.'
        : failure.reason === 'encoding'
          ? 'Have upstream, or the proxy in between, name the packing of its answers in Content-Encoding; it is tried again by itself.'
          : asked.isProxied
            ? 'It is tried again by itself; check the proxy of this upstream (address, user, password), and TLS settings if it lasts.'
            : 'It is tried again by itself; check address, network and TLS settings if it lasts.',
      details: { upstream: asked.upstream, path: asked.path, failure: failure.reason },
      cause: failure,
    },
  );
  return { outcome: 'retry', cause };
}

function readBody(response: HttpResponse, asked: Sent, wait?: Wait): Answer<Body> {
  const { status, headers, body } = response;
  const first = firstByte(body);
  const describe = problemDescriber(asked.hidden);
  const good = { outcome: 'ok', url: asked.url, headers, body, describe } as const;
  // Lines are checked one by one; zero lines are an empty list if upstream declares the media type.
  const type = headers['content-type'] ?? '';
  if (asked.isLines && linesType.test(type)) return good;
  if (first !== 0x7b && first !== 0x5b) {
    const type = cleanText(headers['content-type'] ?? 'no content type', 80);
    const problem = readProblem(body, asked.hidden);
    const what =
      body.length === 0
        ? 'an empty body'
        : `no JSON but ${body.length} bytes of ${type}${describeProblem(problem)}`;
    return retry(nonsense(`200 with ${what}`, status, asked, problem), wait);
  }
  if (body.length <= disguiseBytesMax && first === 0x7b) {
    const parsed = parseObject(body);
    if (parsed === null && asked.isLines) return good;
    if (parsed === null) return retry(nonsense('200 with damaged JSON', status, asked), wait);
    if (Object.keys(parsed).length === 0)
      return retry(nonsense('200 with {}', status, asked), wait);
    if (parsed.data === undefined && isDisguised(parsed, headers['content-type'])) {
      const problem = problemOf(parsed, asked.hidden);
      const what = `200 with an error in its body${describeProblem(problem)}`;
      return retry(nonsense(what, status, asked, problem), wait);
    }
  }
  return good;
}

/** `{error: …}`, or problem details with the status of a failure. */
function isDisguised(
  body: Readonly<Record<string, unknown>>,
  contentType: string | undefined,
): boolean {
  const { error, title, status } = body;
  if (contentType?.includes('problem+json')) return true;
  if (typeof error === 'string' || (typeof error === 'object' && error !== null)) return true;
  return typeof title === 'string' && typeof status === 'number' && status >= 400;
}

/** The first byte that is neither white space nor a byte order mark; -1 if there is none. */
function firstByte(body: Uint8Array): number {
  const hasMark = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  for (let at = hasMark ? 3 : 0; at < body.length; at++) {
    const byte = body[at] ?? -1;
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return byte;
  }
  return -1;
}

function retry(cause: ExportError, wait?: Wait): Failure {
  return { outcome: 'retry', ...(wait === undefined ? {} : { wait }), cause };
}

function nonsense(what: string, status: number, asked: Sent, problem: Problem = {}): ExportError {
  return errorOf('upstream_nonsense', asked, {
    what: `upstream answered ${what}`,
    next: 'sluice requests it again and never treats it as the end of the data. If it lasts, check base_url and path.',
    status,
    problem,
  });
}

function deniedCause(
  status: number,
  asked: Sent,
  { problem, wait }: { readonly problem: Problem; readonly wait: Wait | undefined },
): ExportError {
  const { asked: requested = 'none', granted } = asked.scopes;
  const scopes =
    status === 403 ? `; requested scope: ${requested}, granted: ${granted ?? 'not said'}` : '';
  const next =
    status === 401
      ? `Check the credential of upstream ${asked.upstream}, which may be revoked, and the path in its base_url; nothing is lost, reading resumes where it stopped.`
      : `Give the API user of upstream ${asked.upstream} read access to this endpoint, or set the scope it needs; nothing is lost.`;
  const patience = wait ? ` and requires a wait of ${Math.ceil(wait.ms / 1_000)} s` : '';
  const what = `upstream answered ${status}${describeProblem(problem)}${patience}${cleanText(scopes, 400)}`;
  return errorOf('upstream_refused', asked, { what, next, status, problem });
}

/** Statuses that redirect to another address (RFC 9110, section 15.4). */
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function redirectCause(response: HttpResponse, asked: Sent): ExportError {
  if (!redirects.has(response.status)) {
    const meant =
      response.status === 304 ? ' (not modified), though nothing was sent to compare' : '';
    return errorOf('upstream_refused', asked, {
      what: `upstream answered ${response.status}${meant}`,
      next: 'Check for a cache or proxy between sluice and this upstream, and let it forward requests. Nothing is lost.',
      status: response.status,
      problem: {},
    });
  }
  const target = URL.parse(response.headers.location ?? '')?.host ?? 'elsewhere';
  return errorOf('upstream_refused', asked, {
    what: `upstream answered ${response.status}, a redirect to ${cleanText(target, 100)}, which is not followed`,
    next: 'If that address is right, set it as base_url of this upstream.',
    status: response.status,
    problem: {},
  });
}

interface Telling {
  readonly what: string;
  readonly next: string;
  readonly status: number;
  readonly problem: Problem;
}

function errorOf(code: ExportError['code'], asked: Sent, telling: Telling): ExportError {
  return new ExportError(code, `${doing(asked)}: ${telling.what}`, {
    next: telling.next,
    details: {
      upstream: asked.upstream,
      method: asked.method,
      path: asked.path,
      status: telling.status,
      ...problemDetails(telling.problem),
    },
  });
}

function doing(asked: Sent): string {
  return `requesting ${asked.path} from ${asked.upstream}`;
}
