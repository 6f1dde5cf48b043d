// The responses of an endpoint before faults: status, headers and either JSON text or a page of records. Both error
// envelopes of the upstream documents are built only here: the unified one (`error.code`, `error.message`,
// `error.field`, `request_id`) and RFC 9457 problem details with `trace_id` for the services.
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * The API of a path; decides envelopes, headers and credentials. `earlier` is the form that the services document calls
 * the earlier API: with --earlier only.
 */
export type Api = 'unified' | 'services' | 'earlier';

/** A parsed request. `path` is as sent, without the query. */
export interface SandboxRequest {
  readonly api: Api;
  readonly method: string;
  readonly scheme: 'http' | 'https';
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A page of a list. `fields` are the envelope's other members as JSON text, in order. */
export interface SandboxPage {
  /** The records' JSON texts joined by commas. */
  readonly joined: () => Uint8Array;
  readonly items: () => readonly string[];
  readonly fields: ReadonlyMap<string, string>;
  /** A cursor back to the first page; for the loop fault. */
  readonly startCursor: () => string;
  /** Formats the page in another style than the documents'; called after the faults. */
  readonly shape?: (page: SandboxPage) => ShapedPage;
  /** The origin of addresses in the page; default: this sandbox's. */
  readonly origin?: string;
}

/** A page formatted in another paging style. */
export interface ShapedPage {
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly type: string;
}

/** The body of a response: JSON text, a page, or nothing. */
export type Content =
  | { readonly form: 'json'; readonly text: string }
  | { readonly form: 'page'; readonly page: SandboxPage }
  | { readonly form: 'raw'; readonly text: string; readonly type: string };

/** The response if no fault intervenes. */
export interface SandboxResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly content: Content;
}

/** Why a request is rejected. `code` and `field` are in the unified envelope only. */
export interface SandboxRefusal {
  readonly status: number;
  readonly message: string;
  readonly code?: string;
  readonly field?: string;
}

const PHRASES: Readonly<Record<number, readonly [phrase: string, code: string]>> = {
  400: ['Bad Request', 'bad_request'],
  401: ['Unauthorized', 'unauthorized'],
  403: ['Forbidden', 'forbidden'],
  404: ['Not Found', 'not_found'],
  405: ['Method Not Allowed', 'method_not_allowed'],
  409: ['Conflict', 'conflict'],
  410: ['Gone', 'gone'],
  422: ['Unprocessable Content', 'validation_failed'],
  429: ['Too Many Requests', 'rate_limited'],
  451: ['Inappropriate content', 'inappropriate_content'],
  500: ['Server error', 'internal'],
  503: ['Unavailable', 'unavailable'],
};

/** A JSON response. */
export function ok(
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): SandboxResponse {
  return { status: 200, headers, content: { form: 'json', text: JSON.stringify(value) } };
}

/** A rejection in the API's own envelope. */
export function failed(api: Api, failure: SandboxRefusal): SandboxResponse {
  const { status, message, field } = failure;
  if (api === 'earlier') return plainFailure(status);
  const [title, code] = PHRASES[status] ?? [`Status ${status}`, `status_${status}`];
  if (api === 'unified') {
    const error = { code: failure.code ?? code, message, ...(field !== undefined && { field }) };
    const body = { error, request_id: `req_${randomUUID().replaceAll('-', '').slice(0, 20)}` };
    return { status, headers: {}, content: { form: 'json', text: JSON.stringify(body) } };
  }
  const errors = field === undefined ? [] : [{ message: `${field}: ${message}` }];
  const body = {
    title,
    status,
    detail: message,
    trace_id: randomUUID().replaceAll('-', ''),
    errors,
  };
  const type = 'application/problem+json';
  return { status, headers: {}, content: { form: 'raw', text: JSON.stringify(body), type } };
}

/** An error of the earlier API: the status, without a body that a client could rely on. */
function plainFailure(status: number): SandboxResponse {
  const text = `${status} ${PHRASES[status]?.[0] ?? 'Error'}\n`;
  return { status, headers: {}, content: { form: 'raw', text, type: 'text/plain' } };
}

/** A response in the paging style of its page. */
export function shaped(answer: SandboxResponse): SandboxResponse {
  const { content } = answer;
  if (content.form !== 'page' || content.page.shape === undefined) return answer;
  const { headers, text, type } = content.page.shape(content.page);
  return {
    ...answer,
    headers: { ...answer.headers, ...headers },
    content: { form: 'raw', text, type },
  };
}

/** The bytes of a body and their media type. */
export function bytesOf(content: Content): { readonly bytes: Uint8Array; readonly type: string } {
  switch (content.form) {
    case 'json':
      return { bytes: Buffer.from(content.text), type: 'application/json' };
    case 'raw':
      return { bytes: Buffer.from(content.text), type: content.type };
    case 'page': {
      const rest = [...content.page.fields].map(([name, text]) => `,"${name}":${text}`).join('');
      const parts = [Buffer.from('{"data":['), content.page.joined(), Buffer.from(`]${rest}}`)];
      return { bytes: Buffer.concat(parts), type: 'application/json' };
    }
  }
}
