// Writes events to a table of Microsoft Sentinel by Azure Monitor's Logs Ingestion API
// (https://learn.microsoft.com/azure/azure-monitor/logs/logs-ingestion-api-overview): a JSON array
// of rows (sentinel/rows.ts) to a data collection rule, with a token (sentinel/token.ts). The
// service responds 204 also for data that it then drops or cuts. Invariants: no such data is sent:
// no column over 64 KB, no call over 1 MB, no column that the documented rule lacks; only 204 is an
// acknowledgement.

import { z } from 'zod';
import { compression, defineSink, duration, proxy, tls } from '../../src/contracts/config.ts';
import {
  type Batch,
  type Delivery,
  type ErrorCode,
  ExportError,
  type HttpResponse,
  isObject,
  type Refusal,
  Secret,
  type Tools,
} from '../../src/contracts/index.ts';
import { type PartAnswer, type Range, sendInHalves } from '../shared/halves.ts';
import { freeSent, type PostAnswer, postOnce, postUrl, receiverFlaw } from '../shared/http-post.ts';
import { onlyEvents } from '../shared/known-events.ts';
import { lineAt } from '../shared/lines.ts';
import { plainLine, receiverWords } from '../shared/receiver-words.ts';
import { azureAuth, identityOf, knownIdentity } from './sentinel/identity.ts';
import { columns, longColumn, rowForm, rowsOf } from './sentinel/rows.ts';
import { inspectRule } from './sentinel/rule.ts';
import { AzureToken, cloudOf } from './sentinel/token.ts';

// A call may have 1 MB, compressed and uncompressed alike.
const callBytesMax = 1_000_000;

const fields = {
  endpoint: postUrl().describe(
    'logs ingestion endpoint of the data collection rule or of its data collection endpoint',
  ),
  dcr_immutable_id: z
    .string()
    .regex(/^dcr-[0-9a-f]{32}$/, 'expected the rule’s immutableId, dcr- and 32 hexadecimal digits')
    .describe('immutableId of the data collection rule'),
  stream_name: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/, 'expected the name of a stream such as Custom-Sluice')
    .describe('stream of the rule, such as Custom-Sluice'),
  auth: azureAuth(),
  authority: postUrl()
    .default('https://login.microsoftonline.com')
    .describe(
      'authority that issues the token, one per cloud: https://login.microsoftonline.us for US Government, https://login.chinacloudapi.cn for China',
    ),
  resource_manager: postUrl()
    .optional()
    .describe(
      'Azure Resource Manager, where `check --connect` reads the rule if permitted; default: that of the cloud',
    ),
  oversize: z
    .enum(['dead_letter', 'split'])
    .default('dead_letter')
    .describe(
      'an event with a column over 64 KB, which Azure would cut: kept as a dead letter, or split into rows with Part and Parts',
    ),
  compression: compression('gzip').describe('compression of request bodies; Azure knows gzip'),
  timeout: duration().prefault('30s').describe('bound on one request'),
  tls: tls().describe('TLS of https:// addresses'),
  proxy: proxy(),
};

type SentinelSettings = z.output<z.ZodObject<typeof fields>>;

/** `type: sentinel`. */
export const sentinelSink = defineSink({
  type: 'sentinel',
  summary: 'Writes events to a table of Microsoft Sentinel by the Logs Ingestion API.',
  fields,
  carries: ['json'],
  usualFormat: 'json',
  sample: {
    to: {
      what: 'the logs ingestion endpoint',
      usual: 'https://sluice-abcd.westeurope-1.ingest.monitor.azure.com',
    },
    lines: (to) => [
      `endpoint: ${JSON.stringify(to)}`,
      'dcr_immutable_id: dcr-00000000000000000000000000000000 # the rule’s immutableId',
      'stream_name: Custom-Sluice',
      'auth: { tenant_id: "${env:AZURE_TENANT_ID}", client_id: "${env:AZURE_CLIENT_ID}", client_secret: "${env:AZURE_CLIENT_SECRET}" }',
    ],
  },
  documents: true,
  inFlightMax: 1,
  batch: { events: 1000, bytes: 900_000, waitMs: 1000 },
  document: ({ oversize }, format) => rowForm(format, oversize),
  flaw: (settings) =>
    settings.compression === 'zstd'
      ? 'compression is zstd, which Azure does not know: gzip or none'
      : identityOf(settings) === null
        ? 'auth needs tenant_id, client_id and client_secret, or managed_identity'
        : receiverFlaw({ ...settings, url: settings.endpoint }),
  assurance: () => 'answered',
  advice: ({ stream_name }) => [
    `Azure drops columns that the rule does not declare, and answers as if it had them: stream ${stream_name} must declare ${Object.entries(
      columns,
    )
      .map(([name, type]) => `${name} (${type})`)
      .join(', ')}`,
  ],

  async open(settings, { name, tools }) {
    const doing = `sending to ${name}`;
    const service = new IngestionService(settings, tools, doing);
    return {
      async send(batch, signal) {
        const long = settings.oversize === 'split' ? [] : cutIn(batch);
        const left = withoutRefused(batch, long);
        if (left.events.length === 0) return { outcome: 'partly', refused: long, again: [] };
        const answer = await sendInHalves(left, (range) => service.send(left, range, signal));
        return withRefused(answer, long, left);
      },
      // A request is a copy.
      isDoneOnceDelivered: true,
      close: async () => {},
    };
  },

  async probe(settings, tools, signal) {
    // A call without a row leaves nothing behind.
    const service = new IngestionService(settings, tools, 'connecting');
    const answer = await service.post(Buffer.from('[]'), signal);
    if (answer.outcome === 'delivered' || answer.outcome === 'partly') return;
    // Authorised: an empty array may be rejected as too little.
    if (answer.outcome === 'refused' && answer.scope === 'batch') return;
    throw answer.cause;
  },

  async inspect(settings, tools, signal) {
    const {
      authority,
      dcr_immutable_id: rule,
      stream_name: stream,
      timeout,
      tls,
      proxy,
    } = settings;
    const { manager: audience } = cloudOf(authority);
    const doing = 'reading the rule';
    const token = new AzureToken(knownIdentity(settings), audience, { tools, doing });
    const manager = settings.resource_manager ?? audience.resource;
    const about = { manager, rule, stream, timeout, tls, proxy };
    return await inspectRule(about, token, { doing, tools, signal });
  },
});

/** The batch's events with a column that Azure would cut. */
function cutIn({ events, lines }: Batch): readonly Refusal[] {
  return events.flatMap(({ uid }, i) => {
    const name = longColumn(lineAt(lines, i));
    if (name === null) return [];
    const reason = `column ${name} has more than 64 KB, which Azure would cut without a word; oversize: split writes it in several rows`;
    return [{ uid, reason, by: 'sink' }];
  });
}

function withoutRefused(batch: Batch, refused: readonly Refusal[]): Batch {
  if (refused.length === 0) return batch;
  const uids = new Set(refused.map(({ uid }) => uid));
  return onlyEvents(batch, ({ uid }) => !uids.has(uid));
}

/** The result for the sent events, and the refusals of the others; `left` was sent. */
function withRefused(answer: Delivery, refused: readonly Refusal[], left: Batch): Delivery {
  if (refused.length === 0) return answer;
  switch (answer.outcome) {
    case 'delivered':
      return { outcome: 'partly', refused, again: [] };
    case 'partly':
      return { ...answer, refused: [...refused, ...answer.refused] };
    case 'retry':
    case 'refused':
      // They are sent again without the refused ones.
      return { outcome: 'partly', refused, again: left.events.map(({ uid }) => uid) };
  }
}

/** One rule's stream, and its token. */
class IngestionService {
  readonly #settings: SentinelSettings;
  readonly #tools: Tools;
  readonly #doing: string;
  readonly #token: AzureToken;
  readonly #url: string;

  constructor(settings: SentinelSettings, tools: Tools, doing: string) {
    this.#settings = settings;
    this.#tools = tools;
    this.#doing = doing;
    const { monitor } = cloudOf(settings.authority);
    this.#token = new AzureToken(knownIdentity(settings), monitor, { tools, doing });
    const { endpoint, dcr_immutable_id: rule, stream_name: stream } = settings;
    this.#url = `${endpoint.replace(/\/+$/, '')}/dataCollectionRules/${rule}/streams/${stream}?api-version=2023-01-01`;
  }

  async send(batch: Batch, range: Range, signal: AbortSignal): Promise<PartAnswer> {
    const body = rowsOf(batch.lines, range);
    if (body.length <= callBytesMax) {
      const answer = await this.post(body, signal);
      freeSent(body, this.#settings);
      return answer;
    }
    const message = `${this.#doing}: a call of ${body.length} bytes is over Azure’s bound of 1 MB`;
    const next = 'It was sent in halves; a smaller batch.bytes saves the work.';
    const cause = new ExportError('record_refused', message, { next });
    return { outcome: 'too_large', cause, by: 'sink' };
  }

  async post(body: Uint8Array, signal: AbortSignal): Promise<PartAnswer> {
    const { timeout, compression, tls, proxy } = this.#settings;
    let token: string;
    try {
      token = await this.#token.current(signal);
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof ExportError) return { outcome: 'retry', cause };
      throw cause;
    }
    let code = '';
    const explain = (response: HttpResponse) => {
      code = codeIn(response);
      return receiverWords(response);
    };
    const headers = { authorization: new Secret(() => `Bearer ${token}`) };
    const answer = await postOnce(
      { url: this.#url, headers, timeout, compression, tls, proxy },
      { body, headers: { 'content-type': 'application/json' } },
      { doing: this.#doing, tools: this.#tools, signal, explain },
    );
    return this.#meaning(answer, code);
  }

  #meaning(answer: PostAnswer, code: string): PartAnswer {
    if (answer.outcome === 'accepted') {
      const { status, headers } = answer.response;
      if (status === 204) return { outcome: 'delivered' };
      const type = plainLine(headers['content-type'] ?? 'none');
      const message = `${this.#doing}: the receiver answered ${status} (${type}), and only 204 means that Azure has the rows`;
      const next =
        'Check endpoint, and whether a proxy in between answers by itself. Nothing was lost.';
      return {
        outcome: 'refused',
        scope: 'sink',
        cause: new ExportError('sink_refused', message, { next }),
      };
    }
    if (answer.outcome !== 'refused') return answer;
    const { cause } = answer;
    const reported = (errorCode: ErrorCode, next: string) =>
      new ExportError(errorCode, cause.message, {
        next: `${next} Nothing was lost.`,
        details: cause.details,
      });
    switch (cause.details.status) {
      case 401:
        // Another token may be accepted; if not, this failure repeats after a wait.
        this.#token.forget();
        return {
          outcome: 'retry',
          cause: reported('sink_refused', 'It is tried with a new token.'),
        };
      case 403: {
        const next =
          'Assign the role “Monitoring Metrics Publisher” on the data collection rule to the identity. A new assignment can need up to 30 minutes; sluice tries again until then.';
        return { outcome: 'retry', cause: reported('sink_refused', next) };
      }
      case 404:
        return {
          ...answer,
          cause: reported('sink_refused', 'Check endpoint and dcr_immutable_id.'),
        };
      case 400:
        // sluice sends an array of rows within the limits: the stream is wrong, not an event.
        if (code.startsWith('InvalidPayload')) return answer;
        return {
          outcome: 'refused',
          scope: 'sink',
          cause: reported('sink_refused', 'Check stream_name and the declarations of the rule.'),
        };
      default:
        return answer;
    }
  }
}

function codeIn({ body }: HttpResponse): string {
  try {
    const said: unknown = JSON.parse(Buffer.from(body).toString());
    const error = isObject(said) ? said.error : null;
    return isObject(error) && typeof error.code === 'string' ? error.code : '';
  } catch {
    return '';
  }
}
