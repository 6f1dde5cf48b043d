// Sends events to Datadog's log intake (https://docs.datadoghq.com/api/latest/logs, "Send logs").
// The intake does two things silently, with a 202: it cuts a log above 1 MB, and replaces a time
// more than 18 hours ago by the arrival time. Invariant: an event that would be cut is not sent and
// becomes a dead letter with that reason; late events are reported to the operator.

import { z } from 'zod';
import {
  compression,
  defineSink,
  duration,
  proxy,
  secret,
  tls,
} from '../../src/contracts/config.ts';
import { type Batch, ExportError, isObject, Secret } from '../../src/contracts/index.ts';
import { patternFlaw } from '../shared/destination-names.ts';
import { type PartAnswer, type Range, sendInHalves } from '../shared/halves.ts';
import {
  freeSent,
  type HttpReceiver,
  type PostContext,
  postOnce,
  postUrl,
  receiverFlaw,
  unusableResponse,
} from '../shared/http-post.ts';
import { jsonArrayOf } from '../shared/lines.ts';
import { parsedJson } from '../shared/parsed-json.ts';
import { datadogForm, isRestamped } from './datadog/log.ts';

/** The intake's limits: of a log, which it cuts; and of a request, uncompressed. */
const logBytesMax = 1_000_000;
const requestBytesMax = 5_000_000;

const name = () => z.string().min(1);
const sites = 'such as datadoghq.com, us3.datadoghq.com, datadoghq.eu or ap1.datadoghq.com';

const fields = {
  api_key: secret().describe('API key'),
  site: z
    .string()
    .regex(/^[a-z0-9.-]+$/, `expected a site, ${sites}`)
    .default('datadoghq.com')
    .describe(`site of the organisation, ${sites}`),
  url: postUrl().optional().describe('address instead of the site’s intake, such as a proxy’s'),
  service: name()
    .optional()
    .describe(
      '`service`, with `{company}` and `{source}` (docs/destinations.md); default: the source of the config',
    ),
  ddsource: name().default('sluice').describe('`ddsource`, by which Datadog chooses a pipeline'),
  ddtags: name().optional().describe('`ddtags`, such as `env:prod,team:security`'),
  hostname: name().optional().describe('`hostname`'),
  compression: compression('gzip').describe('compression of request bodies'),
  timeout: duration().prefault('30s').describe('bound on one request'),
  tls: tls().describe('TLS of https:// addresses'),
  proxy: proxy(),
};

type DatadogSettings = z.output<z.ZodObject<typeof fields>>;

/** `type: datadog`. */
export const datadogSink = defineSink({
  type: 'datadog',
  summary: 'Sends events to Datadog as logs.',
  fields,
  carries: ['json', 'lines'],
  usualFormat: 'json',
  sample: {
    to: { what: 'the site', usual: 'datadoghq.com' },
    lines: (to) => [`site: ${JSON.stringify(to)}`, 'api_key: "${env:DD_API_KEY}"'],
  },
  documents: true,
  inFlightMax: 1,
  batch: { events: 1000, bytes: 4 * 1024 * 1024, waitMs: 1000 },
  document: datadogForm,
  flaw: (settings) =>
    patternFlaw('service', settings.service ?? '') ?? receiverFlaw(receiverOf(settings)),
  assurance: () => 'answered',
  advice: () => [
    'Datadog replaces the time of a log older than 18 hours by the time of arrival, which affects a first run and a backfill; the event keeps its own time',
  ],

  async open(settings, { name, tools }) {
    const receiver = receiverOf(settings);
    const doing = `sending to ${name}`;
    let late = 0;
    return {
      async send(batch, signal) {
        const answer = await sendInHalves(batch, async (range) => {
          const over = overBound(batch, range, doing);
          if (over !== null) return over;
          const body = jsonArrayOf(batch.lines, range);
          const post = { body, headers: { 'content-type': 'application/json' } };
          const said = await postOnce(receiver, post, {
            ...{ doing, tools, signal, judge },
          });
          freeSent(body, receiver);
          if (said.outcome !== 'accepted') return said;
          const { response } = said;
          if (response.status !== 202 || !isObject(parsedJson(response.body))) {
            const cause = unusableResponse(response, {
              doing,
              whose: 'Datadog’s intake',
              next: otherNext,
            });
            return { outcome: 'refused', scope: 'sink', cause };
          }
          return { outcome: 'delivered' };
        });
        const now = tools.clock.now();
        const stamped = batch.events.filter((event) => isRestamped(event, now)).length;
        if (stamped > 0 && late === 0)
          tools.log.warn('event_times_replaced', lateWarning, { events: stamped });
        late = stamped;
        return answer;
      },
      notice: () =>
        late === 0
          ? null
          : {
              what: lateWarning,
              next: 'Search them by the time in the event; create a pipeline with a date remapper for recent events.',
            },
      // A request is a copy.
      isDoneOnceDelivered: true,
      close: async () => {},
    };
  },

  async probe(settings, tools, signal) {
    // An array without a log: the response to a valid key is an acceptance, or that the array is
    // empty.
    const post = { body: Buffer.from('[]'), headers: { 'content-type': 'application/json' } };
    const doing = 'connecting';
    const plain = { ...receiverOf(settings), compression: 'none' } as const;
    const answer = await postOnce(plain, post, { doing, tools, signal, judge });
    if (answer.outcome === 'refused' && answer.scope === 'batch') return;
    if (answer.outcome !== 'accepted') throw answer.cause;
    if (answer.response.status === 202) return;
    throw unusableResponse(answer.response, { doing, whose: 'Datadog’s intake', next: otherNext });
  },
});

const lateWarning =
  'events are more than 18 hours old; Datadog replaces their time by the time of arrival';
const otherNext = 'Check the sink’s site, url and proxy; nothing was lost.';

/** The intake's own 400 is JSON; any other is not about an event. */
const judge: NonNullable<PostContext['judge']> = ({ status, body }, failure) => {
  if (status !== 400 || isObject(parsedJson(body))) return undefined;
  return { outcome: 'refused', scope: 'sink', cause: failure('sink_refused', otherNext) };
};

function receiverOf(settings: DatadogSettings): HttpReceiver {
  const { url, site, api_key: key, compression, timeout, tls, proxy } = settings;
  const root = (url ?? `https://http-intake.logs.${site}`).replace(/\/+$/, '');
  return {
    ...{ compression, timeout, tls, proxy },
    url: `${root}/api/v2/logs`,
    headers: { 'dd-api-key': new Secret(() => key.reveal()) },
  };
}

/** Events that the intake would cut or reject are not sent. */
function overBound({ lines }: Batch, { from, to }: Range, doing: string): PartAnswer | null {
  let bytes = 2;
  for (let i = from; i < to; i++) {
    const length = (lines.ends[i] ?? 0) - (lines.starts[i] ?? 0);
    if (length > logBytesMax) {
      const message = `${doing}: a log of ${length} bytes, of which Datadog keeps ${logBytesMax}`;
      const next = 'Send it to another sink, or remove its long fields (redact); it is kept whole.';
      const cause = new ExportError('record_refused', message, { next });
      return { outcome: 'spoiled', at: i - from, cause, by: 'sink' };
    }
    bytes += length + 1;
  }
  if (bytes <= requestBytesMax) return null;
  const message = `${doing}: a request of ${bytes} bytes is over Datadog’s bound`;
  const next = 'It was sent in halves; a smaller batch.bytes saves the work.';
  const cause = new ExportError('record_refused', message, { next });
  return { outcome: 'too_large', cause, by: 'sink' };
}
