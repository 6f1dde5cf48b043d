// Sends events to Google SecOps (Chronicle) by its API (https://docs.cloud.google.com/chronicle,
// "Chronicle API ingestion methods"): as UDM events, or as raw logs of a log type. A request is
// accepted or rejected as a whole, and a tenant's request limit is not documented: it is learned.
// Invariant: an event becomes a dead letter only if it was rejected alone.

import { z } from 'zod';
import {
  compression,
  defineSink,
  duration,
  proxy,
  secret,
  tls,
} from '../../src/contracts/config.ts';
import {
  type ExportError,
  type HttpResponse,
  isObject,
  Secret,
  type Tools,
} from '../../src/contracts/index.ts';
import { type PartAnswer, sendInHalves } from '../shared/halves.ts';
import {
  type FailedAnswer,
  type HttpReceiver,
  heldNext,
  type MakeHttpError,
  type PostContext,
  postOnce,
  postUrl,
  receiverFlaw,
  unusableResponse,
} from '../shared/http-post.ts';
import { jsonArrayOf } from '../shared/lines.ts';
import { parsedJson } from '../shared/parsed-json.ts';
import { AccountTokens } from './google-secops/token.ts';
import { rawForm, udmForm } from './google-secops/udm.ts';

const word = () =>
  z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, 'expected letters, digits, ".", "_", ":" and "-"');

const fields = {
  project: word().describe('Google Cloud project of the instance'),
  location: word().describe('its region, such as `eu` or `us`'),
  instance: word().describe('its customer id, a GUID'),
  credentials: secret().describe(
    'JSON key of a service account, as in `${file:/run/secrets/secops.json}`',
  ),
  log_type: z
    .string()
    .regex(/^[A-Z0-9_]+$/, 'expected a log type, such as OCSF')
    .optional()
    .describe('sends raw logs of this type, as `format` writes them; default: UDM events'),
  url: postUrl()
    .optional()
    .describe('address instead of `https://LOCATION-chronicle.googleapis.com`'),
  compression: compression('none'),
  timeout: duration().prefault('60s').describe('bound on one request'),
  tls: tls().describe('TLS of https:// addresses'),
  proxy: proxy(),
};

type SecOpsSettings = z.output<z.ZodObject<typeof fields>>;

/** `type: google_secops`. */
export const googleSecOpsSink = defineSink({
  type: 'google_secops',
  summary: 'Sends events to Google SecOps (Chronicle), as UDM events or raw logs.',
  fields: { ...fields, compression: fields.compression.describe('compression of request bodies') },
  carries: ['json', 'lines'],
  usualFormat: 'json',
  sample: {
    to: { what: 'the customer id of the instance', usual: '00000000-0000-0000-0000-000000000000' },
    lines: (to) => [
      `instance: ${JSON.stringify(to)}`,
      'project: your-project',
      'location: eu',
      'credentials: "${file:/run/secrets/secops.json}"',
    ],
  },
  documents: true,
  inFlightMax: 1,
  batch: { events: 500, bytes: 1_000_000, waitMs: 1000 },
  document: ({ log_type: type }, format) => (type === undefined ? udmForm : rawForm(format)),
  flaw: (settings) => receiverFlaw(receiverOf(settings)),
  assurance: () => 'answered',

  async open(settings, { name, tools }) {
    const service = new Service(settings, `sending to ${name}`, tools);
    return {
      async send(batch, signal) {
        return await sendInHalves(batch, (range) => {
          const items = jsonArrayOf(batch.lines, range);
          return service.post(items, { count: range.to - range.from, signal });
        });
      },
      // A request is a copy.
      isDoneOnceDelivered: true,
      close: async () => {},
    };
  },

  async probe(settings, tools, signal) {
    const service = new Service(settings, 'connecting', tools);
    // Without an event: rejected, but only after the permission check.
    const answer = await service.post(Buffer.from('[]'), { count: 0, signal });
    if ('cause' in answer && answer.outcome !== 'too_large') throw answer.cause;
  },
});

const otherNext = 'Check the sink’s location, url and proxy; nothing was lost.';

class Service {
  readonly #doing: string;
  readonly #tools: Tools;
  readonly #receiver: HttpReceiver;
  readonly #opening: Buffer;
  readonly #tokens: AccountTokens;
  /** Bytes accepted at once; and the size above which only one event is sent at a time. */
  #taken = 0;
  #bytesMax = Number.POSITIVE_INFINITY;

  constructor(settings: SecOpsSettings, doing: string, tools: Tools) {
    this.#doing = doing;
    this.#tools = tools;
    this.#receiver = receiverOf(settings);
    this.#tokens = new AccountTokens(settings.credentials, this.#receiver);
    this.#opening = Buffer.from(
      settings.log_type === undefined ? '{"inlineSource":{"events":' : '{"inlineSource":{"logs":',
    );
  }

  async post(
    items: Uint8Array,
    { count, signal }: { readonly count: number; readonly signal: AbortSignal },
  ): Promise<PartAnswer> {
    const context: PostContext = { doing: this.#doing, tools: this.#tools, signal };
    const body = Buffer.concat([this.#opening, items, Buffer.from('}}')]);
    const tooLarge = (cause: ExportError): FailedAnswer => {
      if (count > 1) this.#bytesMax = Math.max(this.#taken, Math.floor(body.length / 2));
      return { outcome: 'too_large', cause };
    };
    if (count > 1 && body.length > this.#bytesMax && this.#larger !== null) {
      return { outcome: 'too_large', cause: this.#larger };
    }
    const authorization = await this.#tokens.header(context);
    if (!(authorization instanceof Secret)) return authorization;
    const receiver = { ...this.#receiver, headers: { authorization } };
    const post = { body, headers: { 'content-type': 'application/json' } };
    const answer = await postOnce(receiver, post, {
      ...context,
      judge: (response, failure) => this.#judge(response, failure, tooLarge),
    });
    if (answer.outcome !== 'accepted') return answer;
    if (!isObject(parsedJson(answer.response.body))) {
      const about = { doing: this.#doing, whose: 'Google SecOps', next: otherNext };
      return { outcome: 'refused', scope: 'sink', cause: unusableResponse(answer.response, about) };
    }
    this.#taken = Math.max(this.#taken, body.length);
    return { outcome: 'delivered' };
  }

  /** The response to a too large request. */
  #larger: ExportError | null = null;

  #judge(
    { status, body }: HttpResponse,
    failure: MakeHttpError,
    tooLarge: (cause: ExportError) => FailedAnswer,
  ): FailedAnswer | undefined {
    const said = parsedJson(body);
    const error = isObject(said) && isObject(said.error) ? said.error : null;
    if (status === 401) {
      this.#tokens.drop();
      const next = `A token was refused; requesting another one. ${heldNext}`;
      return { outcome: 'retry', cause: failure('sink_refused', next) };
    }
    if (status === 403) {
      const next =
        'Give the service account the role Chronicle API Editor (chronicle.events.import, chronicle.logs.import) on the instance, and check project, location and instance; nothing was lost.';
      return { outcome: 'refused', scope: 'sink', cause: failure('sink_refused', next) };
    }
    const isSize = status === 413 || /size|too large|exceed/i.test(String(error?.message ?? ''));
    if (isSize && (status === 413 || status === 400)) {
      const next = 'It was sent in halves; a smaller batch.bytes saves the second request.';
      this.#larger = failure('record_refused', next);
      return tooLarge(this.#larger);
    }
    if (status !== 400) return undefined;
    if (error?.status !== 'INVALID_ARGUMENT') {
      return { outcome: 'refused', scope: 'sink', cause: failure('sink_refused', otherNext) };
    }
    // The response does not name the event: sending halves finds it.
    const next = 'It is kept as a dead letter; see there why, then retry it.';
    return { outcome: 'too_large', cause: failure('record_refused', next) };
  }
}

function receiverOf(settings: SecOpsSettings): HttpReceiver {
  const { url, project, location, instance, log_type: type, compression, timeout } = settings;
  const root = (url ?? `https://${location}-chronicle.googleapis.com`).replace(/\/+$/, '');
  const at = `${root}/v1/projects/${project}/locations/${location}/instances/${instance}`;
  return {
    ...{ compression, timeout, tls: settings.tls, proxy: settings.proxy },
    url: type === undefined ? `${at}/events:import` : `${at}/logTypes/${type}/logs:import`,
  };
}
