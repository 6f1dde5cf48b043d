// Reads the status of the process that runs with a config: `/status.json` of its status server, over HTTP at the
// config's address. Invariant: the server is unknown until its response has the right shape, and the response is
// bounded in size and time.

import type { IncomingMessage } from 'node:http';
import { hostPortText } from '../contracts/config.ts';
import { errorCodeOf, errorText } from '../contracts/index.ts';
import { commandText } from '../terminal/index.ts';
import type { Credentials } from './access.ts';
import { type LiveStatus, liveStatus } from './status-facts.ts';

/** The part of a config that gives the status address. */
interface Reachable {
  readonly file: string;
  readonly status: Address | null;
}

type Address = Credentials & { readonly host: string; readonly port: number };

/** Its status, or why there is none and the next step. */
export type StatusReply =
  | { readonly outcome: 'answered'; readonly status: LiveStatus }
  | { readonly outcome: 'off'; readonly why: string; readonly next: string }
  | { readonly outcome: 'silent'; readonly why: string; readonly next: string };

const timeoutMs = 3_000;
/** Thousands of streams at less than a KiB each. */
const bodyBytesMax = 64 * 1024 * 1024;

/** One request. Never throws; an aborted signal ends it early. */
export async function askRunning(
  { status, file }: Reachable,
  stop?: AbortSignal,
): Promise<StatusReply> {
  if (status === null) {
    return {
      outcome: 'off',
      why: `${file} has no status.listen, so the running process cannot be queried`,
      next: `Add status: { listen: 127.0.0.1:8686 } and start sluice again; ${commandText('status', file)} needs neither.`,
    };
  }
  if (status.port === 0) {
    return {
      outcome: 'off',
      why: 'status.listen leaves the port open (0), so it is not known here',
      next: 'Give status.listen a port, such as 127.0.0.1:8686, and start sluice again.',
    };
  }
  const url = urlOf(status);
  try {
    const answer = await fetched(`${url}/status.json`, authorization(status), stop);
    return answerOf(url, answer);
  } catch (error) {
    return {
      outcome: 'silent',
      why: `nothing answers at ${url}: ${whySilent(error)}`,
      next: `Look whether sluice runs with this config: ${commandText('status', file)} says so.`,
    };
  }
}

/** The metrics of the running process; null: none answers. Never throws. */
export async function metricsOfRunning({ status }: Reachable): Promise<string | null> {
  if (status === null || status.port === 0) return null;
  try {
    const answer = await fetched(`${urlOf(status)}/metrics`, authorization(status));
    return answer.status === 200 ? answer.body : null;
  } catch {
    return null;
  }
}

/** Null: the process answers `/healthz` with 200, or has no address to request. Else why it does not. Never throws. */
export async function whyUnhealthy({ status }: Pick<Reachable, 'status'>): Promise<string | null> {
  if (status === null || status.port === 0) return null;
  const url = `${urlOf(status)}/healthz`;
  try {
    const answer = await fetched(url, null);
    return answer.status === 200 ? null : `${url} answers ${answer.status}`;
  } catch (error) {
    return `nothing answers at ${url}: ${whySilent(error)}`;
  }
}

/** A wildcard address is requested on loopback. */
function urlOf({ host, port }: Address): string {
  const asked = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${hostPortText({ host: asked, port })}`;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** The credentials for the status server as a header; null: none are required. */
function authorization({ token, tokens, basicAuth }: Address): string | null {
  const bearer = token ?? tokens?.view ?? tokens?.events ?? tokens?.act;
  if (bearer != null) return `Bearer ${bearer.reveal()}`;
  if (basicAuth === null) return null;
  const text = `${basicAuth.username}:${basicAuth.password.reveal()}`;
  return `Basic ${Buffer.from(text).toString('base64')}`;
}

async function fetched(
  url: string,
  authorization: string | null,
  stop?: AbortSignal,
): Promise<Answer> {
  const headers = authorization === null ? {} : { authorization };
  const late = AbortSignal.timeout(timeoutMs);
  const signal = stop === undefined ? late : AbortSignal.any([late, stop]);
  // An import would also load Node's fetch and WebSocket, which the module exports.
  const { get } = process.getBuiltinModule('node:http');
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers, signal, agent: false }, resolve).on('error', reject);
  });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new Error('its answer is too large');
  }
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') };
}

function answerOf(url: string, { status, body }: Answer): StatusReply {
  if (status === 401 || status === 403) {
    return {
      outcome: 'silent',
      why: `${url} does not accept the credential of status as it reads here (${status})`,
      next: 'Set the references under status as they are for the process that runs.',
    };
  }
  const parsed = status === 200 ? liveStatus.safeParse(jsonOf(body)) : null;
  if (parsed?.success) return { outcome: 'answered', status: parsed.data };
  return {
    outcome: 'silent',
    why: `the server at ${url} is not sluice, or is another version (${status})`,
    next: 'Check which process listens there, and whether it is of this version.',
  };
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

function whySilent(error: unknown): string {
  const code = errorCodeOf(error);
  if (code === 'ECONNREFUSED') return 'no process listens there';
  if (code === 'ABORT_ERR' || (error instanceof Error && error.name === 'TimeoutError')) {
    return `no answer within ${timeoutMs / 1_000} s`;
  }
  return code || errorText(error);
}
