// Writes events to Elasticsearch, OpenSearch and other servers with `_bulk`
// (https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk). Each event is
// created under its uid in an index that depends only on the event, so that a repeated event is a
// conflict and exists once. Of several addresses one is used until it fails, then the next.
// Invariant: only the cluster's response about an event moves the position past it
// (elasticsearch/bulk-answer.ts).

import { z } from 'zod';
import {
  compression,
  defineSink,
  duration,
  headers as moreHeaders,
  proxy,
  secret,
  tls,
} from '../../src/contracts/config.ts';
import {
  type Batch,
  type ErrorCode,
  type Event,
  ExportError,
  invariant,
  type Refusal,
  type Uid,
} from '../../src/contracts/index.ts';
import { patternFlaw } from '../shared/destination-names.ts';
import { type PartAnswer, type Range, sendInHalves } from '../shared/halves.ts';
import { isCopied, type PostAnswer, postOnce, postUrl, receiverFlaw } from '../shared/http-post.ts';
import { linesOf } from '../shared/lines.ts';
import { plainLine } from '../shared/receiver-words.ts';
import { type ItemAnswer, readBulkAnswer } from './elasticsearch/bulk-answer.ts';
import { bulkForm, indexNames, isDaily } from './elasticsearch/bulk-record.ts';
import {
  authFlaw,
  bulkPath,
  foreignResponse,
  judgeResponse,
  receiversOf,
} from './elasticsearch/cluster.ts';
import { setUp } from './elasticsearch/setup.ts';

const headers = { 'content-type': 'application/x-ndjson' };

const fields = {
  url: z
    .union([postUrl(), z.array(postUrl()).min(1)])
    .describe('address of the cluster, or of several of its nodes'),
  auth: z
    .strictObject({
      api_key: secret().optional().describe('API key, as Elasticsearch encodes it (base64)'),
      username: z.string().min(1).optional().describe('user of HTTP Basic'),
      password: secret().optional().describe('password of HTTP Basic'),
      sigv4: z
        .strictObject({
          region: z.string().min(1).describe('region of the domain or collection'),
          service: z
            .enum(['es', 'aoss'])
            .default('es')
            .describe('`es`: a domain; `aoss`: a serverless collection'),
        })
        .optional()
        .describe('signs for Amazon OpenSearch Service, with the credential that AWS’s tools find'),
    })
    .optional()
    .describe('credential: api_key, or username and password, or sigv4'),
  index: z
    .string()
    .max(128)
    .regex(
      /^(?![-_+.])(?:[a-z0-9._-]|\{class\}|\{date\}|\{company\}|\{source\})+$/,
      'expected lower-case letters, digits, ".", "_" and "-", with {class}, {date}, {company} and {source}',
    )
    .default('sluice-{class}-{date}')
    .describe(
      'index or data stream; `{class}`: name of the OCSF class, `{date}`: day of the event’s time (UTC), `undated` where that is before 2000 or after tomorrow; `{company}`, `{source}`: docs/destinations.md',
    ),
  op: z
    .enum(['create', 'index'])
    .default('create')
    .describe(
      '`create`: a repeat is skipped; `index`: a repeat overwrites, which data streams refuse',
    ),
  pipeline: z.string().min(1).optional().describe('ingest pipeline that events go through'),
  dashboards: z
    .strictObject({
      url: postUrl().describe(
        'address of Kibana or OpenSearch Dashboards, with the path of a space such as /s/security',
      ),
      file: z
        .string()
        .min(1)
        .describe('NDJSON export, such as deploy/siem/elastic/dashboards.kibana.ndjson'),
    })
    .optional()
    .describe(
      'dashboards that `check --setup` imports, with the same credential; objects of the same ids are replaced',
    ),
  headers: moreHeaders().describe('headers of each request'),
  compression: compression('gzip').describe('compression of request bodies'),
  timeout: duration().prefault('60s').describe('bound on one request'),
  tls: tls().describe('TLS of https:// addresses'),
  proxy: proxy(),
};

/** `type: elasticsearch`. */
export const elasticsearchSink = defineSink({
  type: 'elasticsearch',
  summary: 'Writes events to Elasticsearch or OpenSearch, each under its uid.',
  fields,
  carries: ['json'],
  usualFormat: 'ecs',
  sample: {
    to: { what: 'the address of the cluster', usual: 'https://elastic.example:9200' },
    lines: (to) => [
      `url: ${JSON.stringify(to)}`,
      'auth: { api_key: "${env:ELASTIC_API_KEY}" }',
      '# index: "sluice-{class}-{date}"',
    ],
  },
  documents: true,
  inFlightMax: 1,
  batch: { events: 1000, bytes: 5 * 1024 * 1024, waitMs: 1000 },
  document: bulkForm,
  flaw: (settings) =>
    patternFlaw('index', settings.index) ??
    authFlaw(settings) ??
    receiversOf(settings, bulkPath(settings)).map(receiverFlaw).find(Boolean) ??
    null,
  assurance: ({ index }) => (isDaily(index) ? 'once' : 'answered'),
  advice: ({ index }) =>
    isDaily(index)
      ? []
      : [
          `index ${index} has no {date}: in a data stream or an alias that rolls over, an event is there once between two rollovers; a repeat after a rollover is there again, with the same _id`,
        ],

  async open(settings, { name, tools }) {
    const nodes = receiversOf(settings, bulkPath(settings));
    const doing = `sending to ${name}`;
    const indexOf = indexNames(settings.index);
    let failures = 0;
    return {
      destinationOf: indexOf,
      isDoneOnceDelivered: isCopied(settings),
      send: (batch, signal) =>
        sendInHalves(batch, async (range) => {
          const receiver = nodes[failures % nodes.length];
          invariant(receiver !== undefined, 'there is an address');
          const post = { body: linesOf(batch.lines, range), headers };
          const answer = await postOnce(receiver, post, {
            doing,
            tools,
            signal,
            judge: judgeResponse,
          });
          const meaning =
            answer.outcome === 'accepted'
              ? resultOf(answer, { batch, range, doing, indexOf })
              : answer;
          if (answer.outcome !== 'retry' && answer.outcome !== 'refused') return meaning;
          if (answer.outcome === 'refused' && answer.scope === 'batch') return meaning;
          failures += 1;
          // Another node may respond: it is tried at once, and the wait comes after the last one.
          const isGone = answer.cause.code === 'sink_unreachable' && failures % nodes.length !== 0;
          return isGone ? { outcome: 'retry', cause: answer.cause, afterMs: 0 } : answer;
        }),
      close: async () => {},
    };
  },

  async probe(settings, tools, signal) {
    // A request without an action: the response to an authorised client is that it is empty.
    const post = { body: new Uint8Array(0), headers };
    for (const receiver of receiversOf(settings, bulkPath(settings))) {
      const plain = { ...receiver, compression: 'none' } as const;
      const answer = await postOnce(plain, post, {
        doing: 'connecting',
        tools,
        signal,
        judge: judgeResponse,
      });
      const isEmpty = answer.outcome === 'refused' && answer.scope === 'batch';
      if (isEmpty) continue;
      if (answer.outcome !== 'accepted') throw answer.cause;
      if (readBulkAnswer(answer.response.body, []) === null) {
        throw foreignResponse(answer.response, 'connecting');
      }
    }
  },

  setup: setUp,
});

/** The results for the events of an accepted request. */
function resultOf(
  { response, blot }: Extract<PostAnswer, { readonly outcome: 'accepted' }>,
  context: {
    readonly batch: Batch;
    readonly range: Range;
    readonly doing: string;
    readonly indexOf: (event: Event) => string;
  },
): PartAnswer {
  const { batch, range, doing, indexOf } = context;
  const events = batch.events.slice(range.from, range.to);
  const uids = events.map(({ uid }) => uid);
  const answers = readBulkAnswer(response.body, uids);
  if (answers === null) {
    return { outcome: 'refused', scope: 'sink', cause: foreignResponse(response, doing) };
  }
  // A missing permission or shard of one index does not block other indexes.
  const isAnyTaken = answers.some(({ is }) => is === 'taken');
  const refused: Refusal[] = [];
  const again: Uid[] = [];
  const reported = ({ status, said }: ItemAnswer) =>
    `${status} ${plainLine(Buffer.from(blot(Buffer.from(said))).toString())}`;
  for (const [i, answer] of answers.entries()) {
    const event = events[i];
    if (event === undefined || answer.is === 'taken') continue;
    const { uid } = event;
    const isRefused = answer.is === 'refused' || (answer.isOfIndex && isAnyTaken);
    if (!isRefused) again.push(uid);
    else if (!answer.isOfIndex) refused.push({ uid, reason: reported(answer) });
    else {
      const reason = `index ${indexOf(event)}: ${reported(answer)}`;
      refused.push({ uid, reason, by: 'destination' });
    }
  }
  const [first] = answers;
  if (first === undefined || refused.length + again.length === 0) return { outcome: 'delivered' };
  const failure = (code: ErrorCode, next: string) =>
    new ExportError(code, `${doing}: the cluster answered ${reported(first)}`, { next });
  if (again.length === uids.length) {
    if (first.is === 'denied') {
      const next =
        'Give the credential the right to write and create these indices; nothing was lost.';
      return { outcome: 'refused', scope: 'sink', cause: failure('sink_refused', next) };
    }
    const code = first.status === 429 ? 'sink_throttled' : 'sink_unreachable';
    return {
      outcome: 'retry',
      cause: failure(
        code,
        'Look at the cluster’s health. Nothing was lost: the events stay held and are sent again by themselves.',
      ),
    };
  }
  return { outcome: 'partly', refused, again };
}
