// The process that runs with a config, asked how it stands: `/status.json` of its status server, over HTTP on the address
// that the config gives. What must stay true: whatever listens there is a stranger until its answer has the right shape, and
// its answer is bounded in size and time.

import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Config } from '../config/config.ts';
import { commandText } from '../terminal/command-text.ts';

const time = z.iso.datetime().nullable();

const failure = z
  .object({
    code: z.string(),
    message: z.string(),
    next: z.string(),
    upstream_code: z.string().nullish(),
    request_id: z.string().nullable(),
    trace_id: z.string().nullable(),
  })
  .nullable();

const budget = z.object({
  path: z.string(),
  wait_ms: z.number(),
  limit: z.number().nullable(),
  remaining: z.number().nullable(),
});

/** As far as commands show it; the whole is in watch/report.ts. */
const report = z.object({
  at: z.iso.datetime(),
  started_at: z.iso.datetime(),
  ready: z.boolean(),
  reload_refused: z.object({ code: z.string(), message: z.string(), next: z.string() }).nullish(),
  records_per_s: z.number(),
  streams: z.array(
    z.object({
      name: z.string(),
      state: z.string(),
      order: z.string().nullable(),
      polls: z.number(),
      records: z.number(),
      records_per_s: z.number(),
      polled_at: time,
      caught_up_at: time,
      lag_ms: z.number().nullable(),
      checkpoint_at: time,
      budget: budget.nullish(),
      waits_for: z.string().nullable(),
      next_poll_at: time.optional(),
      error: failure,
    }),
  ),
  spool: z.object({
    bytes: z.number(),
    max_bytes: z.number(),
    events: z.number(),
    full_in_ms: z.number().nullable(),
  }),
  sinks: z.array(
    z.object({
      name: z.string(),
      type: z.string(),
      state: z.string(),
      position: z.number(),
      backlog: z.number(),
      drained_in_ms: z.number().nullable(),
      events_per_s: z.number(),
      dead_letters: z.number(),
      error: failure,
      notice: z.object({ what: z.string(), next: z.string() }).nullable().default(null),
    }),
  ),
  conditions: z.array(
    z.object({
      condition: z.string(),
      stream: z.string(),
      observed_at: z.string(),
      message: z.string(),
    }),
  ),
  filters: z
    .array(
      z.object({
        route: z.string(),
        source: z.string(),
        failures: z.number(),
        why: z.string().nullable(),
      }),
    )
    .default([]),
});

/** What a running process tells of itself. */
export type RunningReport = z.output<typeof report>;

/** Its answer, or why there is none and what can be done about that. */
export type Asked =
  | { readonly outcome: 'report'; readonly url: string; readonly report: RunningReport }
  | { readonly outcome: 'off'; readonly why: string; readonly next: string }
  | { readonly outcome: 'silent'; readonly why: string; readonly next: string };

const timeoutMs = 3_000;
/** Thousands of streams at less than a KiB each. */
const bodyBytesMax = 64 * 1024 * 1024;

/** Asks once. Never throws; an aborted signal makes it end sooner. */
export async function askRunning({ status, file }: Config, stop?: AbortSignal): Promise<Asked> {
  if (status === null) {
    return {
      outcome: 'off',
      why: `${file} has no status.listen, so what runs cannot be asked`,
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

/** An address that means every one of this machine's is asked on loopback. */
function urlOf({ host, port }: NonNullable<Config['status']>): string {
  const asked = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${asked.includes(':') ? `[${asked}]` : asked}:${port}`;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** What the status server asks for, as a header; null: nothing. */
function authorization({ token, basicAuth }: NonNullable<Config['status']>): string | null {
  if (token !== null) return `Bearer ${token.reveal()}`;
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
  // An import would load Node's own fetch and WebSocket too, which are exported beside it.
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

function answerOf(url: string, { status, body }: Answer): Asked {
  if (status === 401 || status === 403) {
    return {
      outcome: 'silent',
      why: `${url} does not take the credential of status as it reads here (${status})`,
      next: 'Set the references under status as they are for the process that runs.',
    };
  }
  const parsed = status === 200 ? report.safeParse(jsonOf(body)) : null;
  if (parsed?.success) return { outcome: 'report', url, report: parsed.data };
  return {
    outcome: 'silent',
    why: `what answers at ${url} is not sluice, or another version of it (${status})`,
    next: 'Look what listens there, and whether it was started from this version.',
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
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ECONNREFUSED') return 'nobody listens there';
  if (code === 'ABORT_ERR' || (error instanceof Error && error.name === 'TimeoutError')) {
    return `no answer within ${timeoutMs / 1_000} s`;
  }
  if (typeof code === 'string') return code;
  return error instanceof Error ? error.message : String(error);
}
