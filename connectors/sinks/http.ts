// Posts events to any HTTP receiver that accepts lines of text or a JSON array. One batch is one
// request; 2xx is an acknowledgement, unless the body is an HTML page. Each request carries an
// Idempotency-Key (draft-ietf-httpapi-idempotency-key-header), the same on every attempt at the
// same events, so that a receiver that supports it stores a batch once even if its response was
// lost. shared/http-post.ts classifies the response.

import { hash } from 'node:crypto';
import { z } from 'zod';
import {
  compression,
  defineSink,
  duration,
  headers,
  proxy,
  tls,
} from '../../src/contracts/config.ts';
import { type Batch, ExportError, Secret } from '../../src/contracts/index.ts';
import {
  authorised,
  ClientToken,
  oauth2,
  oauth2Flaw,
  postWithToken,
} from '../shared/client-token.ts';
import { type Range, sendInHalves } from '../shared/halves.ts';
import {
  credentialAdvice,
  getOnce,
  isCopied,
  isPage,
  postUrl,
  receiverFlaw,
  unusableResponse,
} from '../shared/http-post.ts';
import { lineAt, linesOf } from '../shared/lines.ts';

const keyLength = 32;
const pageNext =
  'The response is an HTML page, such as a login: check the sink’s url and any proxy in between. Nothing was lost.';

/** `type: http`. */
export const httpSink = defineSink({
  type: 'http',
  summary: 'Posts batches of events to an HTTP receiver, as lines or as a JSON array.',
  fields: {
    url: postUrl().describe('where to post'),
    headers: headers().describe('headers of each request, e.g. Authorization'),
    oauth2: oauth2(),
    body: z
      .enum(['lines', 'array'])
      .default('lines')
      .describe('lines: one event a line (NDJSON); array: one JSON array a request'),
    compression: compression('none').describe('compression of request bodies'),
    timeout: duration().prefault('30s').describe('bound on one request'),
    tls: tls().describe('TLS of https:// addresses'),
    proxy: proxy(),
  },
  carries: ['lines', 'json', 'gelf'],
  usualFormat: 'json',
  sample: {
    to: { what: 'the URL to post to', usual: 'https://ingest.example/events' },
    lines: (to) => [
      `url: ${JSON.stringify(to)}`,
      'format: json # one OCSF event a line',
      '# headers: { Authorization: "Bearer ${env:INGEST_TOKEN}" }',
    ],
  },
  inFlightMax: 1,
  batch: { events: 1000, bytes: 1024 * 1024, waitMs: 1000 },
  flaw: (settings) => receiverFlaw(settings) ?? oauth2Flaw(settings),
  assurance: () => 'answered',

  async open(settings, { name, format, tools }) {
    const isJson = format.contentType.startsWith('application/json');
    const doing = `sending to ${name}`;
    const token = settings.oauth2 ? new ClientToken(settings.oauth2, settings) : null;
    const to = { receiver: settings, token };
    const contentType =
      settings.body === 'array'
        ? 'application/json'
        : isJson
          ? 'application/x-ndjson'
          : 'text/plain; charset=utf-8';
    return {
      isDoneOnceDelivered: settings.body === 'array' || isCopied(settings),
      send: (batch, signal) =>
        sendInHalves(batch, async (range) => {
          const body =
            settings.body === 'array' ? arrayOf(batch, range, isJson) : linesOf(batch.lines, range);
          const headers = {
            'content-type': contentType,
            'idempotency-key': idempotencyKey(batch, range),
          };
          const answer = await postWithToken(to, { body, headers }, { doing, tools, signal });
          if (answer.outcome !== 'accepted') return answer;
          if (!isPage(answer.response)) return { outcome: 'delivered' };
          const cause = unusableResponse(answer.response, {
            doing,
            whose: 'a receiver',
            next: pageNext,
          });
          return { outcome: 'refused', scope: 'sink', cause };
        }),
      close: async () => {},
    };
  },

  async probe(settings, tools, signal) {
    // The effect of an empty POST depends on the receiver; a GET leaves nothing behind, and any
    // response except 401, 403 or "not now" shows that the connection, TLS and the credentials are
    // right.
    const doing = 'connecting';
    const context = { doing, tools, signal };
    const token = settings.oauth2 ? new ClientToken(settings.oauth2, settings) : null;
    const header = token && (await token.header(context));
    if (header !== null && !(header instanceof Secret)) throw header.cause;
    const receiver = header === null ? settings : authorised(settings, header);
    const { status } = await getOnce(receiver, context);
    if (status !== 401 && status !== 403 && status !== 407 && status < 500) return;
    const code = status < 500 ? 'sink_refused' : 'sink_unreachable';
    throw new ExportError(code, `${doing}: ${new URL(settings.url).origin} answered ${status}`, {
      next:
        status < 500
          ? credentialAdvice(status, settings)
          : 'Check the receiver’s log and its back-end services.',
      details: { status },
    });
  },
});

// Computed from the events themselves: a part of a batch is a request of its own, and the same
// events have the same key as the engine's later batch. The offset is included, so that a repeated
// dead letter is not mistaken for its rejected request.
function idempotencyKey(batch: Batch, range: Range): string {
  const events = batch.events.slice(range.from, range.to);
  const identity = events.map(({ offset, uid }) => `${offset}:${uid}`).join();
  return hash('sha256', identity, 'hex').slice(0, keyLength);
}

// Text formats become JSON strings, so that the array is JSON whatever its elements contain.
function arrayOf(batch: Batch, range: Range, isJson: boolean): Uint8Array {
  const elements: Uint8Array[] = [];
  for (let i = range.from; i < range.to; i++) {
    const line = lineAt(batch.lines, i);
    elements.push(Buffer.from(i === range.from ? '[' : ','));
    elements.push(isJson ? line : Buffer.from(JSON.stringify(Buffer.from(line).toString('utf8'))));
  }
  return Buffer.concat([...elements, Buffer.from(']')]);
}
