// Writes whole pages as upstream sent them into an archive that proves itself (src/archive/). A
// batch is acknowledged when a signed checkpoint that covers it is durable
// (archive/open-archive.ts). The writer's code is loaded only when an archive is opened: it is a
// third of the code of all sinks.

import { resolve } from 'node:path';
import { z } from 'zod';
import {
  movedMark,
  operatorFlaw,
  signingFlaw,
  signingKeys,
  witnessFlaw,
} from '../../src/archive/index.ts';
import { defineSink, duration } from '../../src/contracts/config.ts';
import { bucketKeys } from '../../src/objects/index.ts';
import { fixedNameFlaw } from '../shared/destination-names.ts';
import { lakeEveryUsual, lakeSink } from './lake.ts';

/** A checkpoint in a directory costs some disk flushes, in a bucket some requests. */
const checkpointEveryMs = { directory: 10_000, bucket: 300_000 };

/** `type: archive`. */
export const archiveSink = defineSink({
  type: 'archive',
  summary:
    'Keeps every page as upstream sent it in an archive that proves offline that it is whole.',
  takes: 'pages',
  fields: {
    location: z
      .string()
      .min(1)
      .describe('a directory, relative to the working directory, or `s3://BUCKET/PREFIX`'),
    ...bucketKeys,
    ...signingKeys,
    checkpoint_every: duration()
      .optional()
      .describe('interval at which archived pages are signed; default: `10s`, in a bucket `5m`'),
    object_lock: z
      .strictObject({
        mode: z
          .enum(['COMPLIANCE', 'GOVERNANCE'])
          .describe(
            'compliance: no account can lift the lock; governance: accounts with the right can',
          ),
        retain: duration().describe('how long an object is locked from when it is written'),
      })
      .optional()
      .describe(
        'in a bucket with S3 Object Lock: written objects can neither be changed nor deleted',
      ),
    lake: z
      .strictObject({
        every: duration()
          .prefault(lakeEveryUsual)
          .describe('objects are finished when their first event has waited for so long'),
      })
      .optional()
      .describe('writes the events as Parquet as well, below `lake/`; default: off'),
    tsa: z
      .strictObject({
        url: z
          .url({ protocol: /^https?$/, error: 'expected a URL such as http://tsa.example' })
          .describe('where the authority answers over HTTP'),
        ca_file: z
          .string()
          .min(1)
          .describe('PEM file of the authorities that its stamps lead to; nothing else is trusted'),
        every: duration()
          .prefault('5m')
          .describe(
            'minimum interval between two stamps; a stamp is always requested when a run ends',
          ),
      })
      .optional()
      .describe('has checkpoints stamped by a time-stamp authority (RFC 3161); default: none'),
    witnesses: z
      .array(
        z.strictObject({
          url: z
            .url({ protocol: /^https?$/, error: 'expected a URL such as https://witness.example' })
            .describe('its submission prefix'),
          key: z.string().min(1).describe('its public key, a vkey'),
        }),
      )
      .min(1)
      .optional()
      .describe(
        'witnesses that cosign checkpoints ([C2SP tlog-witness](https://c2sp.org/tlog-witness)); default: none',
      ),
    compare_every: duration()
      .optional()
      .describe(
        'interval at which the archive is compared with the records that upstream serves; default: never',
      ),
    shared: z
      .boolean()
      .optional()
      .describe(
        'true: every process sees the directory `location`, on a network file system; needed for a directory under `state.kafka`',
      ),
    accept_requests: z
      .boolean()
      .optional()
      .describe(
        'whether requests in the store to prune, erase or release a hold are carried out without a signature; default: false in a new archive, true in one of a version before 0.2.0',
      ),
    operators: z
      .array(z.string().min(1))
      .optional()
      .describe(
        'public keys (vkeys) that may sign such requests (`--sign-with`) beside the archive’s own key; default: none',
      ),
    accept_unmasked: z
      .boolean()
      .optional()
      .describe(
        'true: the archive may keep whole pages of sources that a route masks; default: such configs are refused',
      ),
    keep: z
      .strictObject({
        bodies: duration().describe('age after which page bodies are deleted; their proofs stay'),
      })
      .optional()
      .describe('how long large objects are kept; default: for ever'),
  },
  carries: ['json'],
  usualFormat: 'json',
  flaw: ({ location, object_lock: lock, witnesses = [], operators = [], ...settings }) => {
    if (lock !== undefined && !isBucket(location)) return 'object_lock needs a bucket as location';
    const flaws = [...witnesses.map(({ key }) => witnessFlaw(key)), ...operators.map(operatorFlaw)];
    return (
      fixedNameFlaw('location', location) ?? flaws.find((flaw) => flaw) ?? signingFlaw(settings)
    );
  },
  companion: ({ lake, ...place }) =>
    lake === undefined
      ? null
      : {
          suffix: 'lake',
          definition: lakeSink,
          settings: { ...place, type: 'lake', every: lake.every },
        },
  sample: {
    to: { what: 'the directory of the archive', usual: './archive' },
    lines: (to) => [
      `location: ${JSON.stringify(to)}`,
      'signing_key: ${file:./archive.key} # made by: npx sluice archive keys new archive.key',
      '# checkpoint_every: 10s',
    ],
  },
  // Pages wait for their checkpoint; ready() bounds their number.
  inFlightMax: 10_000,
  batch: { events: 5000, bytes: 1024 * 1024, waitMs: 250 },
  assurance: () => 'once',
  testSettings: () => null,
  answersEveryMs: everyMs,
  own: ({ location, shared }) => ({
    key: 'location',
    name: isBucket(location) ? location : resolve(location),
    flawIfShared:
      isBucket(location) || shared === true
        ? undefined
        : `with state.kafka any process may write the archive, and a directory of one machine would have only a part of each stream: give a bucket, s3://BUCKET/PREFIX, or set shared: true if every process sees this directory`,
    shardSeparator: '/',
    shardKey: 'shard',
    othersKey: 'others',
  }),
  movedMark,

  advice: ({ signing_key: key, signing_key_command: command, accept_requests: accepts }) => [
    ...(accepts === true
      ? [
          'accept_requests is true: every account with write access to its location can request pruned or erased bodies and released holds. Set it to false, and sign requests with --sign-with.',
        ]
      : []),
    'An attacker with the archive and its signing key can write another history: keep checkpoints elsewhere as well, and check against them with `archive verify --since`.',
    ...(command === undefined && key?.reference?.startsWith('${file:') !== true
      ? ['Keep the signing key in a file that only sluice may read, as signing_key: ${file:…}.']
      : []),
  ],

  async open(settings, opening) {
    const { openArchiveSink } = await import('./archive/opening.ts');
    return await openArchiveSink({ ...settings, checkpointEveryMs: everyMs(settings) }, opening);
  },

  async probe(settings, tools, signal, mark = null) {
    const { probeArchive } = await import('./archive/opening.ts');
    const own = { ...settings, checkpointEveryMs: everyMs(settings) };
    await probeArchive(own, { tools, signal, mark });
  },
});

function isBucket(location: string): boolean {
  return location.startsWith('s3://');
}

function everyMs({
  location,
  checkpoint_every: every,
}: {
  readonly location: string;
  readonly checkpoint_every?: number | undefined;
}): number {
  return every ?? (isBucket(location) ? checkpointEveryMs.bucket : checkpointEveryMs.directory);
}
