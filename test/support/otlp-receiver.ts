// An OTLP/HTTP logs receiver that decodes requests with its own decoder and answers as the test says: accepted, partly
// accepted, or any answer an HTTP server can give. A request that is not valid OTLP gets a 400 and is listed in
// `faults`, which a test expects to be empty.
import {
  type HttpAnswer,
  type HttpReceiver,
  type HttpReceiverOptions,
  type ReceivedRequest,
  startHttpReceiver,
} from './http-receiver.ts';
import { decodeOtlpJson } from './otlp-json.ts';
import { decodeProtobuf, encodePartialSuccess } from './otlp-protobuf.ts';
import { type OtlpRecord, recordsOf } from './otlp-records.ts';
import { patienceMs, waitUntil } from './temp.ts';

export type { OtlpRecord, OtlpValue } from './otlp-records.ts';

/** A request with the log records that were in it. */
export interface OtlpRequest extends ReceivedRequest {
  readonly records: readonly OtlpRecord[];
}

export type OtlpAnswer =
  | { readonly answer: 'accept' }
  /** 200 with `partial_success`; which records are meant is for the sender to guess, as in OTLP. */
  | { readonly answer: 'partly'; readonly rejected: number; readonly message: string }
  | HttpAnswer;

export type OtlpAnswerer = (request: OtlpRequest) => OtlpAnswer | Promise<OtlpAnswer>;

/** A running receiver. It ends with the test that started it. */
export interface OtlpReceiver {
  /** The whole URL for logs: `http://127.0.0.1:port/v1/logs`. */
  readonly url: string;
  /** Every valid request, however it was answered. */
  readonly requests: readonly OtlpRequest[];
  /** Why requests were not valid OTLP. */
  readonly faults: readonly string[];
  /** The records of all requests that were answered with a 2xx, partial success included. */
  records(): readonly OtlpRecord[];
  /** From now on answers so; a plain answer stands for always that one. */
  answer(how: OtlpAnswerer | OtlpAnswer): void;
  /** Waits until so many records were answered with a 2xx, or until the predicate says yes. Default 10 seconds. */
  waitFor(
    until: number | ((records: readonly OtlpRecord[]) => boolean),
    timeoutMs?: number,
  ): Promise<readonly OtlpRecord[]>;
  /** Stops listening and drops every connection; what was received stays. */
  close(): Promise<void>;
  /** Listens again on the same port after `close`. */
  reopen(): Promise<void>;
}

/** Starts a receiver on a free loopback port; it accepts everything by default. */
export async function startOtlpReceiver(
  options: Omit<HttpReceiverOptions, 'answer'> = {},
): Promise<OtlpReceiver> {
  const http = await startHttpReceiver(options);
  return new Receiver(http, options.keep !== false);
}

class Receiver implements OtlpReceiver {
  readonly url: string;
  readonly requests: OtlpRequest[] = [];
  readonly faults: string[] = [];
  readonly #http: HttpReceiver;
  readonly #keep: boolean;
  readonly #accepted: OtlpRecord[] = [];
  #answerer: OtlpAnswerer = () => ({ answer: 'accept' });

  constructor(http: HttpReceiver, keep: boolean) {
    this.#http = http;
    this.#keep = keep;
    this.url = `${http.url}/v1/logs`;
    http.answer((request) => this.#take(request));
  }

  records(): readonly OtlpRecord[] {
    return this.#accepted;
  }

  answer(how: OtlpAnswerer | OtlpAnswer): void {
    this.#answerer = typeof how === 'function' ? how : () => how;
  }

  async waitFor(
    until: number | ((records: readonly OtlpRecord[]) => boolean),
    timeoutMs = patienceMs,
  ): Promise<readonly OtlpRecord[]> {
    const enough = () =>
      typeof until === 'number' ? this.#accepted.length >= until : until(this.#accepted);
    const what = () =>
      `OTLP records; ${this.#accepted.length} accepted in ${this.requests.length} requests, ` +
      `faults: ${this.faults.join('; ') || 'none'}`;
    await waitUntil(enough, { what, timeoutMs });
    return this.#accepted;
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  reopen(): Promise<void> {
    return this.#http.reopen();
  }

  async #take(received: ReceivedRequest): Promise<HttpAnswer> {
    let request: OtlpRequest;
    try {
      request = { ...received, records: decode(received) };
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error);
      this.faults.push(fault);
      return { answer: 'reply', status: 400, body: fault };
    }
    if (this.#keep) this.requests.push(request);
    const answer = httpAnswer(await this.#answerer(request), contentType(request));
    const accepted = answer.answer === 'reply' && answer.status >= 200 && answer.status < 300;
    if (this.#keep && accepted) this.#accepted.push(...request.records);
    return answer;
  }
}

const protobufType = 'application/x-protobuf';
const jsonType = 'application/json';

function contentType(request: ReceivedRequest): string {
  return (request.headers['content-type'] ?? '').split(';')[0]?.trim() ?? '';
}

function decode(request: ReceivedRequest): readonly OtlpRecord[] {
  if (request.method !== 'POST') throw new Error(`${request.method} instead of POST`);
  if (request.path !== '/v1/logs') throw new Error(`${request.path} instead of /v1/logs`);
  const type = contentType(request);
  if (type === protobufType) {
    return recordsOf(decodeProtobuf('ExportLogsServiceRequest', request.body));
  }
  if (type === jsonType) {
    const json: unknown = JSON.parse(request.body.toString('utf8'));
    return recordsOf(decodeOtlpJson('ExportLogsServiceRequest', json));
  }
  throw new Error(`the content type ${type} is none of OTLP/HTTP`);
}

function httpAnswer(answer: OtlpAnswer, type: string): HttpAnswer {
  const headers = { 'content-type': type };
  switch (answer.answer) {
    case 'accept':
      return { answer: 'reply', status: 200, headers, body: type === jsonType ? '{}' : '' };
    case 'partly': {
      const { rejected, message } = answer;
      const partialSuccess = { rejectedLogRecords: String(rejected), errorMessage: message };
      const body =
        type === jsonType
          ? JSON.stringify({ partialSuccess })
          : encodePartialSuccess(rejected, message);
      return { answer: 'reply', status: 200, headers, body };
    }
    case 'reply':
    case 'reset':
    case 'cut':
    case 'hang':
      return answer;
  }
}
