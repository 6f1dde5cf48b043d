// Sends events as OpenTelemetry LogRecords to an OTLP receiver (OTLP specification 1.x): over gRPC
// (otlp/grpc.ts), or by POST /v1/logs through sluice's own HTTP client, because OTLPLogExporter
// hides status, Retry-After and partial success. The request equals that exporter's. Invariants: an
// acknowledged request is never sent again if it was accepted in part; a success counts only if it
// parses as an OTLP response.

import { z } from 'zod';
import {
  compression,
  defineSink,
  duration,
  headers,
  proxy,
  tls,
} from '../../src/contracts/config.ts';
import {
  type Batch,
  ExportError,
  type HttpResponse,
  invariant,
  type Tools,
} from '../../src/contracts/index.ts';
import {
  ClientToken,
  oauth2,
  oauth2Flaw,
  postWithToken,
  withToken,
} from '../shared/client-token.ts';
import { type PartAnswer, type Range, refusalsOf, sendInHalves } from '../shared/halves.ts';
import {
  freeSent,
  type HttpReceiver,
  type Post,
  type PostAnswer,
  pageIsOfSink,
  postUrl,
  receiverFlaw,
} from '../shared/http-post.ts';
import { readExportLogsAnswer, readStatusMessage } from './otlp/answer.ts';

// The specification's bound on a request before compression, which a client must not exceed.
const requestBytesMax = 64 * 1024 * 1024;

const otherNext = 'Check that the sink’s url is an OTLP logs endpoint; nothing was lost.';
const judge = pageIsOfSink(otherNext);

/** `type: otlp`. */
export const otlpSink = defineSink({
  type: 'otlp',
  summary: 'Sends events as OpenTelemetry log records over OTLP, by HTTP or gRPC.',
  fields: {
    url: postUrl().describe(
      'the logs endpoint, e.g. http://collector:4318/v1/logs; over gRPC http://collector:4317, or https:// for TLS',
    ),
    protocol: z
      .enum(['http/protobuf', 'http/json', 'grpc'])
      .optional()
      .describe('as OpenTelemetry names them; http with the encoding of the format unless set'),
    headers: headers().describe('headers of each request, e.g. Authorization'),
    oauth2: oauth2(),
    compression: compression('gzip').describe('compression of request bodies'),
    timeout: duration().prefault('10s').describe('bound on one request'),
    tls: tls().describe('TLS of https:// addresses'),
    proxy: proxy(),
  },
  carries: ['otlp'],
  usualFormat: 'otel',
  sample: {
    to: { what: 'the collector’s logs endpoint', usual: 'http://localhost:4318/v1/logs' },
    lines: (to) => [
      `url: ${JSON.stringify(to)}`,
      'compression: gzip',
      '# headers: { Authorization: "Bearer ${env:OTLP_TOKEN}" }',
    ],
  },
  documents: true,
  inFlightMax: 1,
  batch: { events: 1000, bytes: 2 * 1024 * 1024, waitMs: 1000 },
  format: ({ protocol }, chosen) =>
    protocol === undefined
      ? chosen
      : { ...chosen, encoding: protocol === 'http/json' ? 'json' : 'protobuf' },
  flaw: (settings) =>
    receiverFlaw(settings) ??
    oauth2Flaw(settings) ??
    (settings.protocol === 'grpc' ? grpcFlaw(settings) : null),
  assurance: () => 'answered',

  async open(settings, { name, format, tools }) {
    const document = format.document;
    invariant(document !== undefined, `the format ${format.name} has documents, as otlp needs`);
    const doing = `sending to ${name}`;
    const token = settings.oauth2 ? new ClientToken(settings.oauth2, settings) : null;
    const log = tools.log.with({ sink: name });
    let warned = false;
    const warn = (message: string) => {
      if (!warned)
        log.warn('receiver_warning', 'the receiver accepted the records with a warning', {
          message,
        });
      warned = true;
    };
    const grpc = settings.protocol === 'grpc' ? await overGrpc(settings, doing, tools) : null;
    return {
      send: (batch, signal) =>
        sendInHalves(batch, async (range) => {
          const body = document.join(batch.lines, range);
          if (body.length > requestBytesMax) return overBound(doing, body.length);
          const post: Post = { body, headers: { 'content-type': document.contentType } };
          const context = { doing, tools, signal, explain: readStatusMessage, judge };
          const answer =
            grpc === null
              ? await postWithToken({ receiver: settings, token }, post, context)
              : await withToken({ token, context }, (header) => grpc.export(body, signal, header));
          if (grpc === null) freeSent(body, settings);
          if (answer.outcome !== 'accepted') return answer;
          return resultOf(answer, { batch, range, doing, warn });
        }),
      // A request is a copy.
      isDoneOnceDelivered: true,
      close: async () => grpc?.close(),
    };
  },

  async probe(settings, tools, signal) {
    // A request without a record is a success by the specification; as protobuf it is empty.
    const post = {
      body: new Uint8Array(0),
      headers: { 'content-type': 'application/x-protobuf' },
    };
    const plain = { ...settings, compression: 'none' } as const;
    const doing = 'connecting';
    const context = { doing, tools, signal };
    const token = settings.oauth2 ? new ClientToken(settings.oauth2, settings) : null;
    const grpc = settings.protocol === 'grpc' ? await overGrpc(plain, doing, tools) : null;
    const answer =
      grpc === null
        ? await postWithToken({ receiver: plain, token }, post, { ...context, judge })
        : await withToken({ token, context }, (header) => grpc.export(post.body, signal, header));
    grpc?.close();
    if (answer.outcome === 'accepted') {
      if (readExportLogsAnswer(answer.response) === null)
        throw noLogsAnswer(answer.response, doing);
      return;
    }
    // Some receivers respond to an empty request with 400: the connection and the credentials are
    // right.
    if (answer.outcome === 'too_large') return;
    if (answer.outcome === 'refused' && answer.scope === 'batch') return;
    throw answer.cause;
  },
});

/** Loaded on use: TLS and the library are slow to load. */
async function overGrpc(receiver: HttpReceiver, doing: string, { clock }: Tools) {
  const { GrpcLogs } = await import('./otlp/grpc.ts');
  return new GrpcLogs(receiver, doing, clock);
}

/** A flaw in settings for gRPC; null: none. */
function grpcFlaw({ url, compression, proxy }: HttpReceiver): string | null {
  const { pathname, search } = new URL(url);
  if (pathname !== '/' || search !== '') {
    return 'protocol is grpc, so url has no path: write it as http://collector:4317, or https:// for TLS';
  }
  if (compression === 'zstd') return 'compression is zstd, which gRPC does not know: gzip or none';
  return proxy === undefined
    ? null
    : 'proxy does not go with protocol: grpc; http/protobuf goes through one';
}

function overBound(doing: string, bytes: number): PartAnswer {
  const message = `${doing}: a request of ${bytes} bytes is over OTLP’s bound of ${requestBytesMax}`;
  const next = 'It was sent in halves; a smaller batch.bytes saves the work.';
  const cause = new ExportError('record_refused', message, { next });
  return { outcome: 'too_large', cause, by: 'sink' };
}

/**
 * The meaning of a success. A request accepted in part must not be sent again, and the receiver
 * does not report which records it rejected. So all events of the request become dead letters, with
 * the number of rejected ones: those that arrived may be replayed with the rest under the same uid,
 * whereas dropping the dead letters would lose the rejected ones. A request that is rejected as a
 * whole is refused as any other: it proves nothing about its records.
 */
function resultOf(
  { response, blot }: Extract<PostAnswer, { readonly outcome: 'accepted' }>,
  context: {
    readonly batch: Batch;
    readonly range: Range;
    readonly doing: string;
    readonly warn: (message: string) => void;
  },
): PartAnswer {
  const { batch, range, doing, warn } = context;
  const said = readExportLogsAnswer({ ...response, body: blot(response.body) });
  if (said === null) {
    return { outcome: 'refused', scope: 'sink', cause: noLogsAnswer(response, doing) };
  }
  if (said.rejected === 0) {
    if (said.message !== '') warn(said.message);
    return { outcome: 'delivered' };
  }
  const size = range.to - range.from;
  if (said.rejected >= size) {
    const reason = `${doing}: the receiver rejected ${size} of ${size} records: ${said.message}`;
    const next = 'See the receiver’s log for the reason; the events stay held and are sent again.';
    const cause = new ExportError('record_refused', reason, { next });
    return { outcome: 'refused', scope: 'batch', cause };
  }
  const reason = `the receiver rejected ${said.rejected} of ${size} records; it does not say which, so some may have arrived: ${said.message}`;
  return { outcome: 'partly', refused: refusalsOf(batch, range, reason, 'sink'), again: [] };
}

function noLogsAnswer(response: HttpResponse, doing: string): ExportError {
  const message = `${doing}: the receiver answered ${response.status} with a response that is not OTLP`;
  const details = { status: response.status, content_type: mediaType(response) };
  return new ExportError('sink_refused', message, { next: otherNext, details });
}

function mediaType(response: HttpResponse): string {
  return (response.headers['content-type'] ?? '').replace(/[^\w/+.-].*$/s, '').slice(0, 60);
}
