// The blocks of a config as zod types: the engine's own keys, and the keys that it adds to the declarations of sources,
// sinks and formats.

import { z } from 'zod';
import { sasl } from '../../connectors/index.ts';
import { postUrl } from '../../connectors/shared/http-post.ts';
import {
  count,
  duration,
  type FormatDefinition,
  headers,
  hostPortSetting,
  residency,
  type SinkDefinition,
  type SourceDefinition,
  secret,
  size,
  tls,
} from '../contracts/config.ts';
import { maskKinds, usualReadyShare } from '../contracts/index.ts';
import { connectionFields } from '../kafka/index.ts';
import { upstreamFields } from '../upstream/index.ts';
import { needsToken, parseListen } from './listen.ts';

/** Names of sources, sinks and upstreams: parts of stream names, files and headers. */
export const namePattern = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;

const dayMs = 86_400_000;

/** A duration within bounds; `said` describes the bounds. */
function period(minMs: number, maxMs: number, said: string) {
  return duration().refine((ms) => ms >= minMs && ms <= maxMs, `expected a duration ${said}`);
}

/** A time between two readings of a source. */
function interval() {
  return period(10, 365 * dayMs, 'from 10ms to 365d');
}

/** `state`: where pages and checkpoints are stored. */
export const stateBlock = z
  .strictObject({
    dir: z
      .string()
      .min(1)
      .optional()
      .describe(
        'directory of the state, relative to this file; default: `$STATE_DIRECTORY/state` under systemd, else `./state`',
      ),
    max_bytes: size()
      .refine((bytes) => bytes >= 1024 ** 2, 'expected a size of at least 1MiB')
      .prefault('1GiB')
      .describe('polling pauses while the spool has this size; no event is dropped'),
    keep: period(0, 3650 * dayMs, 'of at most 3650d')
      .prefault('0s')
      .describe('how long pages stay for replay after every sink has them'),
    removed_sinks: period(0, 3650 * dayMs, 'of at most 3650d')
      .prefault('24h')
      .describe(
        'how long pages are kept for a sink that no running config has, from the first run without the sink; a full spool releases them earlier',
      ),
    sync: z
      .enum(['full', 'normal'])
      .default('full')
      .describe('full: safe across a power failure; normal: across a crash of the process only'),
    kafka: z
      .strictObject({
        brokers: connectionFields.brokers,
        prefix: z
          .string()
          .regex(/^[A-Za-z0-9_-]{1,100}$/, 'expected letters, digits, "_" and "-", at most 100')
          .default('sluice')
          .describe('prefix of the topics, such as `<prefix>.pages` and `<prefix>.state`'),
        shards: count(1, 1_000)
          .default(1)
          .describe(
            'number of parts that processes can share, divided by upstream and client; fixed for a prefix',
          ),
        replication_factor: count(1, 32_767)
          .optional()
          .describe(
            'replication factor of the topics that sluice creates; default: the setting of the brokers',
          ),
        session_timeout: period(6_000, 60_000, 'between 6s and 60s')
          .prefault('10s')
          .describe('if a process is silent for this long, another process takes over'),
        instance: z
          .string()
          .regex(
            /^[A-Za-z0-9._-]{1,200}$/,
            'expected letters, digits, ".", "_" and "-", at most 200',
          )
          .optional()
          .describe(
            'unique name of this process: a restart with the same name resumes at once; default: a new name at each start',
          ),
        leave_at_end: z
          .boolean()
          .default(true)
          .describe(
            'true: when this process stops, another takes over at once. false, with an instance: its shards wait one session for its restart',
          ),
        deployment: z
          .string()
          .regex(
            /^[A-Za-z0-9._-]{1,200}$/,
            'expected letters, digits, ".", "_" and "-", at most 200',
          )
          .optional()
          .describe(
            'name of the deployment that the state belongs to; another one is refused. Default: made at the first start from the upstreams’ addresses and client ids, and stored',
          ),
        sasl: sasl(),
        tls: connectionFields.tls,
      })
      .optional()
      .describe(
        'store the state in Kafka; the database in `dir` is then a cache, rebuilt at each start',
      ),
  })
  .prefault({})
  .describe('storage of pages and checkpoints: one SQLite database');

/** Where an OpenTelemetry collector receives sluice's own telemetry. */
function collector(endpoint: string) {
  return z.strictObject({
    url: postUrl().describe(endpoint),
    headers: headers().describe('headers of each request, e.g. Authorization'),
    tls: tls().describe('TLS of https:// addresses'),
  });
}

function plainWithTls({ url, tls }: { readonly url: string; readonly tls?: object | undefined }) {
  return tls !== undefined && url.startsWith('http:');
}

const plainWithTlsFlaw = {
  path: ['tls'],
  message: 'tls is set, but url begins with http://; write https://, or leave tls out',
};

/** `status`: the page with /healthz, /readyz and /metrics. */
export const statusBlock = z
  .strictObject({
    listen: hostPortSetting('127.0.0.1:8686', parseListen).describe('address to listen on'),
    token: secret().optional().describe('bearer token that clients must send; allows everything'),
    tokens: z
      .strictObject({
        view: secret().optional().describe('allows the page and the figures'),
        events: secret().optional().describe('allows these and events'),
        act: secret().optional().describe('allows everything'),
      })
      .refine(
        (tokens) => Object.values(tokens).some((one) => one !== undefined),
        'expected a token for view, events or act',
      )
      .refine((tokens) => {
        const texts = Object.values(tokens).flatMap((one) => one?.reveal() ?? []);
        return new Set(texts).size === texts.length;
      }, 'two roles have the same token; give each role a token of its own')
      .optional()
      .describe('bearer tokens by role, beside token and basic_auth, which allow everything'),
    basic_auth: z
      .strictObject({
        username: z
          .string()
          .regex(/^[^:]+$/, 'expected a name without a colon')
          .describe('name'),
        password: secret().describe('password'),
      })
      .optional()
      .describe('name and password for clients; browsers prompt for them'),
    ready: z
      .strictObject({
        streams: z
          .number()
          .min(0)
          .max(1)
          .default(usualReadyShare)
          .describe(
            'share of the streams that must advance for /readyz to answer 200, from 0 to 1; if none advances, the answer is 503. Streams that do not advance stay in attention, metrics and alerts',
          ),
      })
      .prefault({})
      .describe('when the export counts as ready'),
    tail: z
      .boolean()
      .default(true)
      .describe('shows the newest events in full on the page, to every reader of the status'),
    otlp: collector('the metrics endpoint, e.g. http://collector:4318/v1/metrics')
      .extend({
        every: period(1_000, dayMs, 'between 1s and 1d').prefault('1m').describe('interval'),
      })
      .refine((otlp) => !plainWithTls(otlp), plainWithTlsFlaw)
      .optional()
      .describe('pushes the numbers of /metrics to an OpenTelemetry collector as well'),
  })
  .refine(
    ({ listen, token, tokens, basic_auth: basicAuth }) =>
      [token, tokens, basicAuth].some((one) => one !== undefined) || !needsToken(listen),
    {
      path: ['listen'],
      message:
        'others can read this address, so it needs a token or a password; set status.token, status.tokens or status.basic_auth, or listen on 127.0.0.1',
    },
  )
  .optional()
  .describe('page, /healthz, /readyz and /metrics; default: off');

/** `shutdown`. */
export const shutdownBlock = z
  .strictObject({
    timeout: period(0, dayMs, 'of at most 1d')
      .prefault('10s')
      .describe('how long stored events are delivered after SIGTERM'),
  })
  .prefault({})
  .describe('shutdown after SIGTERM');

/** `log`. */
export const logBlock = z
  .strictObject({
    level: z
      .enum(['debug', 'info', 'warn', 'error'])
      .default('info')
      .describe('lowest level of printed lines'),
    otlp: collector('the logs endpoint, e.g. http://collector:4318/v1/logs')
      .refine((otlp) => !plainWithTls(otlp), plainWithTlsFlaw)
      .optional()
      .describe('sends the lines of `run` to an OpenTelemetry collector as well'),
  })
  .prefault({})
  .describe('log lines on stderr');

/** One entry of `upstreams`. */
export const upstreamBlock = z.strictObject(upstreamFields);

/** One entry of `routes`. */
export const routeBlock = z.strictObject({
  from: z.array(z.string()).min(1).describe('names of sources'),
  to: z.array(z.string()).min(1).describe('names of sinks'),
  where: z
    .string()
    .min(1)
    .optional()
    .describe('CEL expression over `event` (OCSF), `source` and `stream`; default: all events'),
  redact: z
    .array(
      z
        .string()
        .regex(/^[^.\s]+(\.[^.\s]+)*$/, 'expected a dotted path such as actor.user.email_addr'),
    )
    .optional()
    .describe('paths within the OCSF event that are removed'),
  mask: z
    .record(
      z
        .string()
        .regex(/^[^.\s]+(\.[^.\s]+)*$/, 'expected a dotted path such as actor.user.email_addr'),
      z.enum(maskKinds),
    )
    .optional()
    .describe(
      'paths within the OCSF event whose values are masked, each with a mask: `hash`, `domain`, `last4` or `network` (docs/masking.md)',
    ),
});

/** `mask`. */
export const maskBlock = z
  .strictObject({
    key: secret().describe(
      'key of `hash`; with the same key one value has the same hash in all sinks; write it as ${file:…}',
    ),
  })
  .optional()
  .describe('the key of masks; needed if a route has a mask `hash`');

function eventPaths(usual: readonly string[], about: string) {
  return z
    .array(z.string().regex(/^[^.\s]+(\.[^.\s]+)*$/, 'expected a dotted path such as entity.uid'))
    .default([...usual])
    .describe(about);
}

/** `watch`. */
export const watchBlock = z
  .strictObject({
    drift: z
      .strictObject({
        changes: z
          .array(z.string())
          .min(1)
          .describe('names of sources whose changes an audit event must explain'),
        trail: z.array(z.string()).min(1).describe('names of sources of audit events'),
        within: period(1_000, 7 * dayMs, 'from 1s to 7d')
          .prefault('10m')
          .describe('how far clocks may differ, and how late an audit event may come'),
        match: z
          .strictObject({
            changes: eventPaths(
              ['entity.uid', 'unmapped.parent_id'],
              'paths, in the event of a change, of the ids of its entity and parents',
            ),
            trail: eventPaths(
              ['entity.uid', 'resources.uid', 'unmapped.resource.policy_id'],
              'paths, in an audit event, of the ids of its object and that object’s parents',
            ),
            type: eventPaths(
              ['entity.type', 'resources.type'],
              'paths, in an audit event, of the type of its object',
            ),
            company: eventPaths(
              ['metadata.tenant_uid', 'unmapped.resource.company_id'],
              'paths, in an audit event, of the company; an event without a company matches any',
            ),
          })
          .prefault({})
          .describe('paths that match a change and an audit event'),
      })
      .optional()
      .describe(
        'reports changes that no audit event explains, and audit events without an observed change',
      ),
  })
  .prefault({})
  .describe('detections that compare sources; see docs/drift.md');

/** Keys that the engine adds to every source. */
const sourceKeys = {
  upstream: z.string().describe('name of the upstream to read'),
  every: z
    .union(
      [
        interval(),
        z.strictObject({
          min: interval().describe('interval while new records arrive'),
          max: interval().describe(
            'longest interval, reached after some polls without a new record',
          ),
        }),
      ],
      'expected a duration such as 30s or 5m, or { min: 5s, max: 5m }',
    )
    .optional()
    .describe(
      'interval from the start of one reading to the next, or `{ min: 5s, max: 5m }` for one that adapts between both; default without schedule: 30s',
    ),
  schedule: z
    .string()
    .min(1)
    .optional()
    .describe('cron expression instead of every: 5 fields, or 6 with seconds first'),
  timezone: z
    .string()
    .min(1)
    .optional()
    .describe('IANA time zone of schedule; default: that of this machine'),
  expect_every: period(1_000, 365 * dayMs, 'from 1s to 365d')
    .optional()
    .describe('a stream without a new record for this long is reported as silent; default: off'),
  expect_volume: z
    .strictObject({
      per: period(1_000, 30 * dayMs, 'from 1s to 30d').describe(
        'period in which records are counted',
      ),
      at_least: count(1, 1_000_000_000).describe('new records that each stream has in each period'),
    })
    .optional()
    .describe('a stream with fewer new records is reported as `source.volume_low`; default: off'),
  succeeds: z
    .strictObject({
      source: z.string().describe('name of the source that this one replaces'),
      id: z
        .string()
        .min(1)
        .optional()
        .describe(
          'path, in this source’s records, of the id of the other source’s records; default: the id of this source',
        ),
      fields: z
        .record(z.string().min(1), z.string().min(1))
        .default({})
        .describe(
          'path in the other source’s records: path in this source’s records, where names differ',
        ),
      ignore: z
        .array(z.string().min(1))
        .default([])
        .describe('paths that are not compared, by the names of either source'),
      overlap: period(1_000, 90 * dayMs, 'from 1s to 90d')
        .prefault('24h')
        .describe('how far back before the pairing records are compared'),
      patience: period(100, 7 * dayMs, 'from 100ms to 7d')
        .prefault('1h')
        .describe(
          'how long a record waits until the other source shows the same record; at least three polls of the other source, if that is read',
        ),
      cutover: z
        .enum(['manual'])
        .default('manual')
        .describe('manual: the command `succession cutover` makes this source deliver'),
    })
    .optional()
    .describe(
      'the source whose successor this one is, because its API ends: both are read, and each record is delivered once (docs/moving.md)',
    ),
};

/** Keys that the engine adds to every sink, beside `format`. */
const sinkKeys = {
  batch: z
    .strictObject({
      events: count(1, 100_000).optional().describe('most events in one request'),
      bytes: size()
        .refine((bytes) => bytes >= 1 && bytes <= 64 * 1024 ** 2, 'expected 1B to 64MiB')
        .optional()
        .describe('most bytes in one request; a larger event goes alone'),
      wait: period(0, 3_600_000, 'of at most 1h')
        .optional()
        .describe('how long to wait for a batch to fill'),
    })
    .optional()
    .describe('bounds of one request; defaults depend on the sink'),
  retry: z
    .strictObject({
      min: period(1, dayMs, 'from 1ms to 1d').prefault('1s').describe('first wait'),
      max: period(1, dayMs, 'from 1ms to 1d').prefault('5m').describe('longest wait'),
    })
    .prefault({})
    .describe('waits between attempts; they double, and events stay in the spool'),
  residency: residency().describe(
    'label of where the receiver stores the data, such as eu; a route from an upstream with another label is refused',
  ),
};

/** Default of `every`. */
export const everyMsDefault = 30_000;

/** The block of a source type. */
export const sourceBlock = onceEach((definition: SourceDefinition) => {
  const type = z.literal(definition.type).describe(definition.summary);
  return z.strictObject({ type, ...definition.fields, ...sourceKeys });
});

/** A format's long form, `{ type: cef, … }`. */
export const formatBlock = onceEach((definition: FormatDefinition) => {
  const type = z.literal(definition.type).describe(definition.summary);
  return z.strictObject({ type, ...definition.fields });
});

/** Keys of sinks without pages that no longer have an effect. */
const ignoredKeys = {
  own_process: z
    .boolean()
    .optional()
    .describe('no effect: the process of a shard sends to all sinks; remove the key'),
};

/**
 * The block of a sink type; the allowed values of `format` depend on the type, so they are checked later. Page sinks
 * have no format.
 */
export const sinkBlock = onceEach((definition: SinkDefinition) => {
  const type = z.literal(definition.type).describe(definition.summary);
  const own =
    definition.takes === 'pages' ? {} : { format: z.unknown().optional(), ...ignoredKeys };
  return z.strictObject({ type, ...definition.fields, ...own, ...sinkKeys });
});

/** zod compiles a block at its first use, so each is created once, when needed. */
function onceEach<D extends object, B>(make: (definition: D) => B): (definition: D) => B {
  const made = new WeakMap<D, B>();
  return (definition) => {
    return made.getOrInsertComputed(definition, () => make(definition));
  };
}

/** Keys at the top of a config. */
export const topKeys = [
  ...[
    'state',
    'upstreams',
    'sources',
    'sinks',
    'routes',
    'mask',
    'watch',
    'status',
    'shutdown',
    'log',
  ],
] as const;
