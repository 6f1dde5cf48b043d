// Writes finished objects to an S3 bucket, each event once. Batches are collected until an object
// is large or old enough, and are acknowledged when it is in the bucket (s3/object-writer.ts); its
// metadata lists its events (s3/cut.ts). Retries are the engine's.

import { z } from 'zod';
import { defineSink, duration, size } from '../../src/contracts/config.ts';
import { ExportError, untilAborted } from '../../src/contracts/index.ts';
import { type BucketSettings, bucketKeys, bucketName, openStore } from '../../src/objects/index.ts';
import {
  isPerPage,
  pageNames,
  patternFlaw,
  splitAtPlaceholder,
} from '../shared/destination-names.ts';
import { linesBody } from './s3/lines-body.ts';
import { objectSink } from './s3/object-sink.ts';
import { cutsBelow, pageLinesBody } from './s3/page-lines-body.ts';

/** `type: s3`. */
export const s3Sink = defineSink({
  type: 's3',
  summary: 'Writes events as finished objects to a bucket of S3, each event once.',
  fields: {
    bucket: bucketName().describe('name of the bucket'),
    prefix: z
      .string()
      .optional()
      .describe(
        'prefix of each object’s name, with `{company}` and `{source}` (docs/destinations.md); no other program may write there',
      ),
    ...bucketKeys,
    conditional_writes: z
      .boolean()
      .default(true)
      .describe(
        'false: write without If-None-Match, for services that answer 501 to it; events are delivered at least once then',
      ),
    compress: z
      .enum(['gzip', 'zstd'])
      .default('gzip')
      .describe('compression of the objects; Parquet has zstd within'),
    layout: z
      .enum(['plain', 'security_lake'])
      .default('plain')
      .describe(
        'how Parquet is laid out: by class, company and day, or as Amazon Security Lake has it',
      ),
    account_id: z
      .string()
      .regex(/^[0-9A-Za-z_-]{1,64}$/, 'expected an account’s id')
      .optional()
      .describe('`accountId` of the objects in Security Lake'),
    source_name: z
      .string()
      .regex(/^[0-9A-Za-z_-]{1,32}$/, 'expected letters, digits, _ and -')
      .default('sluice')
      .describe('name of the sources in Security Lake, one for each class: `NAME_CLASS`'),
    rotate: z
      .strictObject({
        bytes: size()
          .prefault('64MiB')
          .describe('finish an object when it has grown to this, before compression'),
        every: duration()
          .prefault('5m')
          .describe('finish an object when its first event has waited for so long'),
      })
      .prefault({})
      .describe('when an object is finished; its events count as delivered then'),
  },
  carries: ['json', 'lines', 'rows'],
  usualFormat: 'json',
  flaw: ({ layout, region, account_id: account, prefix = '' }, chosen) =>
    layout === 'security_lake' && (region === undefined || account === undefined)
      ? 'layout: security_lake needs region and account_id, which are part of the objects’ names'
      : chosen?.type === 'parquet' && isPerPage(prefix)
        ? 'prefix: {company} and {source} are not replaced for Parquet, whose objects have a directory for each class, company and day; leave them out, or set format: json'
        : patternFlaw('prefix', prefix),
  sample: {
    to: { what: 'the bucket to write to', usual: 'security-events' },
    lines: (to) => [
      `bucket: ${JSON.stringify(to)}`,
      'prefix: sluice # objects are sluice/YYYY/MM/DD/EPOCH-FIRST.ndjson.gz',
      '# region: eu-central-1 # default: AWS_REGION',
      '# endpoint: "https://minio.example" # a service other than AWS',
      '# compress: zstd',
      '# rotate: { bytes: 64MiB, every: 5m }',
    ],
  },
  // Batches of one second for as long as an object may collect; ready() bounds their bytes.
  inFlightMax: 1_000,
  batch: { events: 5000, bytes: 1024 * 1024, waitMs: 1000 },
  assurance: ({ conditional_writes }) => (conditional_writes ? 'once' : 'answered'),
  advice: ({ conditional_writes }) => (conditional_writes ? [] : [unconditionalAdvice]),
  testSettings: () => null,
  own: ({ bucket, prefix = '', endpoint = '' }) => ({
    key: 'prefix',
    name: `${endpoint} s3://${bucket}/${prefix.replace(/^\/+|\/+$/g, '')}`.trim(),
    shardSeparator: '/',
  }),

  async open(settings, opening) {
    const [root, pattern] = splitAtPlaceholder(plainPrefix(settings.prefix));
    const store = await openStore(`s3://${settings.bucket}/${root}`, settings);
    const { rotate, compress: method } = settings;
    const { name, contentType } = opening.format;
    const ending = contentType === 'application/json' ? 'ndjson' : 'log';
    if (name !== 'parquet' && pattern !== '') {
      const directoryOf = pageNames(pattern);
      const body = () => pageLinesBody({ method, ending, directoryOf });
      const cuts = cutsBelow(store, pattern.replaceAll(/[{}]/g, '_'));
      return objectSink({ store: cuts, opening, rotate, body });
    }
    if (name !== 'parquet') {
      return objectSink({ store, opening, rotate, body: () => linesBody(method, ending) });
    }
    // Loaded only for writing: the Parquet code would double the code that sinks load.
    const { parquetBody, parquetBytesMax, tableNames } = await import('./s3/parquet-body.ts');
    return objectSink({
      store,
      opening,
      rotate: { ...rotate, bytes: Math.min(rotate.bytes, parquetBytesMax) },
      body: () => parquetBody(tableNames(settings)),
    });
  },

  async probe(settings, _tools, signal) {
    await untilAborted(probeS3(settings), signal);
  },
});

/** Without empty elements, and with `/` at its end. */
function plainPrefix(prefix = ''): string {
  const parts = prefix.split('/').filter((part) => part !== '');
  return parts.map((part) => `${part}/`).join('');
}

const unconditionalAdvice =
  'conditional_writes is false: two processes that write the same object at the same moment may both write it, so events are delivered at least once';

interface ProbedSettings extends BucketSettings {
  readonly bucket: string;
  readonly prefix?: string | undefined;
}

/**
 * Cuts are listed below `2`, and roles of Security Lake may write there; this name is not a cut's.
 */
const probeName = '2-sluice-check';

/** Alternatives for a service that responds with 501, the smallest change first. */
const otherWays: readonly Pick<BucketSettings, 'checksums' | 'conditional_writes'>[] = [
  { checksums: 'when_required' },
  { conditional_writes: false },
  { checksums: 'when_required', conditional_writes: false },
];

async function probeS3(settings: ProbedSettings): Promise<void> {
  try {
    await tryOut(settings);
  } catch (error) {
    if (!(error instanceof ExportError) || error.details.status !== 501) throw error;
    for (const way of otherWays) {
      if (await works({ ...settings, ...way })) throw notImplemented(error, way);
    }
    throw error;
  }
}

/** Lists, writes an object as the sink does, and deletes it if permitted. */
async function tryOut(settings: ProbedSettings): Promise<void> {
  const [root] = splitAtPlaceholder(plainPrefix(settings.prefix));
  const store = await openStore(`s3://${settings.bucket}/${root}`, settings);
  try {
    await store.list('').next();
    const body = [Buffer.from('written by sluice check --connect\n')];
    await store.create(probeName, body, { contentType: 'text/plain' });
    await store.remove(probeName).catch(() => undefined);
  } finally {
    store.close();
  }
}

async function works(settings: ProbedSettings): Promise<boolean> {
  return await tryOut(settings).then(
    () => true,
    () => false,
  );
}

function notImplemented(cause: ExportError, way: (typeof otherWays)[number]): ExportError {
  const keys = Object.entries(way).map(([key, value]) => `${key}: ${value}`);
  return new ExportError(cause.code, cause.message, {
    next: `Set ${keys.join(' and ')} on this sink: the service accepts writes without these headers.`,
    details: cause.details,
    cause,
  });
}
