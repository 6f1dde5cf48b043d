// Sends events to Splunk's HTTP Event Collector (HEC), each with its uid as an indexed field. With
// `ack: required` an event is delivered when an indexer confirms that it is written (indexer
// acknowledgement), otherwise when an indexer has received it; Splunk does not deduplicate, so a
// repeated event is stored twice under one `sluice_uid`. Invariant: a token without acknowledgement
// stops the sink if acknowledgement is required (splunk-hec/collector.ts has the others).

import { randomUUID } from 'node:crypto';
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
import { type Event, Secret } from '../../src/contracts/index.ts';
import { isPerPage, patternFlaw } from '../shared/destination-names.ts';
import { type HttpReceiver, postUrl, receiverFlaw } from '../shared/http-post.ts';
import { noCollector, readAcks } from './splunk-hec/answer.ts';
import { HecConnection } from './splunk-hec/collector.ts';
import { Cookies } from './splunk-hec/cookies.ts';
import { envelopeForm, indexesIn, splunkIndexes } from './splunk-hec/envelope.ts';
import { requestCollector } from './splunk-hec/wire.ts';

const name = () => z.string().min(1);
const indexName = () =>
  z
    .string()
    .regex(
      /^(?![-_])(?:[a-z0-9_-]|\{company\}|\{source\})+$/,
      'expected lower-case letters, digits, "_" and "-", with {company} and {source}',
    );

const fields = {
  url: postUrl().describe('address of the collector, or of its load balancer'),
  token: secret().describe('token of the HTTP Event Collector'),
  ack: z
    .enum(['required', 'off'])
    .default('required')
    .describe(
      '`required`: delivered when an indexer has confirmed the write, which needs a token with indexer acknowledgement; `off`: delivered when an indexer has received the event',
    ),
  ack_timeout: duration()
    .prefault('5m')
    .describe('events that an indexer has not acknowledged in this time are sent again'),
  index: z
    .union([indexName(), z.record(name(), indexName())])
    .optional()
    .describe(
      'index, or one per source of the config, with `{company}` and `{source}` (docs/destinations.md); default: the token’s',
    ),
  sourcetype: z
    .union([name(), z.record(name(), name())])
    .optional()
    .describe(
      'source type, or one per source of the config; default: `sluice:` and the format, such as `sluice:ocsf`',
    ),
  source: name().optional().describe('Splunk’s field `source`; default: the stream'),
  host: name().optional().describe('Splunk’s field `host`; default: the collector’s'),
  channel: z
    .guid()
    .optional()
    .describe('channel, a GUID; default (recommended): a random one per connection'),
  headers: moreHeaders().describe('further headers of each request'),
  compression: compression('gzip').describe('compression of request bodies'),
  timeout: duration().prefault('60s').describe('bound on one request'),
  tls: tls().describe('TLS of https:// addresses'),
  proxy: proxy(),
};

type HecSettings = z.output<z.ZodObject<typeof fields>>;

/** `type: splunk_hec`. */
export const splunkHecSink = defineSink({
  type: 'splunk_hec',
  summary: 'Sends events to Splunk’s HTTP Event Collector, with indexer acknowledgement.',
  fields,
  carries: ['json', 'lines'],
  usualFormat: 'json',
  sample: {
    to: { what: 'the address of the collector', usual: 'https://splunk.example:8088' },
    lines: (to) => [
      `url: ${JSON.stringify(to)}`,
      'token: "${env:SPLUNK_HEC_TOKEN}"',
      'ack: required # off for Splunk Cloud, which does not acknowledge',
      '# index: security',
    ],
  },
  documents: true,
  // An indexer acknowledges after seconds as a rule: the batches sent in that time must fit. A
  // batch is in memory only until it is posted (`ready`).
  inFlightMax: 256,
  batch: { events: 1000, bytes: 1024 * 1024, waitMs: 1000 },
  document: envelopeForm,
  flaw: (settings) =>
    indexesIn(settings.index)
      .map((index) => patternFlaw('index', index))
      .find(Boolean) ?? receiverFlaw(settings),
  assurance: () => 'answered',
  advice: ({ ack, channel }) => [
    ...(ack === 'required'
      ? []
      : ['ack: off: events that an indexer has received and not yet written are lost if it fails']),
    ...(channel === undefined
      ? []
      : ['channel is set: behind a load balancer, and for a second sluice, leave it out']),
  ],

  async open(settings, { name, tools }) {
    const hasIndexes =
      typeof settings.index === 'object' || indexesIn(settings.index).some(isPerPage);
    const indexOf = splunkIndexes(settings.index);
    const collector = new HecConnection({
      hasIndexes,
      events: receiverAt(settings, 'event'),
      acks: { ...receiverAt(settings, 'ack'), compression: 'none' },
      ack: settings.ack,
      ackTimeoutMs: settings.ack_timeout,
      channel: settings.channel ?? null,
      indexOf: (event) => {
        const index = event && indexOf(event);
        return index === undefined ? 'the token’s index' : `the index ${index}`;
      },
      doing: `sending to ${name}`,
      tools,
    });
    return {
      ...(hasIndexes && {
        destinationOf: (event: Event) => indexOf(event) ?? '',
      }),
      send: (batch, signal, freeLines) => collector.send(batch, signal, freeLines),
      ready: (signal) => collector.ready(signal),
      notice: () => collector.notice,
      close: () => collector.close(),
    };
  },

  async probe(settings, tools, signal) {
    const isRequired = settings.ack === 'required';
    // Without an event: the response to a valid token is that there is none.
    const receiver = receiverAt(settings, isRequired ? 'ack' : 'event');
    const doing = 'connecting';
    const { answer, said } = await requestCollector({
      ...{ receiver: { ...receiver, compression: 'none' }, doing, tools, signal },
      body: Buffer.from(isRequired ? '{"acks":[0]}' : ''),
      channel: settings.channel ?? randomUUID(),
      cookies: new Cookies(),
    });
    if (!isRequired && said?.code === 5) return;
    if (answer.outcome !== 'accepted') throw answer.cause;
    if (isRequired && readAcks(answer.response.body, []) !== null) return;
    throw noCollector(answer.response, doing);
  },
});

function receiverAt(settings: HecSettings, path: 'event' | 'ack'): HttpReceiver {
  const { url, token, headers, compression, timeout, tls, proxy } = settings;
  const root = url.replace(/\/+(services\/collector(\/event)?\/*)?$/, '');
  const authorization = new Secret(() => `Splunk ${token.reveal()}`);
  return {
    ...{ compression, timeout, tls, proxy },
    url: `${root}/services/collector/${path}`,
    headers: { authorization, ...headers },
  };
}
