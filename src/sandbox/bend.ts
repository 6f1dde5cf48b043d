// Applies a fault to the status, headers and body of a response. Pure; deliver.ts has the faults on the wire (cut,
// trickle, silence). There are two kinds: faults that answer instead of the endpoint, and faults that alter its
// response.
import {
  bytesOf,
  type Content,
  failed,
  type SandboxPage,
  type SandboxRequest,
  type SandboxResponse,
} from './answers.ts';
import { editedContent, withItems } from './edits.ts';
import type { SandboxFault } from './faults.ts';
import { invalidClient } from './tokens.ts';

const HTML =
  '<!doctype html><html><head><title>Sign in</title></head><body><h1>Network sign-in</h1>' +
  '<p>Your session has ended. <a href="/login">Sign in again</a>.</p></body></html>';

/** The response in place of the endpoint's; null: the endpoint answers. */
export function answerInstead(
  fault: SandboxFault,
  ask: SandboxRequest,
  nowMs: number,
): SandboxResponse | null {
  switch (fault.kind) {
    case 'status':
      return statusAnswer(fault, ask, nowMs);
    case 'revoke_token':
      return failed(ask.api, { status: 401, message: 'the token has been revoked' });
    case 'invalid_client':
      return invalidClient(ask.api);
    case 'html':
      return {
        status: 200,
        headers: {},
        content: { form: 'raw', text: HTML, type: 'text/html; charset=utf-8' },
      };
    case 'empty_body':
      return { status: 200, headers: {}, content: { form: 'json', text: '' } };
    case 'empty_object':
      return { status: 200, headers: {}, content: { form: 'json', text: '{}' } };
    case 'error_in_200':
      return {
        ...failed(ask.api, { status: 500, message: 'upstream of upstream failed' }),
        status: 200,
      };
    case 'redirect': {
      const location = fault.to ?? '/elsewhere';
      return {
        status: fault.status ?? 302,
        headers: { location },
        content: { form: 'json', text: '' },
      };
    }
    case 'expired_cursor': {
      const status = fault.status ?? (ask.api === 'unified' ? 422 : 400);
      return failed(ask.api, {
        status,
        message: 'cursor is invalid or has expired',
        field: 'cursor',
      });
    }
    case 'expires_in':
    case 'cut_json':
    case 'truncated':
    case 'reset':
    case 'refused':
    case 'slow':
    case 'delay':
    case 'hang':
    case 'wrong_shape':
    case 'cursor_ignored':
    case 'loop':
    case 'foreign_next':
    case 'huge':
    case 'short':
    case 'shifted':
    case 'wrong_total':
    case 'extra_field':
    case 'volatile_field':
    case 'renamed_field':
    case 'altered':
    case 'missing_record':
    case 'lost':
    case 'late':
    case 'replayed':
    case 'redelivered':
    case 'storm':
    case 'forged':
    case 'unsigned':
      return null;
  }
}

/** The endpoint's response altered by the fault. Rejections pass unaltered. */
export function alterAnswer(
  fault: SandboxFault,
  answer: SandboxResponse,
  nowMs: number,
): SandboxResponse {
  if (answer.status !== 200) return answer;
  const { content } = answer;
  if (fault.kind === 'expires_in') return { ...answer, content: withExpiry(content, fault.value) };
  if (fault.kind === 'cut_json') {
    const text = Buffer.from(bytesOf(content).bytes).toString();
    return {
      ...answer,
      content: { form: 'json', text: text.slice(0, Math.floor(text.length / 2)) },
    };
  }
  const edited = editedContent(fault, content, nowMs);
  if (edited !== null) return { ...answer, content: edited };
  if (content.form !== 'page') return answer;
  return { ...answer, content: alteredPage(fault, content.page) ?? content };
}

function alteredPage(fault: SandboxFault, page: SandboxPage): Content | null {
  if (fault.kind === 'wrong_shape') return misshapen(page, fault.shape);
  if (fault.kind === 'loop') return withFields(page, { next_cursor: page.startCursor() });
  if (fault.kind === 'foreign_next') {
    return { form: 'page', page: { ...page, origin: fault.to ?? 'http://127.0.0.1:1' } };
  }
  if (fault.kind === 'wrong_total') {
    return withFields(page, { total: JSON.stringify(fault.total) });
  }
  if (fault.kind === 'short') {
    const items = page.items().slice(0, fault.keep ?? 0);
    return withFields(withItems(page, items), {
      ...(page.fields.has('next_cursor') && { next_cursor: 'null' }),
      ...(fault.total === true && { total: String(items.length) }),
    });
  }
  return null;
}

type StatusFault = Extract<SandboxFault, { kind: 'status' }>;

function statusAnswer(fault: StatusFault, ask: SandboxRequest, nowMs: number): SandboxResponse {
  const { status, code, field, message = 'fault script' } = fault;
  const dateMs = nowMs + (fault.date_skew_s ?? 0) * 1000;
  const throttled = status === 429 || fault.retry_after !== undefined;
  const headers = {
    date: new Date(dateMs).toUTCString(),
    ...(throttled && retryAfter(fault.retry_after ?? 1, fault.retry_as ?? 'seconds', dateMs)),
  };
  if (status < 400) return { status, headers, content: { form: 'json', text: '' } };
  const failure = {
    status,
    message,
    ...(code !== undefined && { code }),
    ...(field !== undefined && { field }),
  };
  return { ...failed(ask.api, failure), headers };
}

/** The Retry-After header for a wait in seconds, or any other text unchanged. */
export function retryAfter(
  wait: number | string,
  as: 'seconds' | 'date' | 'absent',
  dateMs: number,
): Readonly<Record<string, string>> {
  if (as === 'absent') return {};
  if (typeof wait === 'string' || as === 'seconds') return { 'retry-after': String(wait) };
  return { 'retry-after': new Date(dateMs + wait * 1000).toUTCString() };
}

function withExpiry(content: Content, value: unknown): Content {
  if (content.form !== 'json') return content;
  const { expires_in: _, ...rest } = JSON.parse(content.text);
  const body = value === 'missing' ? rest : { ...rest, expires_in: value };
  return { form: 'json', text: JSON.stringify(body) };
}

function misshapen(
  page: SandboxPage,
  shape: Extract<SandboxFault, { kind: 'wrong_shape' }>['shape'],
): Content {
  const rest = [...page.fields].map(([name, text]) => `"${name}":${text}`).join(',');
  const data = `[${page.items().join(',')}]`;
  const json = (text: string): Content => ({ form: 'json', text });
  switch (shape) {
    case 'array':
      return json(data);
    case 'data_object':
      return json(`{"data":{"items":${data}},${rest}}`);
    case 'data_null':
      return json(`{"data":null,${rest}}`);
    case 'data_missing':
      return json(`{${rest}}`);
    case 'next_number':
      return withFields(page, { next_cursor: '17' });
    case 'next_missing': {
      const fields = new Map([...page.fields].filter(([name]) => name !== 'next_cursor'));
      return { form: 'page', page: { ...page, fields } };
    }
  }
}

function withFields(page: SandboxPage, fields: Readonly<Record<string, string>>): Content {
  return {
    form: 'page',
    page: { ...page, fields: new Map([...page.fields, ...Object.entries(fields)]) },
  };
}
