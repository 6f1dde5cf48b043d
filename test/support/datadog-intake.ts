// Datadog's log intake as in its API reference (docs.datadoghq.com, "Send logs", v2): its responses, and the logs that
// an analyst sees. Two actions are silent, with 202: a log above 1 MB is cut, and one whose time is more than 18 hours
// back gets the time of its arrival.
import {
  type HttpAnswer,
  type HttpReceiver,
  type HttpReceiverOptions,
  type ReceivedRequest,
  startHttpReceiver,
} from './http-receiver.ts';

export interface DatadogOptions extends Pick<HttpReceiverOptions, 'tls'> {
  /** Bytes of a request, uncompressed. Default 5,000,000. */
  readonly payloadBytesMax?: number;
  /** Logs of a request. Default 1000. */
  readonly logsMax?: number;
  /** Requests with this text are rejected as malformed. */
  readonly refuses?: (body: string) => boolean;
}

/** A log as an analyst sees it. */
export interface DatadogLog {
  /** All attributes; of a log that was cut only `message`, which holds what is left of its text. */
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly isCut: boolean;
  /** Milliseconds since 1970; null: stamped on arrival. */
  readonly time: number | null;
}

/** Stands before the intake: answers a request itself, or with what `pass` says, which it may also keep back. */
export type DatadogInterference = (request: ReceivedRequest, pass: () => HttpAnswer) => HttpAnswer;

/** A running intake. It ends with the test that started it. */
export interface DatadogIntake extends Pick<HttpReceiver, 'url' | 'requests' | 'close' | 'reopen'> {
  /** What an analyst finds, in the order of arrival. */
  readonly logs: readonly DatadogLog[];
  /** From now on calls this first; null: nothing. */
  interfere(how: DatadogInterference | null): void;
}

/** The one API key that the intake knows. */
export const datadogKey = '0123456789abcdef0123456789abcdef';

const logBytesMax = 1_000_000;
const oldestMs = 18 * 3600 * 1000;
const timeNames = ['@timestamp', 'timestamp', '_timestamp', 'Timestamp', 'eventTime', 'date'];

/** Starts an intake on a free loopback port. */
export async function startDatadogIntake(options: DatadogOptions = {}): Promise<DatadogIntake> {
  const http = await startHttpReceiver(options.tls === undefined ? {} : { tls: options.tls });
  const logs: DatadogLog[] = [];
  let interference: DatadogInterference | null = null;
  http.answer((request) => {
    const pass = () => answerTo(request, options, logs);
    return interference === null ? pass() : interference(request, pass);
  });
  return {
    ...{ url: http.url, requests: http.requests, logs },
    close: () => http.close(),
    reopen: () => http.reopen(),
    interfere: (how) => {
      interference = how;
    },
  };
}

function answerTo(
  { method, path, headers, body }: ReceivedRequest,
  options: DatadogOptions,
  logs: DatadogLog[],
): HttpAnswer {
  const { payloadBytesMax = 5_000_000, logsMax = 1000, refuses } = options;
  if (new URL(path, 'http://intake').pathname !== '/api/v2/logs') return failure(404, 'Not Found');
  if (method !== 'POST') return failure(405, 'Method Not Allowed');
  const key = headers['dd-api-key'];
  if (key === undefined) return failure(401, 'Unauthorized');
  if (key !== datadogKey) return failure(403, 'Forbidden');
  if (body.length > payloadBytesMax) return failure(413, 'Request Entity Too Large');
  const text = body.toString();
  if (refuses?.(text) === true) return failure(400, 'Bad Request');
  let sent: unknown;
  try {
    sent = JSON.parse(text);
  } catch {
    return failure(400, 'Bad Request');
  }
  const items = Array.isArray(sent) ? sent : [sent];
  if (items.length > logsMax) return failure(413, 'Request Entity Too Large');
  if (!items.every((item) => typeof item === 'object' && item !== null))
    return failure(400, 'Bad Request');
  logs.push(...items.map(seen));
  return { answer: 'reply', status: 202, headers: json, body: '{}' };
}

function seen(item: Record<string, unknown>): DatadogLog {
  const text = Buffer.from(JSON.stringify(item));
  const isCut = text.length > logBytesMax;
  const cut = () => ({ message: text.subarray(0, logBytesMax).toString() });
  const given = timeNames.map((name) => item[name]).find((value) => value !== undefined);
  const time = typeof given === 'number' ? given : Date.parse(String(given));
  const isOld = !(time >= Date.now() - oldestMs);
  return { attributes: isCut ? cut() : item, isCut, time: isCut || isOld ? null : time };
}

const json = { 'content-type': 'application/json' };

function failure(status: number, title: string): HttpAnswer {
  const body = JSON.stringify({ errors: [{ status: String(status), title }] });
  return { answer: 'reply', status, headers: json, body };
}
