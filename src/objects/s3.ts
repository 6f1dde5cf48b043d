// Objects in a bucket of S3, or of a compatible service. The only file that knows the SDK, which
// signs requests and finds credentials (environment, profile, web identity, container, instance).
// It is loaded with the first bucket, with retries disabled: the caller has the only retry loop.
// Invariants: each writing request carries a checksum, unless the config sets `checksums:
// when_required`, and always with Object Lock, which requires one; an object above 8 MiB is sent in
// parts, and appears in one step like any other.

import type {
  CompletedPart,
  HeadObjectCommandOutput,
  ListObjectVersionsCommandOutput,
  ObjectVersion,
  PutObjectCommandInput,
  S3Client,
} from '@aws-sdk/client-s3';
import { ExportError, errorText } from '../contracts/index.ts';
import { piecesOf } from './parts.ts';
import { bucketFailure, httpStatusOf } from './s3-failure.ts';
import { type BucketSettings, clientConfig } from './s3-settings.ts';
import {
  checkedName,
  lockText,
  type ObjectAbout,
  type ObjectLock,
  type ObjectStore,
} from './store.ts';

type Sdk = typeof import('@aws-sdk/client-s3');

const partBytes = 8 * 1024 * 1024;
const partsMax = 10_000;

/** The bucket and the prefix. */
export interface BucketLocation extends BucketSettings {
  readonly bucket: string;
  /** Prefix of each name; empty or ending in `/`. */
  readonly prefix: string;
}

/** The objects of a bucket below a prefix; sends no request yet. */
export async function openBucket(settings: BucketLocation): Promise<Bucket> {
  const sdk = await loaded();
  return new Bucket(sdk, settings);
}

async function loaded(): Promise<Sdk> {
  try {
    return await import('@aws-sdk/client-s3');
  } catch (error) {
    throw new ExportError('sink_refused', `opening a bucket: ${errorText(error)}`, {
      next: 'Install the optional package @aws-sdk/client-s3 beside sluice (npm ci without --omit=optional); nothing was lost.',
      cause: error,
    });
  }
}

/** Opened by `openBucket`. */
export class Bucket implements ObjectStore {
  readonly location: string;
  readonly #sdk: Sdk;
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;
  /** For parts; empty: parts carry no checksum. */
  readonly #partChecksum: { readonly ChecksumAlgorithm?: 'CRC32' };
  readonly #isConditional: boolean;
  readonly #closed = new AbortController();

  constructor(sdk: Sdk, settings: BucketLocation) {
    this.#sdk = sdk;
    this.#bucket = settings.bucket;
    this.#prefix = settings.prefix;
    this.#partChecksum =
      settings.checksums === 'when_required' ? {} : { ChecksumAlgorithm: 'CRC32' };
    this.#isConditional = settings.conditional_writes !== false;
    this.location = `s3://${settings.bucket}/${settings.prefix}`;
    this.#client = new sdk.S3Client(clientConfig(settings));
  }

  async create(name: string, body: readonly Uint8Array[], about?: ObjectAbout) {
    // Two concurrent writers may both write: the sink then promises at least once.
    if (!this.#isConditional && (await this.facts(name)) !== null) return 'exists';
    const when = this.#isConditional ? { IfNoneMatch: '*' } : {};
    const tag = await this.#write(name, body, { about, when });
    return tag === null ? 'exists' : 'created';
  }

  async replace(name: string, body: readonly Uint8Array[], tag: string | null) {
    const when = tag === null ? { IfNoneMatch: '*' } : { IfMatch: tag };
    return await this.#write(name, body, { when });
  }

  async put(name: string, body: readonly Uint8Array[]): Promise<void> {
    await this.#write(name, body, { when: {} });
  }

  async read(name: string, range?: { readonly from: number; readonly length: number }) {
    const place = { ...this.#at(name), ...(range?.length ? { Range: rangeText(range) } : {}) };
    if (range?.length === 0) return await this.#nothingOf(name);
    return await this.#request(`reading ${name}`, async (options) => {
      try {
        const { Body, ETag } = await this.#client.send(
          new this.#sdk.GetObjectCommand(place),
          options,
        );
        const body = (await Body?.transformToByteArray()) ?? new Uint8Array(0);
        return { body, tag: given(ETag) };
      } catch (error) {
        if (httpStatusOf(error) === 416) return await this.#nothingOf(name);
        return nullIfAbsent(error);
      }
    });
  }

  async facts(name: string) {
    const found = await this.#head(name);
    if (found === null) return null;
    const { ContentLength: bytes = 0, ETag, Metadata: metadata = {} } = found;
    return { bytes, tag: given(ETag), metadata, ...lockIn(found) };
  }

  async #head(name: string): Promise<HeadObjectCommandOutput | null> {
    return await this.#request(`looking at ${name}`, async (options) => {
      try {
        return await this.#client.send(new this.#sdk.HeadObjectCommand(this.#at(name)), options);
      } catch (error) {
        return nullIfAbsent(error);
      }
    });
  }

  async *list(prefix: string, after = '') {
    const asked = {
      Bucket: this.#bucket,
      Prefix: `${this.#prefix}${prefix}`,
      StartAfter: after === '' ? undefined : `${this.#prefix}${after}`,
    };
    let more: string | undefined;
    do {
      const page = await this.#request('listing objects', (options) =>
        this.#client.send(
          new this.#sdk.ListObjectsV2Command({ ...asked, ContinuationToken: more }),
          options,
        ),
      );
      given(page.Name);
      for (const { Key = '', Size: bytes = 0 } of page.Contents ?? []) {
        // Some services list directories, including one for the prefix itself.
        if (!Key.endsWith('/')) yield { name: Key.slice(this.#prefix.length), bytes };
      }
      more = page.NextContinuationToken;
    } while (more !== undefined);
  }

  async remove(name: string): Promise<void> {
    const found = await this.#head(name);
    const { lock } = found === null ? {} : lockIn(found);
    if (lock !== undefined) refuseLocked(lock, `removing ${name} in ${this.location}`);
    // The newest version is deleted last: while a caller can list the object, it repeats an interrupted removal.
    if (found?.VersionId !== undefined) {
      await this.removeOlder(name);
      return await this.#removeVersions(name, () => true);
    }
    const { DeleteMarker } = await this.#request(`removing ${name}`, (options) =>
      this.#client.send(new this.#sdk.DeleteObjectCommand(this.#at(name)), options),
    );
    // In a bucket with versions that deletes nothing.
    if (DeleteMarker === true) await this.#removeVersions(name, () => true);
  }

  async removeOlder(name: string): Promise<void> {
    await this.#removeVersions(name, ({ IsLatest }) => IsLatest !== true);
  }

  async hold(name: string, isOn: boolean): Promise<void> {
    const LegalHold = { Status: isOn ? 'ON' : 'OFF' } as const;
    await this.#request(`holding ${name}`, (options) =>
      this.#client.send(
        new this.#sdk.PutObjectLegalHoldCommand({
          ...this.#at(name),
          ...{ LegalHold, ChecksumAlgorithm: 'CRC32' },
        }),
        options,
      ),
    );
  }

  async #removeVersions(name: string, isMeant: (one: ObjectVersion) => boolean): Promise<void> {
    const { Bucket, Key } = this.#at(name);
    await this.#request(`removing older versions of ${name}`, async (options) => {
      let more: { KeyMarker?: string; VersionIdMarker?: string } | null = {};
      while (more !== null) {
        const page: ListObjectVersionsCommandOutput = await this.#client.send(
          new this.#sdk.ListObjectVersionsCommand({ Bucket, Prefix: Key, ...more }),
          options,
        );
        for (const one of [...(page.Versions ?? []), ...(page.DeleteMarkers ?? [])]) {
          if (one.Key !== Key || !isMeant(one)) continue;
          const version = { Bucket, Key, VersionId: one.VersionId };
          await this.#client.send(new this.#sdk.DeleteObjectCommand(version), options);
        }
        const { IsTruncated, NextKeyMarker, NextVersionIdMarker } = page;
        more =
          IsTruncated === true && NextKeyMarker === Key
            ? { KeyMarker: NextKeyMarker, VersionIdMarker: NextVersionIdMarker ?? '' }
            : null;
      }
    });
  }

  close(): void {
    this.#closed.abort(new Error('closing'));
    this.#client.destroy();
  }

  async locks(): Promise<boolean> {
    return await this.#request('reading Object Lock', async (options) => {
      try {
        const found = await this.#client.send(
          new this.#sdk.GetObjectLockConfigurationCommand({ Bucket: this.#bucket }),
          options,
        );
        return found.ObjectLockConfiguration?.ObjectLockEnabled === 'Enabled';
      } catch (error) {
        if ((error as Error).name === 'ObjectLockConfigurationNotFoundError') return false;
        throw error;
      }
    });
  }

  /** The new tag; null if the condition does not hold. */
  async #write(
    name: string,
    body: readonly Uint8Array[],
    { about, when }: { about?: ObjectAbout | undefined; when: Condition },
  ): Promise<string | null> {
    const place = { ...this.#at(name), ...headersOf(about) };
    const bytes = body.reduce((sum, part) => sum + part.length, 0);
    return await this.#request(`writing ${name}`, async (options) => {
      try {
        if (bytes > partBytes) return await this.#writeParts(place, { body, bytes, when });
        const input = { ...place, ...when, Body: Buffer.concat(body), ContentLength: bytes };
        const { ETag } = await this.#client.send(new this.#sdk.PutObjectCommand(input), options);
        return given(ETag);
      } catch (error) {
        if (httpStatusOf(error) === 412) return null;
        // There is no object whose tag could match.
        if (when.IfMatch !== undefined && isAbsent(error)) return null;
        // A service that sees from the headers that the object exists may close the connection
        // during a long body.
        const isCut = httpStatusOf(error) === 0 && when.IfNoneMatch !== undefined;
        if (isCut && (await this.facts(name).catch(() => null)) !== null) return null;
        throw error;
      }
    });
  }

  async #writeParts(
    place: PutObjectCommandInput,
    { body, bytes, when }: { body: readonly Uint8Array[]; bytes: number; when: Condition },
  ): Promise<string> {
    const options = { abortSignal: this.#closed.signal };
    const { UploadId } = await this.#client.send(
      new this.#sdk.CreateMultipartUploadCommand({ ...place, ...this.#partChecksum }),
      options,
    );
    const upload = { Bucket: place.Bucket, Key: place.Key, UploadId: given(UploadId) };
    try {
      const parts: CompletedPart[] = [];
      const size = Math.max(partBytes, Math.ceil(bytes / partsMax));
      for (const part of piecesOf(body, size)) {
        const PartNumber = parts.length + 1;
        const { ETag, ChecksumCRC32 } = await this.#client.send(
          new this.#sdk.UploadPartCommand({
            ...upload,
            PartNumber,
            Body: part,
            ContentLength: part.length,
            ...this.#partChecksum,
          }),
          options,
        );
        parts.push({ PartNumber, ETag, ChecksumCRC32 });
      }
      const { ETag } = await this.#client.send(
        new this.#sdk.CompleteMultipartUploadCommand({
          ...upload,
          ...when,
          MultipartUpload: { Parts: parts },
        }),
        options,
      );
      return given(ETag);
    } catch (error) {
      // Parts of an incomplete upload cost storage until deleted.
      await this.#client
        .send(new this.#sdk.AbortMultipartUploadCommand(upload), options)
        .catch(() => undefined);
      throw error;
    }
  }

  async #nothingOf(name: string) {
    const found = await this.facts(name);
    return found && { body: new Uint8Array(0), tag: found.tag };
  }

  #at(name: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket, Key: `${this.#prefix}${checkedName(name)}` };
  }

  async #request<T>(
    doing: string,
    work: (options: { abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    try {
      return await work({ abortSignal: this.#closed.signal });
    } catch (error) {
      if (error instanceof ExportError) throw error;
      throw bucketFailure(`${doing} in ${this.location}`, error);
    }
  }
}

function refuseLocked(lock: ObjectLock, doing: string): void {
  throw new ExportError('sink_refused', `${doing}: ${lockText(lock)}`, {
    next: 'Wait until the lock has run out or the hold is lifted; until then it stays as it is.',
  });
}

/** A field that S3 includes in every such response. A proxy's page with status 200 lacks it. */
function given(said: string | undefined): string {
  if (said !== undefined && said !== '') return said;
  throw new ExportError(
    'sink_unreachable',
    'something else than S3 has answered, with status 200',
    {
      next: 'Check the endpoint, and any proxy or login page before it. sluice tries again. Nothing was lost: the events stay in the spool.',
    },
  );
}

interface Condition {
  readonly IfNoneMatch?: string;
  readonly IfMatch?: string;
}

function headersOf(about: ObjectAbout | undefined) {
  if (about === undefined) return {};
  const { contentType, contentEncoding, metadata, lock } = about;
  return {
    ContentType: contentType,
    ContentEncoding: contentEncoding,
    Metadata: metadata && { ...metadata },
    ...(lock?.mode && {
      ObjectLockMode: lock.mode,
      ObjectLockRetainUntilDate: new Date(lock.until),
    }),
    ...(lock?.hold && { ObjectLockLegalHoldStatus: 'ON' as const }),
    ...((lock?.mode ?? lock?.hold) && { ChecksumAlgorithm: 'CRC32' as const }),
  };
}

function lockIn(found: HeadObjectCommandOutput): { readonly lock?: ObjectLock } {
  const { ObjectLockMode: mode, ObjectLockRetainUntilDate: date } = found;
  const until = mode === undefined ? 0 : (date?.getTime() ?? 0);
  const hold = found.ObjectLockLegalHoldStatus === 'ON';
  if (!hold && until <= Date.now()) return {};
  return { lock: { until, ...(mode && { mode }), ...(hold && { hold }) } };
}

function rangeText({ from, length }: { from: number; length: number }): string {
  return `bytes=${from}-${from + length - 1}`;
}

/** True if the object is absent; a missing bucket or upload is another failure. */
function isAbsent(error: unknown): boolean {
  const { name } = error as Error;
  return name === 'NoSuchKey' || name === 'NotFound';
}

function nullIfAbsent(error: unknown): null {
  if (isAbsent(error)) return null;
  throw error;
}
