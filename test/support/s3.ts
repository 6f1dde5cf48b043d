// A server that speaks S3, for one test file: buckets with and without Object Lock, and a view of their objects without
// sluice.

import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutBucketPolicyCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { Secret } from '../../src/contracts/secret.ts';
import { openStore } from '../../src/objects/open.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { endChild, isRunning, runProgram, spawnChild } from './children.ts';
import { oncePerRun, runDir } from './once-per-run.ts';
import { findS3, type S3Program } from './s3-program.ts';
import { afterThisTest, freePort, waitUntil } from './temp.ts';

const accessKeyId = 'AKIATESTTESTTESTTEST';
const secretAccessKey = 'of-no-use-anywhere-else';

/** Bound on the first run on a machine, in which the server is built. */
export const s3BuildMsMax = 30 * 60_000;

/** A running server. */
export class S3Server {
  readonly name: S3Program['name'];
  readonly endpoint: string;
  readonly client: S3Client;
  readonly #start: () => Promise<ChildProcess>;
  readonly #path: string;
  #child: ChildProcess;

  constructor(
    { name, path }: S3Program,
    endpoint: string,
    start: () => Promise<ChildProcess>,
    child: ChildProcess,
  ) {
    this.name = name;
    this.#path = path;
    this.endpoint = endpoint;
    this.#start = start;
    this.#child = child;
    this.client = new S3Client({
      endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey },
    });
  }

  /** The config of a sink for it. */
  get settings() {
    return {
      endpoint: this.endpoint,
      region: 'us-east-1',
      credentials: { access_key_id: accessKeyId, secret_access_key: secretAccessKey },
    };
  }

  /** The same, as a store has them. */
  get storeSettings() {
    const secret_access_key = new Secret(() => secretAccessKey);
    return { ...this.settings, credentials: { access_key_id: accessKeyId, secret_access_key } };
  }

  /** A bucket of its own, `isLocked`: with Object Lock. */
  async bucket(isLocked = false): Promise<string> {
    const Bucket = `b-${randomUUID()}`;
    await this.client.send(
      new CreateBucketCommand({ Bucket, ObjectLockEnabledForBucket: isLocked }),
    );
    return Bucket;
  }

  /** What is below a prefix of a bucket, a new one if none is named; closed when the test ends. */
  async store(bucket?: string, prefix = 'some/prefix'): Promise<ObjectStore> {
    const at = `s3://${bucket ?? (await this.bucket())}/${prefix}`;
    const store = await openStore(at, this.storeSettings);
    afterThisTest(() => store.close());
    return store;
  }

  /** Credentials and address for the program's environment. */
  get env() {
    return {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_REGION: 'us-east-1',
      AWS_ENDPOINT_URL: this.endpoint,
    };
  }

  /** Credentials of somebody who may do these things, such as `GetObject`, in a bucket, and no others; versitygw only. */
  async whoMay(bucket: string, actions: readonly string[]) {
    const [access_key_id, secret_access_key] = [randomUUID(), randomUUID()];
    const admin = ['admin', '-a', accessKeyId, '-s', secretAccessKey, '-er', this.endpoint];
    const user = ['create-user', '-a', access_key_id, '-s', secret_access_key, '-r', 'user'];
    const made = await runProgram(this.#path, [...admin, ...user]);
    if (made.exitCode !== 0) throw new Error(`versitygw makes no user: ${made.errors}`);
    const Statement = {
      ...{ Effect: 'Allow', Principal: { AWS: [access_key_id] } },
      Action: actions.map((action) => `s3:${action}`),
      Resource: [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`],
    };
    const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [Statement] });
    await this.client.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy }));
    return { access_key_id, secret_access_key };
  }

  /** Everything in a bucket by name. */
  async objects(Bucket: string, prefix = ''): Promise<ReadonlyMap<string, StoredObject>> {
    const found = new Map<string, StoredObject>();
    let ContinuationToken: string | undefined;
    do {
      const page = await this.client.send(
        new ListObjectsV2Command({ Bucket, Prefix: prefix, ContinuationToken }),
      );
      for (const { Key = '' } of page.Contents ?? []) {
        const { Body, Metadata = {} } = await this.client.send(
          new GetObjectCommand({ Bucket, Key }),
        );
        const body = Buffer.from((await Body?.transformToByteArray()) ?? []);
        found.set(Key, { body, metadata: Metadata });
      }
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    return found;
  }

  /** How many versions of objects and marks of deletion a bucket has. */
  async versions(Bucket: string): Promise<number> {
    const { Versions = [], DeleteMarkers = [] } = await this.client.send(
      new ListObjectVersionsCommand({ Bucket }),
    );
    return Versions.length + DeleteMarkers.length;
  }

  /** Takes away every version of an object. */
  async destroy(Bucket: string, Key: string): Promise<void> {
    const { Versions = [] } = await this.client.send(
      new ListObjectVersionsCommand({ Bucket, Prefix: Key }),
    );
    for (const { VersionId } of Versions.filter((one) => one.Key === Key)) {
      await this.client.send(new DeleteObjectCommand({ Bucket, Key, VersionId }));
    }
  }

  /** Ends it with all connections; its requests are kept. */
  async stop(): Promise<void> {
    await endChild(this.#child, 'SIGKILL');
  }

  /** Starts it again at the same address. */
  async start(): Promise<void> {
    if (!isRunning(this.#child)) this.#child = await this.#start();
  }
}

/** An object as it stands in a bucket. */
export interface StoredObject {
  readonly body: Buffer;
  readonly metadata: Readonly<Record<string, string>>;
}

let shared: Promise<S3Server> | undefined;

/** One server for all callers in this process. */
export function sharedS3(): Promise<S3Server> {
  shared ??= startS3();
  return shared;
}

/** Starts a server, found or built first; rejects where neither can be had, saying what to do. */
export async function startS3(): Promise<S3Server> {
  const program = await oncePerRun('s3', findS3);
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const dir = mkdtempSync(join(runDir(), 's3-'));
  const start = async () => {
    const child =
      program.name === 'moto' ? spawnMoto(program, port) : spawnVersitygw(program, dir, port);
    await waitUntil(
      () =>
        fetch(endpoint).then(
          () => true,
          () => false,
        ),
      {
        what: `${program.name} to listen`,
      },
    );
    return child;
  };
  return new S3Server(program, endpoint, start, await start());
}

function spawnVersitygw({ path }: S3Program, dir: string, port: number): ChildProcess {
  for (const name of ['data', 'versions', 'facts', 'iam'])
    mkdirSync(join(dir, name), { recursive: true });
  const keep = ['--versioning-dir', join(dir, 'versions'), '--sidecar', join(dir, 'facts')];
  return spawnChild(
    path,
    [
      ...['--quiet', '--keep-alive', '--iam-dir', join(dir, 'iam')],
      ...['--port', `127.0.0.1:${port}`, 'posix', ...keep, join(dir, 'data')],
    ],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey },
    },
  );
}

function spawnMoto({ path }: S3Program, port: number): ChildProcess {
  return spawnChild('python3', ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
    env: { ...process.env, PYTHONPATH: path },
  });
}
