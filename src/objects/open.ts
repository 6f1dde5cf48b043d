// Opens an object store by its location in a config or on a command line.

import { ExportError } from '../contracts/index.ts';
import { openBucket } from './s3.ts';
import type { BucketSettings } from './s3-settings.ts';
import type { ObjectStore } from './store.ts';

const bucketPattern = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/;

/** Opens `s3://BUCKET/PREFIX`, or a directory; throws for any other location. */
export async function openStore(
  location: string,
  settings: BucketSettings = {},
): Promise<ObjectStore> {
  if (!/^[a-z0-9]+:\/\//i.test(location)) {
    // It locks with SQLite, which is slow to load and which a config check does not need.
    const { openDirectory } = await import('./directory.ts');
    return await openDirectory(location);
  }
  const [, bucket, path = ''] = bucketPattern.exec(location) ?? [];
  if (bucket === undefined) {
    throw new ExportError('config_invalid', `opening ${location}: objects cannot be stored there`, {
      next: 'Name a directory, or a bucket as s3://BUCKET/PREFIX.',
    });
  }
  return await openBucket({ ...settings, bucket, prefix: prefixOf(path) });
}

/** A path as a prefix of names: empty, or ending in `/`. */
function prefixOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '');
  return parts.map((part) => `${part}/`).join('');
}
